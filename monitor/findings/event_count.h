// How many threads and units the events of an input have, and what a verdict on them rests on.
//
// Contract    Events come in program order inside each thread. A unit is what `tsomon check` says
//             it is: the outermost begin to its end, each part between two condition waits, and
//             every event that matters outside of them. Accesses are loads, stores and locked
//             read-modify-writes: locks of the C library are seen in code that is not instrumented,
//             too, and say nothing about it. It is known which units are cancelled
//             (tso/model/cancelled_units.h): their accesses are events of their own, or of the unit
//             around.
// Complexity  O(1) for an event, without branches on what cannot be foreseen.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/model/idle_iterations.h"
#include "tso/model/trace.h"

namespace tsomon {

class EventCount {
 public:
  void add(const EventBlock& block) {
    constexpr uint32_t kBegin = kind_mask(EventKind::kUnitBegin);
    constexpr uint32_t kEnd = kind_mask(EventKind::kUnitEnd);
    constexpr uint32_t kOutside = kBegin | kinds::kNodes;
    constexpr uint32_t kInside = kind_mask(EventKind::kWait);
    constexpr uint32_t kAccess = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                                 kind_mask(EventKind::kReadModifyWrite) | kind_mask(kIdle);
    constexpr uint32_t kMatters = kinds::kNodes;
    uint64_t units = 0;
    uint64_t larger = 0;
    for (const Event& event : block.events) {
      if (event.thread >= threads_.size()) {
        threads_.resize(event.thread + 1);
      }
      ThreadCount& thread = threads_[event.thread];
      const uint32_t kind = 1U << event.kind_bits;
      const uint32_t inside = thread.depth != 0 ? 1 : 0;
      units += (kind & (inside != 0 ? kInside : kOutside)) != 0 ? 1 : 0;
      matter_ += (kind & kMatters) != 0 ? 1 : 0;
      cancelled_ += (kind & kind_mask(kCancelledBegin)) != 0 ? 1 : 0;
      const uint32_t access = (kind & kAccess) != 0 ? 1 : 0;
      accesses_ += access;
      thread.accesses =
          (kind & (inside != 0 ? kInside : kBegin)) != 0 ? 0 : thread.accesses + access;
      larger += access & inside & (thread.accesses == 2 ? 1U : 0U);
      if ((kind & kBegin) != 0 && inside == 0) {
        begin(event.address);
      }
      thread.depth += (kind & kBegin) != 0 ? 1 : 0;
      thread.depth -= (kind & kEnd) != 0 ? inside : 0;
      thread.seen = 1;
    }
    units_ += units;
    larger_ += larger;
  }
  uint64_t units() const { return units_; }
  uint64_t matter() const { return matter_; }  // events that order anything
  uint64_t accesses() const { return accesses_; }
  uint64_t declared_units() const { return declared_; }  // that somebody began
  uint64_t larger_units() const { return larger_; }      // with two accesses or more
  uint64_t cancelled_units() const { return cancelled_; }
  uint64_t labels() const { return labels_; }  // different ones of declared units
  // Of open units of a thread.
  uint32_t depth(ThreadId thread) const {
    return thread < threads_.size() ? threads_[thread].depth : 0;
  }
  uint32_t threads() const {
    uint32_t all = 0;
    for (const ThreadCount& thread : threads_) {
      all += thread.seen;
    }
    return all;
  }

 private:
  struct ThreadCount {
    uint32_t depth = 0;     // of open units
    uint32_t seen = 0;      // 1: has an event
    uint64_t accesses = 0;  // in the part of the unit that is open
  };

  void begin(uint64_t label) {
    ++declared_;
    // Labels are dense ids; a damaged one is not worth a table of its size.
    if (label < kMaxLabels) {
      if (label >= has_label_.size()) {
        has_label_.resize(label + 1, false);
      }
      labels_ += has_label_[label] ? 0 : 1;
      has_label_[label] = true;
    }
  }

  static constexpr uint64_t kMaxLabels = 1U << 24;

  std::vector<ThreadCount> threads_;
  uint64_t units_ = 0;
  uint64_t matter_ = 0;
  uint64_t accesses_ = 0;
  uint64_t declared_ = 0;
  uint64_t larger_ = 0;
  uint64_t cancelled_ = 0;
  uint64_t labels_ = 0;
  std::vector<bool> has_label_;
};

}  // namespace tsomon
