// Event streams of several threads enter, one ordered stream comes out on another thread.
//
// Purpose     The way from threads that see events to the one that judges them. What is ordered how
//             is EventMerge's business; here are the threads and the memory.
// Contract    open() gives a handle to a producer, at any time and from any thread; a handle
//             belongs to one thread at a time. Events are collected in blocks, which flush() or a
//             full block hands over. Everything else belongs to one consumer.
// Watermark   A producer that is silent holds up all: it calls flush() and advance() from time to
//             time, or is overtaken once half of the blocks wait for it. A stream that is opened by
//             the thread of another stream is late in nothing when `since` is not earlier than what
//             that one has handed over or promised. advance() costs one store.
// Memory      max_blocks blocks of block_events events (32 bytes each and what belongs to them),
//             two more for each open stream. All blocks are recycled: no allocation in the steady
//             state. With none left a producer waits for the consumer, or drops its events and
//             counts them.
// Loss        Late and lost events: see EventMerge.
// Source      D. Desrochers' moodycamel::ConcurrentQueue carries the blocks (lock-free; order is
//             kept for each producer).
// Complexity  add() writes one event; a block costs a few atomic operations.
// Thread-safety: as said above. The merger outlives its streams.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "online/stream/event_merge.h"
#include "tso/model/trace.h"

namespace tsomon {

struct StreamMergerOptions {
  size_t block_events = 512;
  size_t max_blocks = 2048;
  bool drop_when_full = false;  // else the producer waits
};

class StreamMerger {
  struct Block;
  struct Shared;
  class Impl;

 public:
  // Of one producer. Closed by its destructor.
  class Stream {
   public:
    Stream() = default;
    Stream(Stream&& other) noexcept;
    Stream& operator=(Stream&& other) noexcept;
    ~Stream() { close(); }

    // Events in program order of their thread; see EventBlock::add.
    void add(const Event& event, int64_t lo, int64_t hi, std::optional<uint64_t> read_value = {},
             std::optional<uint64_t> write_value = {});
    // Events are missing here.
    void lost(const EventLoss& loss);
    // Hands over what was added.
    void flush();
    // flush(), and the promise that nothing earlier than `time` follows.
    void advance(int64_t time);
    void close();
    bool is_open() const { return impl_ != nullptr; }

   private:
    friend class StreamMerger;
    bool take_block();

    Impl* impl_ = nullptr;
    std::shared_ptr<Shared> shared_;
    Block* block_ = nullptr;  // being filled
    uint64_t dropped_ = 0;
    ThreadId dropped_thread_ = EventLoss::kUnknownThread;
  };

  explicit StreamMerger(const StreamMergerOptions& options = {});
  ~StreamMerger();
  StreamMerger(const StreamMerger&) = delete;
  StreamMerger& operator=(const StreamMerger&) = delete;

  // Any thread. Streams are ranked in the order of their opening.
  Stream open(int64_t since = kTimeMin);

  // The consumer. As EventMerge::next: false when nothing can be given out now.
  bool next(EventBlock& out, std::vector<EventLoss>& losses, size_t max_events = 4096);
  // Returns when a producer handed something over or promised something since the last next() that
  // gave nothing, when wake() was called, or after `time`.
  void wait(std::chrono::milliseconds time);
  // Every stream that was opened is closed, and everything was given out.
  bool drained();
  const MergeStatistics& statistics() const;
  bool complete() const;

  // Any thread: ends a wait().
  void wake();
  size_t blocks() const;  // in memory

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
