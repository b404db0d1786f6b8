#include "online/detector/bounded_detector.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "online/detector/slice.h"

namespace tsomon {
namespace {

constexpr uint64_t kMostEvents = 2048;  // of a candidate
// Pairs of events in candidates: some at once, in proportion to what finding them may cost, and some microseconds for
// each event.
constexpr uint64_t kPairsForWork = 100;
constexpr uint64_t kPairsPerEvent = 500;
constexpr size_t kSpreadTogether = 8192;
constexpr size_t kMostAhead = 4 * kSpreadTogether;  // events placed behind all that have come

}  // namespace

BoundedDetector::BoundedDetector(const Symbols& symbols, const DetectorOptions& options,
                                 DetectorCallbacks callbacks, WorkBudget mixed)
    : symbols_(symbols),
      options_(options),
      callbacks_(std::move(callbacks)),
      mixed_(mixed),
      detector_(symbols, options, callbacks_) {}

void BoundedDetector::add(const EventBlock& block, uint64_t first_index) {
  events_ += block.events.size();
  end_ = first_index + block.events.size();
  {
    const WorkScope scope(&meter_);
    if (simple_) {
      history_->add(block, first_index);
      spread(block, 0, first_index);
    } else {
      detector_.add(block, first_index);
    }
  }
  simplify_if_dear();
  report_cycles();
}

void BoundedDetector::lost(ThreadId thread) {
  if (simple_) {
    look_at_spread(true);
    history_->lost(thread, end_);
  } else {
    detector_.lost(thread);
  }
}

void BoundedDetector::finish() {
  simplify_if_dear();
  if (simple_) {
    history_->finish();
    look_at_spread(true);
  } else {
    detector_.finish();
  }
  report_cycles();
}

DetectedSlice BoundedDetector::slice(uint64_t first, uint64_t last, uint64_t around,
                                     bool all_behind) const {
  if (!simple_) {
    return detector_.slice(first, last, around, all_behind);
  }
  DetectedSlice all = slice_of(*history_, end_, first, last, around, all_behind);
  if (all.pending_prefix <= kMostPendingPrefix) {
    return all;
  }
  // Those of a thread commit in their order, so the oldest can go first.
  const uint32_t left_out = all.pending_prefix - kMostPendingPrefix;
  DetectedSlice late;
  late.events.append(all.events, left_out, all.events.events.size());
  late.index.assign(all.index.begin() + left_out, all.index.end());
  late.pending_prefix = kMostPendingPrefix;
  late.all_stores = all.all_stores;
  late.some_executions = true;
  late.initial = std::move(all.initial);
  late.lock_words = std::move(all.lock_words);
  late.late_reads = std::move(all.late_reads);
  for (LateRead& read : late.late_reads) {
    read.event -= left_out;
  }
  return late;
}

bool BoundedDetector::exhausted() const {
  return meter_.work() - work_before_ > kDetectionBudget.of(events_).max_work;
}

bool BoundedDetector::affords(uint64_t events) {
  if (!simple_) {
    return true;
  }
  const uint64_t all = events + kMostPendingPrefix + 2 * kMostAround;
  if (events > kMostEvents ||
      pairs_ > with_effort(kPairsForWork * mixed_.work_at_first + kPairsPerEvent * events_)) {
    return false;
  }
  pairs_ += all * all;
  return true;
}

DetectorStatistics BoundedDetector::statistics() const {
  if (!simple_) {
    return detector_.statistics();
  }
  DetectorStatistics all = before_;
  all.misled = history_->misled();
  return all;
}

const std::vector<uint64_t>& BoundedDetector::cycle_counts() const {
  return simple_ ? counts_before_ : detector_.cycle_counts();
}

void BoundedDetector::simplify_if_dear() {
  if (meter_.work() >= mixed_.of(events_).max_work ||
      judging_ > kCandidatesBudget.of(events_).max_work) {
    simplify();
  }
}

void BoundedDetector::simplify() {
  const bool bounded =
      options_.policy == DetectorPolicy::kTso || options_.policy == DetectorPolicy::kRobustness;
  if (simple_ || !bounded || !callbacks_.on_candidate || options_.history_events == 0 ||
      events_ == 0) {
    return;
  }
  const DetectedSlice kept =
      detector_.slice(end_ - std::min(end_, options_.history_events), end_ - 1);
  before_ = detector_.statistics();
  counts_before_ = detector_.cycle_counts();
  simple_ = true;
  work_before_ = meter_.work();
  history_.emplace(detector_.release_history());
  detector_ = Detector(symbols_, options_, {});  // what it remembers goes
  const WorkScope scope(&meter_);
  // Stores that may have been in a buffer stand in front, apart from the rest.
  spread(kept.events, kept.pending_prefix, kept.index[kept.pending_prefix]);
}

void BoundedDetector::spread(const EventBlock& block, size_t from, uint64_t first_index) {
  if (options_.policy == DetectorPolicy::kRobustness) {
    return;  // an execution in which stores commit at once is one of SC
  }
  for (size_t i = from; i < block.events.size(); ++i) {
    const Event& event = block.events[i];
    waiting_.push_back({event, block.hi(event), first_index++});
    Event& own = waiting_.back().event;
    own.has_hi = own.has_read_value = own.has_write_value = 0;
    own.span_or_extra = 0;
    if (event.kind() == EventKind::kWrite) {
      own.set_kind(EventKind::kReadModifyWrite);  // it conflicts with the same, and commits at once
    }
    arrived_ = std::max(arrived_, own.lo);
    if (waiting_.size() >= ahead_ + kSpreadTogether) {
      look_at_spread(false);
    }
  }
}

// Events of a thread in one interval follow each other in equal steps, and those of its next one,
// which may begin before that ends.
void BoundedDetector::place_waiting() {
  std::unordered_map<ThreadId, std::vector<Waiting*>> together;
  const auto place = [this](ThreadId thread, std::vector<Waiting*>* events) {
    int64_t& last = spread_to_.try_emplace(thread, INT64_MIN).first->second;
    const int64_t lo = events->front()->event.lo;
    const auto width = static_cast<uint64_t>(events->front()->hi) - static_cast<uint64_t>(lo);
    for (size_t i = 0; i < events->size(); ++i) {
      const auto step = static_cast<unsigned __int128>(width) * (i + 1) / (events->size() + 1);
      // Unsigned: an interval may be everything.
      const uint64_t at = static_cast<uint64_t>(lo) + static_cast<uint64_t>(step);
      last = std::max(last, static_cast<int64_t>(at));
      (*events)[i]->event.lo = last;
    }
    events->clear();
  };
  for (size_t i = ahead_; i < waiting_.size(); ++i) {
    Waiting& waiting = waiting_[i];
    std::vector<Waiting*>& events = together[waiting.event.thread];
    if (!events.empty() &&
        (events.front()->event.lo != waiting.event.lo || events.front()->hi != waiting.hi)) {
      place(waiting.event.thread, &events);
    }
    events.push_back(&waiting);
  }
  for (auto& [thread, events] : together) {
    place(thread, &events);
  }
  const auto earlier = [](const Waiting& a, const Waiting& b) { return a.event.lo < b.event.lo; };
  const auto behind = waiting_.begin() + static_cast<ptrdiff_t>(ahead_);
  std::stable_sort(behind, waiting_.end(), earlier);
  std::inplace_merge(waiting_.begin(), behind, waiting_.end(), earlier);
}

void BoundedDetector::look_at_spread(bool all) {
  place_waiting();
  // What lies behind the events that have come waits for others that may lie before it.
  const auto come =
      std::partition_point(waiting_.begin(), waiting_.end(),
                           [this](const Waiting& waiting) { return waiting.event.lo <= arrived_; });
  auto count = static_cast<size_t>(come - waiting_.begin());
  if (all || waiting_.size() - count > kMostAhead) {
    count = waiting_.size();
  }
  for (size_t from = 0; from < count; from += kSpreadTogether) {
    detect_in_spread(from, std::min(count, from + kSpreadTogether));
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
  ahead_ = waiting_.size();
  std::erase_if(spread_to_, [this](const auto& one) { return one.second <= arrived_; });
}

void BoundedDetector::detect_in_spread(size_t from, size_t to) {
  const uint64_t first = spread_events_;
  EventBlock block;
  for (size_t i = from; i < to; ++i) {
    // One after the other, also where many had to be at one time.
    waiting_[i].event.lo = static_cast<int64_t>(spread_events_++);
    block.events.push_back(waiting_[i].event);
    places_.push_back(waiting_[i].index);
  }
  while (places_.size() > options_.history_events) {
    places_.pop_front();
  }
  // A new one for each portion: what overlaps lies close together, and what a location has to
  // remember, where nothing is ever over, stays small.
  DetectorOptions options = options_;
  options.policy = DetectorPolicy::kSc;
  options.history_events = 0;
  DetectorCallbacks callbacks;
  callbacks.on_cycle = [this](const DetectedCycle& cycle) { add_cycle_of_spread(cycle); };
  Detector(symbols_, options, callbacks).add(block, first);
}

// Its units, where they are in the input.
void BoundedDetector::add_cycle_of_spread(const DetectedCycle& cycle) {
  const uint64_t kept_from = spread_events_ - places_.size();
  DetectedCycle own = cycle;
  for (DetectedStep& step : own.steps) {
    if (step.unit.first < kept_from) {
      return;
    }
    step.unit.first = places_[step.unit.first - kept_from];
    step.unit.last = places_[step.unit.last - kept_from];
  }
  closed_.push_back(std::move(own));
}

void BoundedDetector::report_cycles() {
  for (const DetectedCycle& cycle : std::exchange(closed_, {})) {
    DetectedCandidate candidate;
    for (const DetectedStep& step : cycle.steps) {
      candidate.units.push_back(step.unit);
    }
    std::sort(candidate.units.begin(), candidate.units.end(),
              [](const DetectedUnit& a, const DetectedUnit& b) { return a.first < b.first; });
    uint64_t last = 0;
    for (const DetectedUnit& unit : candidate.units) {
      last = std::max(last, unit.last);
      candidate.complete = candidate.complete && unit.merged == 0;
    }
    if (!callbacks_.wants_events || callbacks_.wants_events(candidate)) {
      DetectedSlice found = slice(candidate.units.front().first, last);
      candidate.complete = candidate.complete && found.index.size() != found.pending_prefix &&
                           found.index[found.pending_prefix] == candidate.units.front().first;
      if (candidate.complete) {
        candidate.slice = std::move(found);
      }
    }
    callbacks_.on_candidate(std::move(candidate));
  }
}

}  // namespace tsomon
