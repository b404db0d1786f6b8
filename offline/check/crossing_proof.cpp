#include "offline/check/crossing_proof.h"

#include <algorithm>
#include <utility>

#include "offline/check/orientation_search.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr int kMostOrders = 6;                    // of units, to find one that an execution has
constexpr size_t kLong = 100'000;                 // events: there one is tried
constexpr size_t kStretches[] = {64, 256, 1024};  // events
constexpr uint64_t kStretchWork = 5'000'000;
constexpr size_t kMostEdges = 12;  // of a cycle that is met by chance: short ones are shown

// Stores that commit as soon as they are issued, and later ones.
constexpr CommitTime kTimes[] = {CommitTime::kAtOnce, CommitTime::kUnitEnd, CommitTime::kDrain,
                                 CommitTime::kRemoteAccess};
constexpr CommitTime kCycleTimes[] = {CommitTime::kAtOnce, CommitTime::kDrain};

}  // namespace

CrossingProof::CrossingProof(const OrderedUnits& in, const AccessIndex& accesses,
                             const ThreadLists& lists, const ValueReads* values)
    : in_(in),
      accesses_(accesses),
      lists_(lists),
      values_(values),
      direct_((values == nullptr || !values->any()) && in.relation.acquisitions().empty()) {}

std::optional<std::vector<Step>> CrossingProof::make(const ExecutionChoice& choice,
                                                     std::vector<Edge> open) {
  if (made_ >= kMostExecutions || (!direct_ && in_.trace.in_front != 0)) {
    return std::nullopt;
  }
  ++made_;
  if (!executions_) {
    executions_.emplace(in_, accesses_, values_);
  }
  return executions_->make(choice, open);
}

std::optional<Violation> CrossingProof::look_at(const ExecutionChoice& choice) {
  auto execution = make(choice, {});
  if (!execution) {
    return std::nullopt;
  }
  const auto cycle = cycle_of_execution(in_, *execution);
  last_ = std::move(execution);
  acyclic_ = acyclic_ || !cycle;
  return cycle && cycle->size() <= kMostEdges ? witness_in_execution(in_, *cycle, *last_)
                                              : std::nullopt;
}

std::optional<Violation> CrossingProof::show_any() {
  while (looked_at_ <= std::size(kTimes)) {
    // The second one is likely to have no cycle.
    const size_t at = looked_at_++;
    if (auto found = at == 1 ? look_at({CommitTime::kAtOnce, certain().place})
                             : look_at({kTimes[at == 0 ? 0 : at - 1], {}})) {
      return found;
    }
  }
  return std::nullopt;
}

const CertainUnits& CrossingProof::certain() {
  if (!certain_) {
    certain_ = certain_units(in_, accesses_, lists_);
  }
  return *certain_;
}

std::optional<Violation> CrossingProof::show(const std::vector<Edge>& cycle) {
  if (direct_ && !may_fit_together(in_, cycle)) {
    return std::nullopt;
  }
  if (!direct_ && looked_at_ == 0) {
    if (auto found = look_at({kTimes[looked_at_++], {}})) {
      return found;
    }
  }
  std::vector<Edge> open;
  for (const Edge& edge : cycle) {
    if (in_.relation.conflict(edge.from, edge.to)) {
      open.push_back(edge);
    }
  }
  for (const CommitTime time : kCycleTimes) {
    if (auto execution = make({time, {}}, open)) {
      last_ = std::move(execution);
      if (auto found = witness_in_execution(in_, cycle, *last_)) {
        return found;
      }
    }
  }
  return direct_ ? std::nullopt : show_any();
}

// Units one after the other, as far as what is certain allows. Where an execution has a cycle all the
// same, its edges against that order come to be taken for certain.
bool CrossingProof::find_acyclic() {
  std::vector<uint32_t> place = certain().place;
  std::vector<Edge> more;
  const int orders = in_.trace.events.size() < kLong ? kMostOrders : 1;
  for (int round = 0; round < orders && !place.empty(); ++round) {
    std::optional<std::vector<Edge>> cycle;
    for (const CommitTime time : {CommitTime::kAtOnce, CommitTime::kDrain}) {
      if (auto execution = make({time, place}, {})) {
        auto found = cycle_of_execution(in_, *execution);
        last_ = std::move(execution);
        if (!found) {
          return true;
        }
        cycle = cycle ? std::move(cycle) : std::move(found);
      }
    }
    if (!cycle) {
      break;
    }
    const auto place_of = [&](uint32_t e) {
      return place[in_.by_event ? e : in_.units.of_event(e)];
    };
    for (const Edge& edge : *cycle) {
      if (place_of(edge.from) > place_of(edge.to)) {
        more.push_back(edge);
      }
    }
    place = certain_units(in_, accesses_, lists_, more).place;
  }
  if (auto execution = make({CommitTime::kAtOnce, {}}, {})) {
    last_ = std::move(execution);
    return !cycle_of_execution(in_, *last_);
  }
  return false;
}

bool CrossingProof::definite_nearby(const Violation& violation) const {
  const size_t n = in_.trace.events.size();
  const size_t here = violation.window.empty() ? 0 : violation.window.front();
  for (const size_t size : kStretches) {
    for (const size_t middle : {here, n / 4, n / 2, n - n / 4}) {
      const size_t begin = middle - std::min(middle, size / 2);
      if (definite_within(begin, std::min(n, begin + size))) {
        return true;
      }
    }
  }
  return false;
}

// Whether every execution of these events has a cycle; with the stores that loads among them may be forwarded from.
bool CrossingProof::definite_within(size_t begin, size_t end) const {
  std::vector<uint32_t> events;
  for (size_t e = begin; e < end; ++e) {
    events.push_back(static_cast<uint32_t>(e));
    const uint32_t source = in_.relation.source(static_cast<uint32_t>(e));
    if (source != Relation::kNever && source < begin) {
      events.push_back(source);
    }
  }
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  Trace stretch;
  stretch.symbols.initial_zero = false;
  for (const uint32_t e : events) {
    stretch.in_front += e < begin ? 1 : 0;
    stretch.append(in_.trace, e, e + 1);
  }
  AnalysisOptions options = in_.options;
  options.values = false;
  options.only.clear();
  options.threads = 1;
  options.progress = nullptr;
  bool definite = false;
  measured({.max_work = kStretchWork}, [&] {
    const auto analysis = analyse_exactly(stretch, options);
    definite = analysis && analysis->verdict() == Verdict::kDefinite;
  });
  return definite;
}

void CrossingProof::settle(Violation* violation) {
  violation->verdict = Verdict::kPossible;
  violation->complete = acyclic_;
  if (acyclic_) {
    return;
  }
  if (certain().cycle) {
    last_ = last_ ? std::move(last_) : make({CommitTime::kAtOnce, {}}, {});
  } else {
    violation->complete = find_acyclic();
  }
  if (!certain().cycle && !violation->complete && direct_ && definite_nearby(*violation)) {
    violation->verdict = Verdict::kDefinite;
    violation->complete = true;
  }
  const auto& cycle = certain().cycle;
  if (!cycle || !last_) {
    return;
  }
  if (auto found = witness_in_execution(in_, *cycle, *last_)) {
    *violation = std::move(*found);
    violation->verdict = Verdict::kDefinite;
    violation->complete = true;
  }
}

}  // namespace tsomon
