// What could have happened in other schedules, asked of slices of a run while it goes on.
//
// Purpose     Keeps the latest events. Where locks were taken in both orders, or two threads came
//             close to each other on the same data, it asks offline/predict about the events around
//             that, on a thread of its own; the run does not wait.
// Slices      `slice_events` events, of which a quarter comes after what gave the occasion. An
//             occasion is a new pair of locks in both orders, or a new pair of places in the source
//             whose accesses conflict, are no further than kNear events from each other and hold no
//             common lock.
// Start       What happened before a slice is fixed: its witnesses are schedules of the rest.
// Budget      One slice at a time: occasions that come while it is looked at are left out and
//             counted, and so is everything once `max_work` is used up.
// Misses      What is further apart than a slice is long.
// Memory      `slice_events` events of 32 bytes, twice, and the model of the slice that is asked.
// Thread-safety: none; it has a thread of its own.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "monitor/events/event_follower.h"
#include "monitor/predict/predict.h"
#include "tso/support/flat_map.h"

namespace tsomon {

struct SliceOptions {
  PredictOptions asked;
  uint64_t slice_events = 50'000;
  bool knows_atomics = false;          // as EventSource
  uint64_t max_work = 20'000'000'000;  // of all slices
};

struct SliceSummary {
  uint64_t events = 0;
  uint64_t slices = 0;     // asked about
  uint64_t left_out = 0;   // occasions
  uint64_t predicted = 0;  // of all kinds
};

class SlicePredictor : public EventFollower {
 public:
  // Of each slice what had not been predicted before, if anything.
  using Report = std::function<void(const Prediction&)>;

  SlicePredictor(const SliceOptions& options, Report report);
  ~SlicePredictor() override;

  void add(const EventBlock& block, const Symbols& symbols, const ReportNames& names) override;
  void idle(const ReportNames& names) override;
  void finish(const Symbols& symbols, const ReportNames& names) override;

  const SliceSummary& summary() const { return summary_; }

 private:
  static constexpr uint64_t kNear = 2'000;
  static constexpr uint64_t kNoLock = UINT64_MAX;
  static constexpr size_t kMaxKnown = 1U << 20;  // cells and pairs that are remembered

  struct Access {
    uint64_t number = 0;
    ThreadId thread = 0;
    uint32_t location = 0;
    bool writes = false;
    // That the thread held first, and last. Others are not known.
    uint64_t outer_lock = kNoLock;
    uint64_t inner_lock = kNoLock;
  };
  struct Accesses {
    Access last;
    Access write;
  };
  struct Kept {
    EventBlock block;
    uint64_t first = 0;  // number of its first event
  };

  void examine(const Event& event);
  void access(const Event& event);
  bool near_miss(const Access& mine, const Access& other);
  void acquire(const Event& event);
  void release(const Event& event);
  std::vector<uint64_t>& held(ThreadId thread);
  void want();
  void ask(const Symbols& symbols);
  void take(const ReportNames& names, bool wait);
  void drop_known(Prediction* prediction);

  const SliceOptions options_;
  const Report report_;
  SliceSummary summary_;
  std::deque<Kept> kept_;
  std::optional<uint64_t> ask_at_;           // number of the event at which the slice is complete
  std::vector<std::vector<uint64_t>> held_;  // locks, by thread
  FlatMap<uint64_t, Accesses> accesses_;     // by address
  std::set<std::pair<uint64_t, uint64_t>> lock_orders_;
  std::set<std::pair<uint32_t, uint32_t>> near_;  // places that were an occasion
  FlatMap<uint64_t, uint32_t> sizes_;             // of objects, by address
  std::set<std::string> known_;                   // fingerprints
  StopFlag stop_;
  std::future<Prediction> running_;
  uint64_t work_ = 0;
};

}  // namespace tsomon
