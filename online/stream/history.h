// The latest events, for the traces of flagged candidates.
//
// Purpose     A flagged candidate is judged on the slice of the input that it spans, so this keeps
//             the last `capacity` events (a little more), and cuts slices out of them.
// Slice     slice() returns the events from `first` to `last`, and before them the stores
//             that may still have been in a store buffer when `first` was issued, and the begins
//             (and the latest wait) of the units that are open then (unit_stacks.h). The stores: of
//             each thread since its last draining event that was certainly over by then, with later
//             draining events and (of the latest block) the loads that had to wait for a store.
//             When those stores committed is not known (Trace::pending_prefix), nor what memory held
//             then, but initial_values() has what earlier stores say. A load that may have been
//             over only after the slice may have read a later store: its value is left out, and
//             is in late_reads. What a
//             take left of a semaphore's count is added to it as its value (hand_over.h).
// Complexity  add(): a copy, and once a block a look at its events, with those in a buffer where it
//             begins and ends. slice(): the slice, and as far back as to the beginning of a
//             block; where a buffer held more than kMaxPending stores then, as far as it held one,
//             at most kMaxLookBack events; times the number of stores in front for loads of byte
//             ranges.
// Memory      32 bytes an event, 8 more for each value or long interval. Where a block begins with
//             more than kMaxInAll stores in buffers slices look back for them; and from where more
//             than kMaxFollowed threads have some at once, which nothing drains, for ever.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "online/stream/late_read.h"
#include "online/stream/lock_words.h"
#include "online/stream/unit_stacks.h"
#include "online/structures/huge_pages.h"
#include "tso/model/hand_over.h"
#include "tso/model/trace.h"

namespace tsomon {

class EventHistory {
 public:
  static constexpr uint64_t kMaxLookBack = 1U << 14;

  // `drains` is the mask of the kinds that drain a store buffer.
  EventHistory(uint64_t capacity, uint32_t drains) : capacity_(capacity), drains_(drains) {}

  // `first_index` is at least the index after the last event added.
  void add(const EventBlock& block, uint64_t first_index);
  void finish() { finished_ = true; }  // nothing more comes
  // Events are missing before event `next` (UnitStacks::lost).
  void lost(ThreadId thread, uint64_t next) {
    if (capacity_ != 0) {
      units_.lost(thread, next);
      counts_.forget();
      words_.forget();
    }
  }

  struct Slice {
    EventBlock events;
    std::vector<uint64_t> index;  // of every event, in the input
    uint32_t pending_prefix = 0;
    // Every store that could have been in a buffer is there. Otherwise the order of the events is
    // still as in the whole input, but values may come from stores that are missing.
    bool all_stores = true;
    std::vector<LateRead> late_reads;
  };
  bool contains(uint64_t first) const { return !blocks_.empty() && blocks_.front().first <= first; }
  uint64_t oldest() const { return blocks_.empty() ? UINT64_MAX : blocks_.front().first; }
  // Stores of buffers that are kept, where blocks begin.
  uint64_t in_buffers() const;
  // The last event, at most so many after `last`, that began before everything from `first` to
  // `last` was over. Requires contains(first).
  uint64_t overlapped(uint64_t first, uint64_t last, uint64_t events) const;
  // Requires contains(first).
  Slice slice(uint64_t first, uint64_t last) const;
  // What memory held where the slice begins, of the ranges that it has loads of with values: where
  // the last store before was to that very range, its value is known, and it and all others had
  // certainly committed. Looks at no more than so many events before.
  std::vector<InitialValue> initial_values(const Slice& slice, uint64_t events) const;
  // Those on it that have been locks so far.
  std::vector<LockWord> lock_words(const Slice& slice) const { return words_.among(slice.events); }
  bool misled() const { return words_.misled(); }

 private:
  static constexpr size_t kBlockEvents = 2048;
  static constexpr size_t kMaxPending = 256;  // of a thread
  static constexpr size_t kMaxInAll = 1U << 16;
  static constexpr size_t kMaxFollowed = 1U << 13;  // threads
  // A store or draining event, and until when it can have been on its way.
  struct Pending {
    uint64_t index = 0;
    Event event;
    int64_t hi = 0;
    std::optional<uint64_t> value;  // written
    int64_t over = kTimeMax;        // when a draining event of the thread or its join was over
  };
  struct Thread {
    std::vector<Pending> pending;
    int64_t overflow = kTimeMin;  // until then `pending` lacks stores
    // Of follow_buffers().
    std::vector<Pending> latest;  // in the block, the last first
    int64_t dropped = kTimeMin;   // as `overflow`, for those that there is no room for
  };
  struct Block {
    uint64_t first = 0;  // index of its first event; the others follow
    Event* memory = nullptr;
    size_t size = 0;
    EventBlock extras;  // of the events, which are not in it
    std::span<const Event> events() const { return {memory, size}; }
    // What may be in a buffer when the block begins, or was not over then.
    std::vector<Pending> pending;
    std::vector<ThreadId> overflow;  // of which `pending` lacks stores
    bool unknown = false;            // of all threads
  };
  // Where the events of blocks are: chunks that grow, up to the size of a huge page. A million
  // events fault in some thousand small pages otherwise, which takes longer than copying them.
  class Memory {
   public:
    Event* take();  // for kBlockEvents

   private:
    struct Free {
      size_t size = 0;  // in events
      void operator()(Event* chunk) const { HugePageAllocator<Event>().deallocate(chunk, size); }
    };
    std::vector<std::unique_ptr<Event, Free>> chunks_;
    size_t size_ = 0;  // of the last one, in events, and what is taken of it
    size_t used_ = 0;
  };
  class LookBack;
  void start_block(uint64_t first_index, int64_t time);
  void add_pending_prefix(std::vector<Pending> pending,
                          const std::vector<UnitStacks::Boundary>& open, Slice* slice) const;
  static void append(const EventBlock& from, size_t begin, size_t end, Block* to);
  void note_count(const EventBlock& from, const Event& event, Event* kept, Block* block);
  void follow_buffers(const Block& block, int64_t time);
  size_t block_of(uint64_t index) const;  // the one that begins last up to there
  // Calls function(block, i) for event i of each block, from event `first` on, until it is false.
  template <typename Function>
  void for_each_from(uint64_t first, const Function& function) const;
  struct Later {
    std::vector<Pending> stores;
    std::optional<int64_t> known_until;  // nothing: for ever
  };
  Later later_stores(uint64_t index, int64_t time) const;
  static std::optional<int64_t> may_read(const Event& load, int64_t hi, uint64_t value,
                                         const Later& later);

  uint64_t capacity_;
  uint32_t drains_;
  uint64_t size_ = 0;
  Memory memory_;
  std::deque<Block> blocks_;
  // Those that had something in the buffer where the last block begins, or may have had.
  std::unordered_map<ThreadId, Thread> followed_;
  bool too_many_ = false;  // to be followed
  // Of follow_buffers(), by thread: the earliest end of a drain that comes after the current event.
  struct Drained {
    int64_t hi = kTimeMax;
    uint64_t round = 0;  // of another one: not drained
  };
  std::vector<Drained> drained_;
  uint64_t round_ = 0;
  UnitStacks units_;
  LockWords words_;
  SemaphoreCounts counts_;
  bool from_start_ = true;  // nothing was dropped yet
  bool finished_ = false;
};

}  // namespace tsomon
