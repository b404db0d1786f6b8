#include "online/detector/detector.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "online/detector/slice.h"
#include "online/graph/conflict_graph.h"
#include "online/graph/value_order.h"
#include "online/set_policy/atomic_set_policy.h"
#include "online/stream/history.h"
#include "online/tso_policy/order_policy.h"

namespace tsomon {
namespace {

constexpr size_t kFirstSweep = 256;      // units in memory
constexpr uint64_t kQuiet = 1ULL << 14;  // events without a sweep, at least ...
constexpr uint64_t kQuietPerUnit = 4;    // ... and for every unit in memory ...
constexpr uint64_t kHistoryShare = 8;    // ... but at most one in so many of the history
// Where fewer have an undirected edge, one in so many of the units to be kept is enough.
constexpr uint64_t kUnitsPerUndirected = 1024;
constexpr size_t kRarelyOpen = 16;
constexpr size_t kLocationsPerUnit = 8;  // in memory, for each unit kept before some are merged
// Recorded values are asked about events with so many undirected edges for each; where they told
// little, not again before a multiple of those events has come; and in all about so many events at
// first, and for each that has come.
constexpr uint64_t kMaxUndirected = 16;
constexpr uint64_t kLittleKnown = 4;
constexpr uint64_t kAskedAtFirst = 1ULL << 20;
constexpr uint64_t kAskedPerEvent = 2;
// Merged units of which it stays known which they were, for each that is kept before some are.
constexpr size_t kTrailsPerUnit = 8;

}  // namespace

class Detector::Impl {
 public:
  Impl(const Symbols& symbols, const DetectorOptions& options, DetectorCallbacks callbacks)
      : options_(options),
        callbacks_(std::move(callbacks)),
        graph_(&callbacks_, options.policy == DetectorPolicy::kRobustness),
        history_(callbacks_.on_candidate ? options.history_events : 0, drains_of(options)),
        ask_at_(options.tuning.value_inference_threshold) {
    if (callbacks_.on_candidate && options.history_events != 0) {
      longest_quiet_ = options.history_events / kHistoryShare;
    }
    sweep_by_ = quiet();
    if (options.policy == DetectorPolicy::kAtomicSets) {
      auto policy =
          std::make_unique<AtomicSetPolicy>(graph_, symbols, options.sets, callbacks_.on_cycle,
                                            callbacks_.on_repeated, candidate_callback());
      if (callbacks_.on_cycle) {
        callbacks_.on_cycle = [found = policy.get()](const DetectedCycle& cycle) {
          found->on_cycle(cycle, false);
        };
      }
      if (callbacks_.on_repeated) {
        callbacks_.on_repeated = [found = policy.get()](const DetectedCycle& cycle) {
          found->on_cycle(cycle, true);
        };
      }
      policy_ = std::move(policy);
    } else {
      policy_ = std::make_unique<OrderPolicy>(graph_, options);
    }
  }

  void add(const EventBlock& block, uint64_t first_index) {
    graph_.statistics().events += block.events.size();
    history_.add(block, first_index);
    policy_->add(block, first_index);
    now_ = first_index + block.events.size();
    if (options_.tuning.collect &&
        (graph_.size() >= next_sweep_ || now_ >= sweep_by_ || policy_->wants_sweep())) {
      sweep();
    }
  }

  void lost(ThreadId thread) {
    lost_ = true;
    history_.lost(thread, now_);
    policy_->lost(thread);
  }

  void sweep() {
    policy_->before_sweep();
    run_sweep([this](Policy::Node node) { return policy_->closed(node); });
    next_sweep_ = std::max(kFirstSweep, 2 * graph_.size());
    sweep_by_ = now_ + quiet();
  }

  void finish() {
    history_.finish();
    policy_->finish();
    run_sweep([](Policy::Node) { return true; });
  }

