#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "offline/check/full_execution.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// Threads of a location whose next loads are looked at.
constexpr size_t kMostAwaited = 64;

}  // namespace

// The machine while it runs.
class ExecutionRun {
 public:
  ExecutionRun(const FullExecutions& all, const ExecutionChoice& choice, std::span<const Edge> open)
      : all_(all),
        in_(all.in_),
        events_(in_.trace.events),
        relation_(in_.relation),
        choice_(choice),
        before_(all.before_) {
    for (const Edge& edge : open) {
      all_.add_open(edge, &open_);
    }
    for (const Edge& edge : open_) {
      ++before_[edge.to];
    }
    std::sort(open_.begin(), open_.end(),
              [](const Edge& a, const Edge& b) { return a.from < b.from; });
    if (all.values_) {
      readers_ = all.readers_;
      of_pair_ = all.of_pair_;
      stored_.assign(of_pair_.size(), 0);
      cells_.resize(relation_.locations().size());
      for (LocationId location = 0; location < cells_.size(); ++location) {
        cells_[location].value = all.values_->initial(location);
      }
    }
    committed_.assign(events_.size(), false);
  }

  std::optional<std::vector<Step>> run() {
    spend(8 * events_.size());
    size_t all_steps = 0;
    threads_.resize(relation_.threads());
    for (ThreadId thread = 0; thread < threads_.size(); ++thread) {
      for (const uint32_t e : relation_.of_thread(thread)) {
        if (is(events_[e], kinds::kNodes)) {
          all_steps += relation_.is_store(e) ? 2 : 1;
        }
      }
    }
    steps_.reserve(all_steps);
    for (ThreadId thread = 0; thread < threads_.size(); ++thread) {
      next_issue(thread);
    }
    while (!ready_.empty() || !delayed_.empty()) {
      Queue& next = ready_.empty() ? delayed_ : ready_;
      const bool delay = !ready_.empty();
      const auto [key, step] = next.top();
      next.pop();
      spend(8);
      now_ = key == 0 || key == UINT64_MAX ? now_ : key;
      attempt(step, delay);
    }
    if (steps_.size() != all_steps) {
      return std::nullopt;
    }
    return std::move(steps_);
  }

 private:
  static constexpr uint64_t kFirst = uint64_t{1} << 40U;
  struct Thread {
    uint32_t issue = 0;       // place of the next event to be issued
    uint32_t commit = 0;      // not before this place is the oldest store of the buffer
    uint32_t oldest = kNone;  // store in the buffer
    uint32_t buffered = 0;
    uint64_t ahead = 0;  // of its place in the input; modulo 2^64
  };
  struct Cell {
    std::optional<uint64_t> value;
    uint32_t store = kNone;         // that wrote it
    uint32_t held = 0;              // a lock: by so many
    bool alone = false;             // by one that excludes readers
    std::vector<uint32_t> waiting;  // steps that do not find what they need
    std::vector<uint32_t> stores;   // that would take away what is wanted
    std::vector<uint32_t> loads;    // that are ready to be issued
  };

  bool valued(LocationId location) const {
    return all_.values_ && location != LocationTable::kNone && all_.values_->usable(location);
  }
  Cell& cell(LocationId location) {
    if (cells_.empty()) {
      cells_.resize(relation_.locations().size());
    }
    return cells_[location];
  }

  // Earlier than its place in the input by as much as the last load of its
  // thread was whose value told when it took place.
  uint64_t key_of(uint32_t step) const {
    const uint32_t e = step / 2;
    if (choice_.place.empty()) {
      const uint64_t key = place_of(step);
      const uint64_t ahead = threads_[events_[e].thread].ahead;
      return key == 0 || key == UINT64_MAX ? key : key + kFirst - ahead;
    }
    // Stores commit when it is the turn of their units.
    constexpr uint64_t kInUnit = (uint64_t{1} << 33U) - 1;
    const uint64_t unit = choice_.place[in_.by_event ? e : in_.units.of_event(e)];
    const uint64_t key = step % 2 == 1 && choice_.commit == CommitTime::kAtOnce
                             ? place_of(step - 1) + 1
                             : place_of(step);
    return (unit << 33U) | std::min(key, kInUnit);
  }

