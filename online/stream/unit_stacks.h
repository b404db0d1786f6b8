// Which units were open where a slice of the history begins.
//
// Purpose     A slice that begins inside a unit has lost its beginning, and what follows would
//             seem to be outside of every unit. So must the part of a unit that follows a condition
//             wait: its first event is the wait.
// Contract    Events come in program order inside each thread, with increasing indices.
// Complexity  add(): O(1). start_block(): the threads with boundaries since the last one.
// Memory      Of each thread what is open now, and at the beginnings of the blocks of the history
//             before which it changed.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tso/model/event.h"

namespace tsomon {

class UnitStacks {
 public:
  static constexpr ThreadId kNoThread = 0xFFFFFFFFU;
  static constexpr uint32_t kBoundaries = kind_mask(EventKind::kUnitBegin) |
                                          kind_mask(EventKind::kUnitEnd) |
                                          kind_mask(EventKind::kWait);
  struct Boundary {
    Event event;
    uint64_t index = 0;
  };

  void add(const Event& event, uint64_t index) {
    if (is(event, kBoundaries)) {
      change(event, index);
    }
  }
  // Events of the thread, or of all (kNoThread), are missing before event `index`: what it had open
  // has ended.
  void lost(ThreadId thread, uint64_t index);
  // What follows is in a new block; the oldest one that is kept begins at event `oldest`.
  void start_block(uint64_t first, uint64_t oldest);

  // What these threads had open before an event, by index: the begins, and of each thread the
  // latest wait, if there is one. `events` are those from the beginning of the event's block up to
  // it.
  std::vector<Boundary> open_at(const std::unordered_set<ThreadId>& threads, uint64_t block_first,
                                std::span<const Event> events) const;

 private:
  struct Stack {
    std::vector<Boundary> begins;
    std::vector<Boundary> wait;  // at most one, of the outermost unit

    void apply(const Event& event, uint64_t index);
    void clear() {
      begins.clear();
      wait.clear();
    }
  };
  struct Version {
    uint64_t first = 0;  // of the block
    Stack stack;
  };
  struct Loss {
    uint64_t index = 0;
    ThreadId thread = 0;
  };
  struct Changed {
    uint64_t first = 0;
    std::vector<ThreadId> threads;
  };
  struct Live {
    Stack stack;
    bool changed = false;  // since the last block began
  };

  void change(const Event& event, uint64_t index);
  const Stack* at_block(ThreadId thread, uint64_t first) const;
  Live& live(ThreadId thread);
  void forget(uint64_t oldest);

  std::vector<Live> live_;  // by thread
  std::vector<ThreadId> changed_;
  std::unordered_map<ThreadId, std::deque<Version>> versions_;
  std::deque<Changed> pushed_;  // which versions begin with which block
  std::deque<Loss> losses_;
};

}  // namespace tsomon