  bool complete() const {
    const DetectorStatistics& all = graph_.statistics();
    const bool no_sets = options_.policy == DetectorPolicy::kAtomicSets &&
                         options_.sets == SetChoice::kObjects && all.objects == 0;
    return !lost_ && !no_sets && all.late_events == 0 && all.evicted == 0 && all.uncertain == 0 &&
           !all.unordered && !history_.misled() && all.incomplete_candidates == 0;
  }

  DetectorStatistics statistics() const {
    DetectorStatistics all = graph_.statistics();
    all.retained = graph_.size();
    all.locations = policy_->locations();
    all.misled = history_.misled();
    return all;
  }

  const ConflictGraph& graph() const { return graph_; }
  EventHistory release_history() { return std::move(history_); }

  DetectedSlice slice(uint64_t first, uint64_t last, uint64_t around, bool all_behind) const {
    return slice_of(history_, now_, first, last, around, all_behind);
  }

 private:
  static uint32_t drains_of(const DetectorOptions& options) {
    return kinds::kDrains | (options.relation.fenced_release ? kind_mask(EventKind::kRelease) : 0U);
  }

  // How many events the next sweep may wait for.
  uint64_t quiet() const {
    return std::min(longest_quiet_, std::max<uint64_t>(kQuiet, kQuietPerUnit * graph_.size()));
  }

  void run_sweep(const std::function<bool(Policy::Node)>& closed) {
    // All locations are looked at when units have been merged.
    const size_t least = policy_->locations() / kLocationsPerUnit;
    const size_t most = options_.tuning.max_retained;
    // What is open in atomic sets has no undirected edges.
    const DetectorStatistics& all = graph_.statistics();
    const bool rarely_open = options_.policy != DetectorPolicy::kAtomicSets &&
                             all.undirected_edges * kUnitsPerUndirected <= all.units;
    const size_t retained = rarely_open ? most / kRarelyOpen : most;
    graph_.sweep(
        closed, [this](ConflictGraph::Candidate&& candidate) { flag(std::move(candidate)); },
        {ask_at_, std::max(retained, least), kTrailsPerUnit * most},
        [this] { return ask_order(); });
    if (asked_) {
      const uint64_t gone = all.collected - asked_->collected;
      graph_.statistics().known += gone;
      const bool little = 2 * gone < asked_->units;
      ask_again_ = now_ + (little ? kLittleKnown * asked_->events : 0);
      ask_at_ = std::max<size_t>(options_.tuning.value_inference_threshold, 2 * graph_.size());
      asked_.reset();
    }
    policy_->after_sweep();
  }

  // What recorded values say of the units that are kept.
  std::optional<ConflictGraph::Known> ask_order() {
    const DetectorStatistics& all = graph_.statistics();
    if (!options_.values || options_.policy != DetectorPolicy::kTso || !callbacks_.on_candidate ||
        lost_ || all.late_events != 0 || now_ < ask_again_) {
      return std::nullopt;
    }
    const uint64_t oldest =
        std::max(history_.oldest(), now_ - std::min(now_, options_.tuning.value_inference_span));
    ConflictGraph::Known known;
    std::vector<PlacedUnit> units;
    uint64_t first = now_;
    for (const Policy::Node node : graph_.in_use()) {
      const DetectedUnit& unit = graph_.unit(node);
      const auto* trail = graph_.trail(node);
      if (unit.first < oldest || (unit.merged != 0 && trail == nullptr)) {
        continue;
      }
      const auto place = static_cast<uint32_t>(known.units.size());
      known.units.push_back(node);
      first = std::min(first, unit.first);
      for (const DetectedUnit& each : trail != nullptr ? *trail : std::vector{unit}) {
        units.push_back({each, place});
      }
    }
    const uint64_t events = now_ - first;
    if (units.empty() || asked_events_ + events > kAskedAtFirst + kAskedPerEvent * now_) {
      return std::nullopt;
    }
    ++graph_.statistics().asked;
    asked_events_ += events;
    asked_ = {graph_.size(), events, all.collected};
    auto slice = history_.slice(first, now_ - 1);
    auto words = history_.lock_words(slice);
    // It is no reason to ask less of what follows: kAskedPerEvent bounds it.
    const WorkScope uncounted(current_meter(), WorkScope::Counted::kNo);
    auto order = value_order(std::move(slice), std::move(words), std::move(units),
                             options_.relation, kMaxUndirected * events);
    if (!order) {
      return std::nullopt;
    }
    known.order = std::move(*order);
    return known;
  }