  uint64_t place_of(uint32_t step) const {
    const uint32_t e = step / 2;
    const auto at = [](uint32_t event, uint32_t half) { return 2 * uint64_t{event} + half; };
    if (step % 2 == 0) {
      return at(e, 0) + 2;
    }
    switch (choice_.commit) {
      case CommitTime::kUnitEnd:
        return at(in_.units[in_.units.of_event(e)].last_event, 1) + 2;
      case CommitTime::kRemoteAccess:
        return all_.remote_[e] == kNone ? UINT64_MAX : at(all_.remote_[e], 1);
      case CommitTime::kDrain:
        return relation_.visible_by(e) == Relation::kNever ? UINT64_MAX
                                                           : at(relation_.visible_by(e), 1);
      default:
        return 0;
    }
  }

  // The step has nothing left to wait for but what memory holds.
  void offer(uint32_t step) {
    if (before_[step] != 0) {
      return;
    }
    const uint32_t e = step / 2;
    const Thread& thread = threads_[events_[e].thread];
    if (step % 2 == 1) {
      if (thread.oldest != e) {
        return;
      }
    } else {
      const auto of_thread = relation_.of_thread(events_[e].thread);
      if (thread.issue >= of_thread.size() || of_thread[thread.issue] != e ||
          (relation_.drains(e) && thread.buffered > 0)) {
        return;
      }
      const LocationId location = relation_.locations().of_event(e);
      if (relation_.is_read(e) && valued(location)) {
        cells_[location].loads.push_back(e);
      }
    }
    ready_.emplace(key_of(step), step);
  }

  void next_issue(ThreadId number) {
    Thread& thread = threads_[number];
    const auto of_thread = relation_.of_thread(number);
    while (thread.issue < of_thread.size() &&
           !is(events_[of_thread[thread.issue]], kinds::kNodes)) {
      ++thread.issue;
    }
    if (thread.issue < of_thread.size()) {
      offer(2 * of_thread[thread.issue]);
    }
  }

  // What may have waited for an empty buffer.
  void offer_drain(ThreadId number) {
    const auto of_thread = relation_.of_thread(number);
    const uint32_t issue = threads_[number].issue;
    if (issue < of_thread.size() && relation_.drains(of_thread[issue])) {
      offer(2 * of_thread[issue]);
    }
  }

  void find_oldest(ThreadId number) {
    Thread& thread = threads_[number];
    const auto of_thread = relation_.of_thread(number);
    thread.oldest = kNone;
    for (; thread.buffered > 0; ++thread.commit) {
      const uint32_t e = of_thread[thread.commit];
      if (is(events_[e], kinds::kNodes) && relation_.is_store(e) && !committed_[e]) {
        thread.oldest = e;
        offer(2 * e + 1);
        return;
      }
    }
  }

  bool done(uint32_t step) const {
    const uint32_t e = step / 2;
    return step % 2 == 1 ? committed_[e]
                         : threads_[events_[e].thread].issue > relation_.position(e);
  }

  void attempt(uint32_t step, bool delay) {
    const uint32_t e = step / 2;
    if (done(step)) {
      return;  // it was done before its turn
    }
    const LocationId location = relation_.locations().of_event(e);
    if (must_wait(step, location)) {
      cell(location).waiting.push_back(step);
      return;
    }
    if (valued(location) && writes(step)) {
      if (overwrites_unread(e, cells_[location])) {
        cells_[location].stores.push_back(step);
        return;
      }
      read_what_goes(location, e);
      if (delay && is_awaited(location, e)) {
        cells_[location].stores.push_back(step);
        delayed_.emplace(key_of(step), step);
        return;
      }
    }
    perform(step);
  }

  bool writes(uint32_t step) const {
    const uint32_t e = step / 2;
    return step % 2 == 1 || (relation_.drains(e) && !relation_.only_reads(e));
  }

