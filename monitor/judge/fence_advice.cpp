#include "monitor/judge/fence_advice.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "monitor/findings/event_text.h"
#include "offline/explain/changed_trace.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

std::string label_of(const FenceAdvice& advice, const Symbols& symbols) {
  return advice.label == Interner::kNone || advice.label >= symbols.labels.size()
             ? std::string()
             : std::string(unit_label(symbols.labels.text(advice.label)));
}

nlohmann::ordered_json json_of(const FenceAdvice& advice, const Symbols& symbols,
                               const ReportNames& names) {
  const ReportedAccess store = reported_access(advice.after, advice.store, symbols, names);
  return {{"thread", thread_text(advice.thread, symbols)},
          {"label", label_of(advice, symbols)},
          {"first", advice.first},
          {"last", advice.last},
          {"after", advice.after},
          {"location", store.place.text},
          {"units", advice.units},
          {"fence_helps", advice.helps == Answer::kUnknown
                              ? nlohmann::ordered_json()
                              : nlohmann::ordered_json(advice.helps == Answer::kYes)},
          {"is_unit", advice.label != Interner::kNone},
          {"store", access_json(store)}};
}

// Empty: a fence does not help.
std::string line_of(const FenceAdvice& advice, const Symbols& symbols, const ReportNames& names) {
  if (advice.helps == Answer::kNo) {
    return {};
  }
  const ReportedAccess store = reported_access(advice.after, advice.store, symbols, names);
  const std::string label = printable(label_of(advice, symbols));
  const std::string location = printable(store.place.text);
  const bool helps = advice.helps == Answer::kYes;
  return fmt::format("{} {}: {} after #{} store {}{}{}{}{}",
                     printable(thread_text(advice.thread, symbols)),
                     advice.label == Interner::kNone ? "event of its own"
                     : label.empty()                 ? "unit without a label"
                                                     : "unit " + label,
                     helps ? "a fence is missing" : "it is not known whether a fence", advice.after,
                     printable(store.variable.empty() ? store.operand : store.variable),
                     location.empty() ? "" : " ", location, helps ? "" : " helps",
                     advice.units == 1 ? "" : fmt::format(" ({} such units)", advice.units));
}

// Events of other units are units of their own then: whatever is violated is one of these.
explain::Question with_these(const explain::Question& question, const std::vector<UnitId>& group,
                             const Trace& trace, const UnitTable& units) {
  std::vector<uint32_t> labels;
  std::vector<uint32_t> unit_of(trace.events.size(), UnitTable::kNone);
  for (const UnitId unit : group) {
    const Unit& one = units[unit];
    if (one.label == Interner::kNone) {
      continue;
    }
    spend(1 + (one.last_event - one.first_event));
    for (uint32_t e = one.first_event; e <= one.last_event; ++e) {
      if (units.of_event(e) == unit && is(trace.events[e], kinds::kNodes)) {
        unit_of[e] = static_cast<uint32_t>(labels.size());
      }
    }
    labels.push_back(one.label);
  }
  return explain::with_units(question, labels, unit_of);
}

Answer better(Answer a, Answer b) {
  return a == Answer::kYes || b == Answer::kYes           ? Answer::kYes
         : a == Answer::kUnknown || b == Answer::kUnknown ? Answer::kUnknown
                                                          : Answer::kNo;
}

}  // namespace

FenceQuestions::FenceQuestions(const AnalysisOptions& options) : options_(options) {
  options_.property = Property::kSerializability;
  options_.told = Told::kFirst;
  options_.threads = 1;
  options_.progress = nullptr;
  options_.only.clear();
}

Answer FenceQuestions::ask(const Analysis& analysis, uint32_t group, const Trace& trace,
                           const UnitTable& units) {
  std::vector<std::pair<uint32_t, uint32_t>> places;
  std::vector<uint32_t> after;
  for (const UnfencedUnit& unfenced : analysis.unfenced) {
    if (unfenced.group == group) {
      places.emplace_back(units[unfenced.unit].label, trace.events[unfenced.after].location);
      after.push_back(unfenced.after);
    }
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::sort(after.begin(), after.end());
  Known& known = known_[std::move(places)];
  if (known.helps != Answer::kYes && known.asked < kMostAlikeFenced) {
    const Answer answer = judge(analysis.unfenced_groups[group], after, trace, units);
    known.helps = better(known.helps, answer);
    ++known.asked;
  }
  return known.helps;
}

Answer FenceQuestions::judge(const std::vector<UnitId>& group, const std::vector<uint32_t>& after,
                             const Trace& trace, const UnitTable& units) {
  // A load may have been forwarded from a store of an earlier unit.
  uint32_t first = after.front();
  uint32_t last = after.back();
  for (const UnitId unit : group) {
    first = std::min(first, units[unit].first_event);
    last = std::max(last, units[unit].last_event);
  }
  if (last - first >= kMostEventsFenced || work_left_ == 0) {
    return Answer::kUnknown;
  }
  WorkMeter meter({.max_work = std::min(work_left_, kMostWorkFenced)});
  Answer answer = Answer::kUnknown;
  try {
    const WorkScope scope(&meter);
    const explain::Question question = with_these(
        explain::cut_out(trace, first, last, explain::kAround, options_), group, trace, units);
    answer = Answer::kNo;
    for (const auto time : {explain::FenceTime::kOpen, explain::FenceTime::kRecorded}) {
      if (answer != Answer::kYes) {
        answer = better(answer, explain::removes(explain::violations_left(
                                    explain::with_fences(question, after, time))));
      }
    }
  } catch (const WorkEnded&) {
    answer = Answer::kUnknown;
  }
  work_left_ -= std::min(work_left_, meter.work());
  return answer;
}

void add_fence_advice(const Analysis& analysis, const Trace& trace, const UnitTable& units,
                      const std::vector<uint64_t>* index, FenceQuestions* questions,
                      std::vector<FenceAdvice>* advice) {
  std::vector<Answer> helps;  // by group
  for (uint32_t group = 0; group < analysis.unfenced_groups.size(); ++group) {
    helps.push_back(questions == nullptr ? Answer::kUnknown
                                         : questions->ask(analysis, group, trace, units));
  }
  const auto place = [&](uint32_t e) { return index == nullptr ? e : (*index)[e]; };
  for (const UnfencedUnit& unfenced : analysis.unfenced) {
    const Unit& unit = units[unfenced.unit];
    FenceAdvice one{unit.thread,
                    unit.label,
                    place(unit.first_event),
                    place(unit.last_event),
                    place(unfenced.after),
                    trace.events[unfenced.after],
                    1,
                    helps[unfenced.group]};
    one.store.has_hi = one.store.has_read_value = one.store.has_write_value = 0;
    const auto same = std::find_if(advice->begin(), advice->end(), [&](const FenceAdvice& other) {
      return one.store.location != Event::kNoLocation && other.label == one.label &&
             other.store.location == one.store.location;
    });
    if (same != advice->end()) {
      ++same->units;
      same->helps = better(same->helps, one.helps);
    } else if (advice->size() < kMaxFenceAdvice) {
      advice->push_back(one);
    }
  }
}

std::vector<ReportedFence> reported(const std::vector<FenceAdvice>& advice, const Symbols& symbols,
                                    const ReportNames& names) {
  std::vector<ReportedFence> result;
  result.reserve(advice.size());
  for (const FenceAdvice& each : advice) {
    result.push_back({json_of(each, symbols, names), line_of(each, symbols, names)});
  }
  return result;
}

}  // namespace tsomon