  AtomicSetPolicy::Flag candidate_callback() {
    if (!callbacks_.on_candidate) {
      return {};
    }
    return [this](DetectedCandidate&& candidate) { flag(std::move(candidate)); };
  }

  void flag(ConflictGraph::Candidate&& found) {
    DetectedCandidate candidate;
    candidate.units = std::move(found.units);
    candidate.directed = found.directed;
    candidate.complete = found.complete;
    candidate.components = std::move(found.components);
    flag(std::move(candidate));
  }

  void flag(DetectedCandidate&& candidate) {
    ++graph_.statistics().candidates;
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    for (const DetectedUnit& unit : candidate.units) {
      first = std::min(first, unit.first);
      last = std::max(last, unit.last);
    }
    if (callbacks_.on_candidate) {
      candidate.complete = candidate.complete && history_.contains(first);
    }
    if (!candidate.complete && !candidate.directed) {
      ++graph_.statistics().incomplete_candidates;
    }
    if (!callbacks_.on_candidate) {
      return;
    }
    if (candidate.complete && (!callbacks_.wants_events || callbacks_.wants_events(candidate))) {
      candidate.slice = slice(first, last, 0, false);
    }
    callbacks_.on_candidate(std::move(candidate));
  }

  DetectorOptions options_;
  DetectorCallbacks callbacks_;
  ConflictGraph graph_;
  EventHistory history_;
  std::unique_ptr<Policy> policy_;
  // A sweep is due when there are so many units, or that event has come: few units may stand for
  // many events, and what a candidate needs of the history must still be there.
  size_t next_sweep_ = kFirstSweep;
  uint64_t longest_quiet_ = UINT64_MAX;
  uint64_t sweep_by_ = 0;
  uint64_t now_ = 0;
  bool lost_ = false;
  // When recorded values are asked next: so many units, and that event. Of the last time.
  struct Asked {
    uint64_t units;
    uint64_t events;
    uint64_t collected;
  };
  size_t ask_at_;
  uint64_t ask_again_ = 0;
  uint64_t asked_events_ = 0;
  std::optional<Asked> asked_;
};

Detector::Detector(const Symbols& symbols, const DetectorOptions& options,
                   DetectorCallbacks callbacks)
    : impl_(std::make_unique<Impl>(symbols, options, std::move(callbacks))) {}
Detector::Detector(Detector&&) noexcept = default;
Detector& Detector::operator=(Detector&&) noexcept = default;
Detector::~Detector() = default;

void Detector::add(const EventBlock& block, uint64_t first_index) {
  impl_->add(block, first_index);
}
void Detector::lost(ThreadId thread) { impl_->lost(thread); }
void Detector::sweep() { impl_->sweep(); }
void Detector::finish() { impl_->finish(); }
EventHistory Detector::release_history() { return impl_->release_history(); }
bool Detector::complete() const { return impl_->complete(); }
DetectorStatistics Detector::statistics() const { return impl_->statistics(); }
const std::vector<uint64_t>& Detector::cycle_counts() const {
  return impl_->graph().cycle_counts();
}
DetectedSlice Detector::slice(uint64_t first, uint64_t last, uint64_t around,
                              bool all_behind) const {
  return impl_->slice(first, last, around, all_behind);
}
void Detector::check_invariants() const { impl_->graph().check_invariants(); }

}  // namespace tsomon
