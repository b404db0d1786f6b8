#include "offline/check/crossing_proof.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "offline/check/forced_units.h"
#include "offline/check/orientation_search.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr int kMostOrders = 12;    // of units, to find one that an execution has
constexpr size_t kLong = 100'000;  // events: there fewer are tried
constexpr int kMostOrdersLong = 3;
constexpr size_t kBeginnings[] = {64, 256, 1024};  // events that are searched
constexpr uint64_t kBeginningWork = 2'000'000;
constexpr size_t kMostDecided = 32;  // orders of units, after an execution with a cycle
constexpr size_t kMostEdges = 12;    // of a cycle that is met by chance: short ones are shown

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
  if (made_ >= kMostExecutions || (!direct_ && in_.trace.pending_prefix != 0)) {
    return std::nullopt;
  }
  ++made_;
  if (!executions_) {
    executions_.emplace(in_, accesses_, values_);
  }
  return executions_->make(choice, open);
}

std::optional<Violation> CrossingProof::analyse(const ExecutionChoice& choice) {
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
    if (auto found = at == 1 ? analyse({CommitTime::kAtOnce, certain().places(UnitOrder::kByEnd)})
                             : analyse({kTimes[at == 0 ? 0 : at - 1], {}})) {
      return found;
    }
  }
  return std::nullopt;
}

const CertainUnits& CrossingProof::certain() {
  if (!certain_) {
    certain_.emplace(in_, accesses_, lists_);
  }
  return *certain_;
}

