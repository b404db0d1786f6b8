// The conflict relation of a trace: which two events are ordered, and how firmly.
//
// Source      Theory sections 2, 5.1, 5.2, 5.4 (Enea & Farzan, TACAS 2016, and refinements).
// Purpose     Answers the order of any two events in O(1) from per-event facts that one O(n) pass
//             computes: by when a store has certainly committed, and which own store a load may be
//             forwarded from. Everything that builds graphs asks here.
// Mixed sizes A load that overlaps the newest matching store of its own buffer without lying inside
//             it cannot be forwarded; it waits until that store has committed, as x86 processors
//             do. A processor that combined bytes of buffer and memory in one load would be
//             modelled wrongly; none is known.
// Locks       rel(l) is ordered before the acq(l) that reads it, the latest release that
//             certainly came earlier; what the releasing thread did until then has taken effect
//             when the acquisition is over. Reader locks conflict with writers only.
// Hand-overs  A post comes before a take, and a send before a receive, as hand_over.h says; what the
//             thread did until then has taken effect when the take or receive is over.
// Threads     fork drains the parent's buffer; a thread's buffer is empty when it has been joined.
// Misses      System calls and interrupts drain store buffers too, but no event says so: some
//             undirected edges are really directed, which can only turn `definite` or
//             `serializable` into `possible`.
// Thread-safety: immutable after construction; the trace must outlive it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tso/model/hand_over.h"
#include "tso/model/location_table.h"
#include "tso/model/trace.h"

namespace tsomon {

enum class MemoryModel : uint8_t { kSc, kTso };
enum class Semantics : uint8_t { kExact, kPaper };
enum class TraceOrder : uint8_t {
  kIssue,   // intervals order events of different threads
  kThread,  // nothing is known across threads (but fork and join)
};

struct RelationOptions {
  MemoryModel model = MemoryModel::kTso;
  Semantics semantics = Semantics::kExact;
  TraceOrder order = TraceOrder::kIssue;
  uint32_t store_buffer = 0;    // capacity in stores; 0: unbounded
  bool fenced_release = false;  // rel(l) is a locked operation
  // Refinements that only remove executions; without one, verdicts are at most weaker.
  bool lock_order = true;    // rel(l) comes before the acq(l) that reads it; hand-overs
  bool thread_order = true;  // fork comes before the child's events, these before join; else open
};

enum class Order : uint8_t { kNone, kBefore, kAfter, kUndirected };

class Relation {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFU;

  Relation(const Trace& trace, const LocationTable& locations, const RelationOptions& options);

  const Trace& trace() const { return *trace_; }
  const LocationTable& locations() const { return *locations_; }
  const RelationOptions& options() const { return options_; }

  // How e relates to f, e != f, both nodes of the event graph (kinds::kNodes). Directed edges that
  // follow from others may be missing; see theory section 2 for what is asked.
  Order between(uint32_t e, uint32_t f) const;

  // Both access a common byte, in different threads, and not both only read.
  bool conflict(uint32_t e, uint32_t f) const;

  // e has certainly happened before f was issued, by the clock (different threads).
  bool certainly_before(uint32_t e, uint32_t f) const {
    return options_.order == TraceOrder::kIssue && hi_[e] < trace_->events[f].lo;
  }

  int64_t lo(uint32_t e) const { return trace_->events[e].lo; }
  int64_t hi(uint32_t e) const { return hi_[e]; }

  // The event of e's thread by whose completion the effect of e is in memory: e itself for loads
  // and locked operations, for a store the next event that finds it drained. kNever: unknown.
  uint32_t visible_by(uint32_t e) const { return visible_by_[e]; }
  // When every conflicting event that begins later is ordered after e; kTimeMax: never.
  int64_t visible_at(uint32_t e) const { return visible_at_[e]; }
  // The newest own store that the load may be forwarded from, or kNever.
  uint32_t source(uint32_t e) const { return source_[e]; }
  // For acq(l): the rel(l) of another thread that it reads; else kNever.
  uint32_t lock_source(uint32_t e) const { return lock_source_.empty() ? kNever : lock_source_[e]; }
  // Posts and sends that come before takes and receives of other threads.
  const std::vector<HandOver>& hand_overs() const { return hand_overs_; }
  bool hands_over(uint32_t e, uint32_t f) const {
    return !hand_overs_.empty() && is(trace_->events[f], kinds::kHandOvers) &&
           is(trace_->events[e], kinds::kHandOvers) && found_hand_over(e, f);
  }
  // Where the event of a thread lies in its program order (all events counted).
  uint32_t position(uint32_t e) const { return position_[e]; }
  // All events of a thread, in program order: position() is the place in it.
  std::span<const uint32_t> of_thread(ThreadId thread) const {
    return {in_threads_.data() + thread_begin_[thread],
            in_threads_.data() + thread_begin_[thread + 1]};
  }
  const std::vector<uint32_t>& acquisitions() const { return acquisitions_; }    // of locks
  const std::vector<uint32_t>& thread_events() const { return thread_events_; }  // fork, join
  ThreadId threads() const { return static_cast<ThreadId>(thread_begin_.size() - 1); }

  // Waits in the store buffer: a store or a send.
  bool is_store(uint32_t e) const { return is(trace_->events[e], kinds::kBuffered) && !drains(e); }
  bool drains(uint32_t e) const {
    const Event& event = trace_->events[e];
    return is(event, kinds::kDrains) ||
           (options_.fenced_release && event.kind() == EventKind::kRelease);
  }
  bool is_read(uint32_t e) const { return trace_->events[e].kind() == EventKind::kRead; }
  // Loads and reader locks: two of them never conflict.
  bool only_reads(uint32_t e) const { return is(trace_->events[e], kinds::kOnlyReads); }

 private:
  void number_events();
  void find_visible_stores();
  void find_lock_sources();
  void find_visible_times();
  bool found_hand_over(uint32_t e, uint32_t f) const;
  bool ordered_in_thread(uint32_t e, uint32_t f) const;  // e before f in program order
  bool directed(uint32_t e, uint32_t f) const;           // conflict(e, f)

  const Trace* trace_;
  const LocationTable* locations_;
  RelationOptions options_;
  std::vector<int64_t> hi_;
  std::vector<uint32_t> visible_by_;
  std::vector<uint32_t> source_;
  std::vector<uint32_t> lock_source_;  // empty: there is none
  std::vector<HandOver> hand_overs_;
  std::vector<uint32_t> position_;
  std::vector<uint32_t> in_threads_;    // the events, one thread after the other
  std::vector<uint32_t> thread_begin_;  // in in_threads_
  std::vector<int64_t> visible_at_;
  std::vector<uint32_t> releases_;  // events
  std::vector<uint32_t> acquisitions_;
  std::vector<uint32_t> thread_events_;
};

}  // namespace tsomon