  // The next load of the location that some other thread does wants what is
  // there; or what e writes, and the thread has a store to commit before.
  bool is_awaited(LocationId location, uint32_t e) {
    const Cell& now = cells_[location];
    const auto lists = all_.accesses_.at(location);
    const auto written = all_.values_->written(e);
    if (!now.value || written == now.value || lists.size() > kMostAwaited) {
      return false;
    }
    uint32_t pair = all_.accesses_.first_list(location) / 2;
    spend(lists.size());
    for (const ThreadAccesses& list : lists) {
      const auto& [next, end] = of_pair_[pair];
      const uint32_t stored = stored_[pair++];
      if (list.thread == events_[e].thread || next == end) {
        continue;
      }
      const uint32_t load = all_.loads_[next];
      const auto wanted = all_.values_->read(load);
      const bool stores_before = stored < list.writes.size() &&
                                 relation_.position(list.writes[stored]) < relation_.position(load);
      const uint32_t source = relation_.source(load);
      const bool own = source != Relation::kNever && all_.values_->written(source) == wanted;
      if (wanted == (stores_before ? written : now.value) && !(stores_before && own)) {
        return true;
      }
    }
    return false;
  }

  // Something at its location has to change before the step is possible.
  bool must_wait(uint32_t step, LocationId location) {
    const uint32_t e = step / 2;
    if (location == LocationTable::kNone || step % 2 == 1) {
      return false;
    }
    if (all_.exclusion_ && is(events_[e], kinds::kAcquisitions) && all_.exclusion_->is_section(e)) {
      const Cell& lock = cell(location);
      if (lock.held > 0 && (lock.alone || !relation_.only_reads(e))) {
        return true;
      }
    }
    return valued(location) && !relation_.is_store(e) && !returns_value(e, cells_[location]);
  }

  // What would go is the only thing that some load can have read.
  bool overwrites_unread(uint32_t e, const Cell& now) const {
    return now.store != kNone && readers_[now.store] > (all_.source_[e] == now.store ? 1U : 0U);
  }

  bool returns_value(uint32_t e, const Cell& now) const {
    const auto recorded = all_.values_->read(e);
    if (!recorded) {
      return true;
    }
    const uint32_t source = relation_.source(e);
    if (source != Relation::kNever && !committed_[source]) {
      const auto written = all_.values_->written(source);
      return !written || written == recorded;
    }
    if (all_.source_[e] != kNone && now.store != all_.source_[e]) {
      return false;
    }
    return !now.value || now.value == recorded;
  }

  // Loads that would not find their value any more once e has written.
  void read_what_goes(LocationId location, uint32_t e) {
    const auto written = all_.values_->written(e);
    for (bool more = true; more;) {
      more = false;
      std::vector<uint32_t> loads = std::exchange(cells_[location].loads, {});
      std::vector<uint32_t> left;
      for (const uint32_t load : loads) {
        spend(4);
        if (done(2 * load)) {
          continue;
        }
        const auto recorded = all_.values_->read(load);
        if (load != e && events_[load].thread != events_[e].thread && recorded &&
            (!written || written != recorded || all_.source_[load] == cells_[location].store) &&
            returns_value(load, cells_[location])) {
          perform(2 * load);
          more = true;
        } else {
          left.push_back(load);
        }
      }
      std::vector<uint32_t>& kept = cells_[location].loads;
      kept.insert(kept.end(), left.begin(), left.end());
    }
  }

