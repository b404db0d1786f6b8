#include "offline/explain/changed_trace.h"

#include <algorithm>
#include <string>

#include "offline/check/orientation_search.h"
#include "tso/check/analysis_budget.h"
#include "tso/model/units.h"
#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

// Copies a trace event by event and puts others in between.
class Copy {
 public:
  explicit Copy(const Question& question) : from_(question) {
    result_.trace.symbols = question.trace.symbols;
    result_.trace.complete = question.trace.complete;
    result_.trace.selection = question.trace.selection;
    result_.options = question.options;
    place_.reserve(question.trace.events.size());
  }
  void keep(uint32_t e) {
    spend(2);
    place_.push_back(static_cast<uint32_t>(result_.trace.events.size()));
    result_.trace.append(from_.trace, e, e + 1);
    result_.origin.push_back(from_.origin[e]);
  }
  void leave_out() { place_.push_back(static_cast<uint32_t>(result_.trace.events.size())); }
  void put(EventKind kind, uint64_t address, const Event& beside, int64_t lo, int64_t hi) {
    Event event;
    event.set_kind(kind);
    event.thread = beside.thread;
    event.lo = lo;
    event.location = beside.location;
    event.address = address;
    result_.trace.add(event, lo, hi);
    result_.origin.push_back(Question::kPut);
  }
  Question finish() {
    // With what was put in behind the last one.
    place_.push_back(static_cast<uint32_t>(result_.trace.events.size()));
    for (EventRange& range : result_.options.only) {
      range.first = place_[range.first];
      range.last = place_[range.last + 1] - 1;
    }
    return std::move(result_);
  }

 private:
  const Question& from_;
  Question result_;
  std::vector<uint32_t> place_;
};

}  // namespace

Question cut_out(const Trace& trace, uint32_t first, uint32_t last, uint32_t around,
                 const AnalysisOptions& options) {
  Question question;
  const uint32_t begin = first - std::min(first, around);
  const auto end =
      static_cast<uint32_t>(std::min<uint64_t>(trace.events.size(), uint64_t{last} + 1 + around));
  question.trace.append(trace, begin, end);
  for (uint32_t e = begin; e < end; ++e) {
    question.origin.push_back(e);
  }
  question.trace.symbols = trace.symbols;
  question.trace.complete = trace.complete;
  question.trace.selection = trace.selection;
  question.options = options;
  question.options.max_findings = 1;
  if (begin > 0) {  // what memory held is not known
    question.trace.symbols.initial_values.clear();
    question.trace.symbols.initial_zero = false;
  }
  return question;
}

Question with_fences(const Question& question, const std::vector<uint32_t>& after, FenceTime time) {
  const Trace& trace = question.trace;
  struct Ends {  // of a fence after an event of the thread
    int64_t next = kTimeMax;
    int64_t drained = kTimeMax;
  };
  std::vector<Ends> of_thread;
  std::vector<int64_t> end(trace.events.size(), 0);
  for (auto e = static_cast<uint32_t>(trace.events.size()); e-- > 0;) {
    const Event& event = trace.events[e];
    of_thread.resize(std::max<size_t>(of_thread.size(), event.thread + 1));
    Ends& mine = of_thread[event.thread];
    const int64_t hi = trace.hi(event);
    if (time == FenceTime::kOpen) {
      end[e] = std::max(hi, mine.drained);
    } else {
      end[e] = hi == event.lo || mine.next == kTimeMax ? hi : std::max(hi, mine.next);
    }
    if (is(event, kinds::kNodes)) {
      mine.next = hi;
    }
    if (is(event, kinds::kDrains)) {
      mine.drained = hi;
    }
  }
  Copy copy(question);
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    copy.keep(e);
    if (std::binary_search(after.begin(), after.end(), question.origin[e])) {
      const Event& store = trace.events[e];
      const bool at_once = end[e] == trace.hi(store) && time == FenceTime::kRecorded;
      copy.put(EventKind::kFence, 0, store, at_once ? end[e] : store.lo, end[e]);
    }
  }
  return copy.finish();
}

Question with_units(const Question& question, const std::vector<uint32_t>& labels,
                    const std::vector<uint32_t>& unit_of) {
  const Trace& trace = question.trace;
  std::vector<uint32_t> first(labels.size(), UINT32_MAX);
  std::vector<uint32_t> last(labels.size(), 0);
  const auto unit_at = [&](uint32_t e) {
    return question.origin[e] == Question::kPut ? UnitTable::kNone : unit_of[question.origin[e]];
  };
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    if (const uint32_t unit = unit_at(e); unit != UnitTable::kNone) {
      first[unit] = std::min(first[unit], e);
      last[unit] = e;
    }
  }
  constexpr uint32_t kUnits = kind_mask(EventKind::kUnitBegin) | kind_mask(EventKind::kUnitEnd) |
                              kind_mask(EventKind::kWait);
  Copy copy(question);
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    const uint32_t unit = unit_at(e);
    if (unit != UnitTable::kNone && first[unit] == e) {
      copy.put(EventKind::kUnitBegin, labels[unit], event, event.lo, event.lo);
    }
    if (is(event, kUnits)) {
      copy.leave_out();
    } else {
      copy.keep(e);
    }
    if (unit != UnitTable::kNone && last[unit] == e) {
      copy.put(EventKind::kUnitEnd, 0, event, event.lo, std::max(event.lo, trace.hi(event)));
    }
  }
  return copy.finish();
}

Question with_only(const Question& question, const std::vector<bool>& keep) {
  Copy copy(question);
  for (uint32_t e = 0; e < question.trace.events.size(); ++e) {
    if (keep[e]) {
      copy.keep(e);
    } else {
      copy.leave_out();
    }
  }
  Question result = copy.finish();
  result.options.only.clear();
  result.trace.symbols.initial_values.clear();
  result.trace.symbols.initial_zero = false;
  return result;
}

Answer removes(Left left) {
  return left == Left::kNothing || left == Left::kNoExecution ? Answer::kYes
         : left == Left::kUnknown                             ? Answer::kUnknown
                                                              : Answer::kNo;
}

Left violations_left(const Question& question) {
  const auto found = analyse_exactly(question.trace, question.options);
  if (!found) {
    return Left::kNoExecution;  // the order contradicts itself
  }
  for (const std::string& note : found->notes) {
    if (note.find("fit no execution") != std::string::npos) {
      return Left::kNoExecution;
    }
  }
  switch (found->verdict()) {
    case Verdict::kDefinite:
      return Left::kAlways;
    case Verdict::kPossible:
      return Left::kSome;
    case Verdict::kClean:
      return Left::kNothing;
    default:
      // What is missing from the trace is missing before and after.
      return !question.trace.complete && found->undecided_components == 0 && !ended_early(*found)
                 ? Left::kNothing
                 : Left::kUnknown;
  }
}

}  // namespace tsomon::explain
