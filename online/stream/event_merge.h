// Several streams of events become one, ordered by the start of the intervals (`lo`).
//
// Purpose     What the detector is fed with. Blocks are pushed when they come; next() gives what
//             can no longer be preceded by anything. Used directly by inputs that read a file, and
//             by StreamMerger, which adds the threads.
// Order       By `lo`, then by the rank of the stream, then by the place in the stream: the order
//             that std::stable_sort gives to the streams put one after the other by rank. Events
//             of a stream should not go back in `lo`; one that does stays after its predecessor.
//             The events of one thread belong into one stream, unless their times differ.
// Watermark   A stream promises that nothing earlier than the last event pushed, or than the time
//             given to promise(), follows. While a stream has nothing to offer, only what comes
//             before its promise is given out. A closed stream holds nothing up.
// Bound       With more than max_held blocks held, overtake() goes on without the streams that hold
//             the others up; what they bring later is late.
// Loss        Late events are given out at once and counted; events known to be lost are given out
//             as a Loss at their place in the stream. With either, complete() is false.
// Complexity  Amortised O(1) an event inside a run of one stream, O(log streams) at the end of a
//             run; runs are copied as a whole. Overtaking is O(streams) a block.
// Memory      The blocks held, and 100 bytes a stream. Emptied blocks are kept and given back by
//             take_block(): no allocation in the steady state.
// Thread-safety: none.
// Misses      Nothing checks the promises: one that is broken shows as late events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon {

// Events that are known to be missing, between the events of the stream before and after it.
struct EventLoss {
  static constexpr ThreadId kUnknownThread = 0xFFFFFFFFU;
  ThreadId thread = kUnknownThread;
  uint64_t events = 0;  // 0: how many is not known
};

struct MergeStatistics {
  uint64_t events = 0;     // given out
  uint64_t late = 0;       // ... below what had been given out before them
  uint64_t lost = 0;       // sum of EventLoss::events
  uint64_t losses = 0;     // number of EventLoss
  uint64_t overtaken = 0;  // times that a stream was not waited for
  uint64_t held = 0;       // blocks, now
};

class EventMerge {
 public:
  using Stream = uint32_t;

  explicit EventMerge(size_t max_held = SIZE_MAX) : max_held_(max_held) {}

  // A stream whose events are not earlier than `since`. Open streams have different ranks.
  Stream open(uint64_t rank, int64_t since = kTimeMin);
  // The next events of the stream; `block` may be empty.
  void push(Stream stream, EventBlock&& block);
  void lose(Stream stream, const EventLoss& loss);
  // Nothing earlier than `time` follows. Earlier promises stay valid.
  void promise(Stream stream, int64_t time);
  // Nothing follows. The number is given out again when everything of the stream was given out.
  void close(Stream stream);

  // Appends at most about `max_events` events to `out`; false when there is nothing to give out
  // now. `losses` (appended) lie before the events of this call.
  bool next(EventBlock& out, std::vector<EventLoss>& losses, size_t max_events);

  // The stream that next() is waiting for; nothing when it can go on or all are closed.
  std::optional<Stream> waiting_for() const;
  // When next() waits and more than max_held blocks are held: goes on by a block. False otherwise.
  bool overtake();
  bool is_open(Stream stream) const { return states_[stream].open && !states_[stream].closed; }
  bool empty() const { return open_ == 0; }  // all streams are closed and given out

  // An empty block, with the memory of one that was given out if there is one.
  EventBlock take_block();
  size_t spare_blocks() const { return spare_.size(); }

  const MergeStatistics& statistics() const { return statistics_; }
  bool complete() const { return statistics_.late == 0 && statistics_.losses == 0; }

 private:
  struct Key {
    int64_t time = kTimeMax;
    uint64_t rank = UINT64_MAX;
    bool operator<(const Key& other) const {
      return time != other.time ? time < other.time : rank < other.rank;
    }
  };
  struct Item {
    EventBlock block;
    EventLoss loss;
    bool is_loss = false;
  };
  struct State {
    uint64_t rank = 0;
    int64_t time = kTimeMin;  // of the last event given out, or promised: keys do not go back
    int64_t promised = kTimeMin;
    std::vector<Item> items;
    size_t first_item = 0;
    size_t next_event = 0;  // in the first item
    bool open = false;
    bool closed = false;  // by close(); still open while it has events
    bool has_item() const { return first_item != items.size(); }
  };

  void pop_item(State& state);
  void update(Stream stream);  // its key, and the tree above
  void grow();
  Key runner_up(Stream winner) const;
  void copy(State& state, const Key& until, EventBlock& out, size_t max_events);

  size_t max_held_;
  std::vector<State> states_;
  std::vector<Stream> free_;
  size_t open_ = 0;
  // A tournament: leaves_ (a power of two) of keys, and above them the stream that won.
  size_t leaves_ = 0;
  std::vector<Key> keys_;
  std::vector<Stream> winners_;  // node n has children 2n and 2n + 1; the leaves come last
  int64_t high_ = kTimeMin;      // the latest given out
  std::vector<EventBlock> spare_;
  MergeStatistics statistics_;
};

}  // namespace tsomon