  void perform(uint32_t step) {
    const uint32_t e = step / 2;
    const ThreadId number = events_[e].thread;
    Thread& thread = threads_[number];
    steps_.push_back({step % 2 == 1, e});
    take_effect(step);
    if (step % 2 == 1) {
      committed_[e] = true;
      --thread.buffered;
      find_oldest(number);
      if (thread.buffered == 0) {
        offer_drain(number);
      }
    } else {
      ++thread.issue;
      if (relation_.is_store(e)) {
        if (thread.buffered++ == 0) {
          thread.commit = thread.issue - 1;
          find_oldest(number);
        }
      }
      next_issue(number);
    }
    const auto follow = [&](uint32_t next) {
      if (--before_[next] == 0) {
        offer(next);
      }
    };
    spend(all_.steps_.successors(step).size());
    for (const uint32_t next : all_.steps_.successors(step)) {
      follow(next);
    }
    for (auto edge =
             std::lower_bound(open_.begin(), open_.end(), step,
                              [](const Edge&open, uint32_t from) { return open.from < from; });
         edge != open_.end() && edge->from == step; ++edge) {
      follow(edge->to);
    }
  }

  // On memory and locks.
  void take_effect(uint32_t step) {
    const uint32_t e = step / 2;
    const LocationId location = relation_.locations().of_event(e);
    if (location == LocationTable::kNone) {
      return;
    }
    const bool takes_effect = step == all_.effect(e);
    if (all_.exclusion_ && takes_effect && is(events_[e], kinds::kLocks) &&
        all_.exclusion_->is_section(e)) {
      Cell& lock = cell(location);
      if (is(events_[e], kinds::kAcquisitions)) {
        ++lock.held;
        lock.alone = !relation_.only_reads(e);
      } else {
        --lock.held;
        wake(&lock);
      }
    }
    if (!valued(location)) {
      return;
    }
    Cell& now = cells_[location];
    if (step % 2 == 0 && !relation_.is_store(e) && all_.values_->read(e)) {
      const uint32_t source = relation_.source(e);
      if (source == Relation::kNever || committed_[source]) {
        now.value = all_.values_->read(e);  // if it was not known
      }
      if (all_.source_[e] != kNone) {
        --readers_[all_.source_[e]];
      }
      ++of_pair_[all_.accesses_.list_of(e) / 2].begin;
      if (choice_.place.empty()) {
        threads_[events_[e].thread].ahead = kFirst + place_of(step) - now_;
      }
      offer_again(&now.stores);
    }
    if (writes(step)) {
      now.value = all_.values_->written(e);
      now.store = e;
      ++stored_[all_.accesses_.list_of(e) / 2];
      wake(&now);
    }
  }

  void wake(Cell* cell) {
    offer_again(&cell->waiting);
    offer_again(&cell->stores);
  }

  void offer_again(std::vector<uint32_t>* steps) {
    for (const uint32_t step : std::exchange(*steps, {})) {
      spend(1);
      ready_.emplace(key_of(step), step);
    }
  }

  using Ready = std::pair<uint64_t, uint32_t>;  // key, step
  using Queue = std::priority_queue<Ready, std::vector<Ready>, std::greater<>>;

  const FullExecutions& all_;
  const OrderedUnits& in_;
  const std::vector<Event>& events_;
  const Relation& relation_;
  ExecutionChoice choice_;
  std::vector<uint32_t> before_;  // by step: how many are to come before it yet
  std::vector<Edge> open_;        // between steps
  std::vector<uint32_t> readers_;
  std::vector<FullExecutions::ValuedLoads> of_pair_;  // that are to be issued yet
  std::vector<Cell> cells_;                           // by location
  std::vector<uint32_t> stored_;  // by pair of lists: how many stores have committed
  std::vector<bool> committed_;
  std::vector<Thread> threads_;
  uint64_t now_ = kFirst;  // key of the step that is performed
  Queue ready_;
  Queue delayed_;  // what is possible and better waits; also in Cell::stores
  std::vector<Step> steps_;
};

std::optional<std::vector<Step>> FullExecutions::make(const ExecutionChoice& choice,
                                                      std::span<const Edge> open) const {
  if (choice.commit == CommitTime::kOnDemand) {
    std::vector<Step> steps;
    if (!constrained() && !choice.place.empty()) {
      steps = on_demand(choice.place, open);
    }
    return steps.empty() ? std::nullopt : std::optional(std::move(steps));
  }
  return ExecutionRun(*this, choice, open).run();
}

}  // namespace tsomon