std::optional<Violation> CrossingProof::show(const std::vector<Edge>& cycle) {
  if (direct_ && !may_fit_together(in_, cycle)) {
    return std::nullopt;
  }
  if (!direct_ && looked_at_ == 0) {
    if (auto found = analyse({kTimes[looked_at_++], {}})) {
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

// Units one after the other, as far as what is certain allows.
bool CrossingProof::find_acyclic() {
  const int rounds = in_.trace.events.size() < kLong ? kMostOrders : kMostOrdersLong;
  if (direct_ && find_acyclic_by_thread(rounds)) {
    return true;
  }
  if (settled_definite() || (direct_ && forced_)) {
    return false;  // what follows has been looked at, and more
  }
  if (find_acyclic_by_end(rounds / 2)) {
    return true;
  }
  return acyclic_in({CommitTime::kAtOnce, {}}, {}, nullptr) == Answer::kYes;
}

// kUnknown: it was not made. Otherwise the edges that lead back in the order of the units, if the
// execution has a cycle, and that one.
Answer CrossingProof::acyclic_in(const ExecutionChoice& choice, const std::vector<Edge>& open,
                                 Back* back) {
  auto execution = make(choice, open);
  if (!execution) {
    return Answer::kUnknown;
  }
  last_ = std::move(execution);
  std::vector<Edge> edges;
  auto cycle = cycle_of_execution(in_, *last_, choice.place, &edges);
  if (!cycle) {
    acyclic_ = true;
    return Answer::kYes;
  }
  if (back != nullptr && back->cycle.empty()) {
    *back = {std::move(*cycle), std::move(edges)};
  }
  return Answer::kNo;
}

// What an execution does against the order of the units is decided before the next one is made.
bool CrossingProof::find_acyclic_by_thread(int rounds) {
  std::optional<ForcedUnits> guessed;
  std::vector<Edge> open;  // between events
  for (int round = 0; round < rounds; ++round) {
    const ForcedUnits* const known = guessed ? &*guessed : forced_ ? &*forced_ : nullptr;
    const std::vector<uint32_t> place = certain().places(
        UnitOrder::kByThread, known != nullptr ? known->derived() : std::vector<Edge>());
    Back back;
    const Answer answer =
        place.empty() ? Answer::kUnknown : acyclic_in({CommitTime::kOnDemand, place}, open, &back);
    if (answer != Answer::kNo || !forced_) {
      return answer == Answer::kYes;
    }
    if (round == 0 && in_.trace.events.size() < kLong && begins_definite()) {
      return false;
    }
    if (!guessed) {
      guessed.emplace(*forced_);
    }
    back.edges.resize(std::min(back.edges.size(), kMostDecided));
    for (const Edge& edge : back.edges) {
      if (!decide(edge, &*guessed, &open)) {
        return false;
      }
    }
  }
  return false;
}

// Whether every execution of the first events has a cycle. There no load is forwarded yet, so less
// is open than later.
bool CrossingProof::begins_definite() {
  AnalysisOptions options = in_.options;
  options.values = false;
  options.only.clear();
  options.threads = 1;
  options.progress = nullptr;
  for (const size_t size : kBeginnings) {
    Trace first;
    first.symbols.initial_zero = false;
    first.pending_prefix = in_.trace.pending_prefix;
    first.append(in_.trace, 0, std::min(size, in_.trace.events.size()));
    WorkSpent spent = measured({.max_work = kBeginningWork}, [&] {
      const auto analysis = analyse_exactly(first, options);
      begins_definite_ = analysis && analysis->verdict() == Verdict::kDefinite;
    });
    if (begins_definite_ || spent.over || size > in_.trace.events.size()) {
      return begins_definite_;
    }
  }
  return false;
}

// One of the two units comes first: as here, if nothing speaks against it. False: neither can.
bool CrossingProof::decide(const Edge& edge, ForcedUnits* guessed, std::vector<Edge>* open) {
  const uint32_t from = node_of(edge.from);
  const uint32_t to = node_of(edge.to);
  bool refuted = forced_->refutes(from, to);
  if (forced_->refutes(to, from)) {
    forced_->add(from, to);
  }
  if (refuted) {
    forced_->add(to, from);
  }
  refuted = refuted || guessed->refutes(from, to);
  if (refuted) {
    guessed->add(to, from);
    open->push_back({edge.to, edge.from});
  } else {
    guessed->add(from, to);
  }
  return !forced_->contradiction() && !guessed->contradiction();
}

bool CrossingProof::find_acyclic_by_end(int rounds) {
  std::vector<Edge> more = forced_ ? forced_->derived() : std::vector<Edge>();
  std::vector<uint32_t> place = certain().places(UnitOrder::kByEnd, more);
  for (int round = 0; round < rounds && !place.empty(); ++round) {
    Back back;
    for (const CommitTime time : {CommitTime::kAtOnce, CommitTime::kDrain}) {
      if (acyclic_in({time, place}, {}, &back) == Answer::kYes) {
        return true;
      }
    }
    if (back.cycle.empty() || round + 1 == rounds) {
      return false;
    }
    // All of them, or if these contradict each other those of the cycle.
    const size_t before = more.size();
    for (const Edge& edge : back.edges) {
      more.push_back({node_of(edge.from), node_of(edge.to)});
    }
    std::vector<uint32_t> next = certain().places(UnitOrder::kByEnd, more);
    if (next.empty()) {
      more.resize(before);
      for (const Edge& edge : back.cycle) {
        if (place[node_of(edge.from)] > place[node_of(edge.to)]) {
          more.push_back({node_of(edge.from), node_of(edge.to)});
        }
      }
      next = certain().places(UnitOrder::kByEnd, more);
    }
    place = std::move(next);
  }
  return false;
}

void CrossingProof::settle(Violation* violation) {
  violation->verdict = Verdict::kPossible;
  violation->complete = acyclic_;
  if (acyclic_) {
    return;
  }
  const auto& cycle = certain().cycle();
  if (!cycle) {
    const bool is_long = in_.trace.events.size() >= kLong;
    if (is_long && direct_ && begins_definite()) {
      violation->verdict = Verdict::kDefinite;
      violation->complete = true;
      return;
    }
    if (ForcedUnits::applies(in_)) {
      forced_.emplace(in_, accesses_, lists_, certain().edges());
    }
    if (settled_definite() || (!find_acyclic() && settled_definite())) {
      violation->verdict = Verdict::kDefinite;
    }
    violation->complete = acyclic_ || violation->verdict == Verdict::kDefinite;
    return;
  }
  last_ = last_ ? std::move(last_) : make({CommitTime::kAtOnce, {}}, {});
  if (!last_) {
    return;
  }
  if (auto found = witness_in_execution(in_, *cycle, *last_)) {
    *violation = std::move(*found);
    violation->verdict = Verdict::kDefinite;
    violation->complete = true;
  }
}

}  // namespace tsomon
