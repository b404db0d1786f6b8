// One thread of a live capture (live.h): what was handed over of it, in that order,
// and its events.
//
// Laziness    add_...() only keep what they are given; work() looks into it.
// Chunks      The records of a chunk come in parts, each a longer beginning of the chunk. The
//             records of a signal handler have chunks of their own, after the one that it
//             interrupted.
// Complexity  Linear, but that the unfinished chunk of a thread is decoded anew for each round.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/decoder.h"
#include "decoders/capture/format.h"
#include "decoders/capture/stream.h"
#include "decoders/capture/tokens.h"

namespace tsomon::capture {

// What the threads of a capture have in common.
struct LiveContext {
  explicit LiveContext(Names& names, uint64_t max_records)
      : names(names), records_left(max_records) {}
  Names& names;
  uint64_t records_left;
  bool full = false;         // there were more
  bool has_trailer = false;  // the process said that it wrote everything
  int64_t patience = 0;      // cycles; see ThreadStream::observe()
  int64_t margin = 0;        // cycles by which the processors' counters may differ
  size_t backlog = 0;        // bytes that no thread has looked into
  std::vector<std::string> problems;
  std::vector<std::unique_ptr<Decoder>> decoders;  // of handlers, by depth
  DecoderPool pool;
};

class LiveThread {
 public:
  LiveThread(uint32_t number, LiveContext& context, uint64_t expected, int64_t promise)
      : context_(&context),
        stream_(number, context.names),
        expected_(expected),
        promise_(promise) {}

  void cut_after(int64_t stamp) { stream_.cut_after(stamp); }
  // An events chunk.
  void add_chunk(uint64_t sequence, std::string&& payload);
  // An observation: OpenEntry, and the part of the chunk that is known.
  void add_open(uint64_t sequence, std::string&& payload);
  // `excepted`: the round says nothing of this thread.
  void add_round(int64_t since, bool excepted);
  // Nothing that comes next needs to be known for what came so far.
  void add_pause();
  void add_end();

  // Looks into what was added until `events` events are ready (and some more), or all was seen.
  void work(size_t events);
  size_t ready() const { return stream_.ready(); }
  void give(EventBlock& out) { stream_.give(out); }
  // No event that was not given begins earlier.
  int64_t promise() const { return promise_; }
  bool ended() const { return ended_; }
  uint64_t chunks() const { return expected_; }  // that were delivered
  const ThreadStream& stream() const { return stream_; }

 private:
  enum class Kind : uint8_t { kChunk, kOpen, kRound, kPause, kEnd };
  struct Task {
    Kind kind = Kind::kPause;
    uint64_t sequence = 0;
    std::string payload;
    int64_t since = 0;
    bool excepted = false;
    bool begun = false;
    OpenEntry entry;
    size_t counted = 0;  // of the backlog
  };
  struct Item {
    std::string payload;
    size_t tokens = 0;  // where they begin in it
    ChunkStart start;
    bool whole = false;
    // There is something to deliver of a part. Not when the chunk of a handler comes: that may
    // have interrupted further on. What comes next of the interrupted chunk reaches that far.
    bool told = false;
    uint64_t delivered = 0;  // records
    bool entered = false;
    bool consumed = false;  // of a handler: all was delivered
  };
  using Items = std::map<uint64_t, Item>;
  // Of the records of a chunk.
  struct Delivery {
    bool begun = false;
    uint64_t number = 0;  // records seen
    Items::iterator inner;
  };

  void add(Task&& task);
  void end();
  Decoder& decoder();
  bool perform(Task& task, size_t limit);
  void store(uint64_t sequence, std::string&& payload, size_t from, bool whole);
  bool open(Task& task, size_t limit);
  void observe_round(const Task& task);
  bool advance(size_t limit);
  bool rest_is_missing() const;
  bool deliver(uint64_t sequence, Item& item, size_t depth, bool handlers, Delivery& delivery,
               Decoder& decoder, size_t limit);
  Items::iterator interruption(uint64_t sequence, uint64_t from);
  Items::iterator interrupted(uint64_t sequence, Items::iterator inner, size_t depth);
  void stop_at(Decoder& decoder, Items::iterator inner) const;
  void problem(std::string text) { context_->problems.push_back(std::move(text)); }

  LiveContext* context_;
  ThreadStream stream_;
  std::deque<Task> tasks_;
  Items items_;        // by sequence
  uint64_t expected_;  // sequence of the chunk that is being delivered
  int64_t promise_;
  std::unique_ptr<Decoder> decoder_;  // while there is something to decode
  Delivery delivery_;
  bool saw_end_ = false;  // its last record
  bool at_end_ = false;   // of the capture
  bool ended_ = false;
  bool open_operation_ = false;  // the last record is one that was not completed yet
};

}  // namespace tsomon::capture
