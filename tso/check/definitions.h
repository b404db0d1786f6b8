// The definitions of theory section 2 as they are written, for the witness checker.
//
// Source      Theory sections 2, 5.2, 5.4 and 5.6. Deliberately shares no code with Relation.
// Purpose     ThreadDefinitions says what is ordered inside a thread among some of the events of a
//             trace, as if there were no others: those of a witness, or all. TraceDefinitions says
//             what the whole trace orders.
// Complexity  By plain loops over what the definitions look at: at most the events of a thread
//             between two drains, and the accesses to the same bytes. Answers are kept.
// Thread-safety: none, for answers are kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tso/model/lock_order.h"
#include "tso/model/relation.h"
#include "tso/support/work.h"

namespace tsomon {

class ThreadDefinitions {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  // Of these events alone. The trace outlives this.
  ThreadDefinitions(const Trace& trace, const RelationOptions& options,
                    std::vector<uint32_t> events);

  const Event& event(uint32_t e) const { return trace_.events[e]; }
  // In its thread; increasing in program order.
  uint32_t position(uint32_t e) const { return position_[place(e)]; }
  bool same_thread(uint32_t e, uint32_t f) const { return event(e).thread == event(f).thread; }

  bool drains(uint32_t e) const;
  bool store(uint32_t e) const;
  bool load(uint32_t e) const { return event(e).kind() == EventKind::kRead; }
  bool load_like(uint32_t e) const { return is(event(e), kinds::kLoadLike); }
  bool reader(uint32_t e) const { return is(event(e), kinds::kOnlyReads); }

  bool same_bytes(uint32_t e, uint32_t f) const;
  bool inside(uint32_t load, uint32_t store) const;
  bool conflict(uint32_t e, uint32_t f) const {
    return !same_thread(e, f) && same_bytes(e, f) && !(reader(e) && reader(f));
  }

  // The event of its thread that finds the store committed; kNone: these events do not say.
  uint32_t visible(uint32_t s) const;
  bool visible_by(uint32_t s, uint32_t e) const {
    const uint32_t by = visible(s);
    return by != kNone && position(by) <= position(e);
  }
  // The newest store that the load may be forwarded from.
  uint32_t source(uint32_t load) const;
  // Directed edge e -> f between events of one thread.
  bool directed_in_thread(uint32_t e, uint32_t f) const;

 protected:
  const Trace& trace_;
  RelationOptions options_;

 private:
  size_t place(uint32_t e) const {
    return all_ ? e
                : static_cast<size_t>(std::lower_bound(events_.begin(), events_.end(), e) -
                                      events_.begin());
  }
  uint32_t newest_match(uint32_t load) const;
  uint32_t find_newest_match(uint32_t load) const;
  uint32_t find_visible(uint32_t s) const;

  std::vector<uint32_t> events_;
  bool all_;                        // that the trace has
  std::vector<uint32_t> position_;  // of each of them
  std::map<ThreadId, std::vector<uint32_t>> threads_;
  // Answers given before: the definitions are asked about every pair of events of a slice.
  mutable std::unordered_map<uint32_t, uint32_t> newest_match_;
  mutable std::unordered_map<uint32_t, uint32_t> visible_;
};

class TraceDefinitions : public ThreadDefinitions {
 public:
  TraceDefinitions(const Trace& trace, const RelationOptions& options);

  // The release by which the thread of an acquisition no longer holds the lock; kNone: the event is
  // none by which it begins to, there is none, the thread waits before it, or others release the
  // lock, too.
  uint32_t end_of_section(uint32_t e) const {
    const auto found = sections_.find(e);
    return found == sections_.end() || given_away_.contains(lock_of(e)) ? kNone : found->second;
  }
  // e starts the thread of f, or f ends that of e.
  bool of_thread(uint32_t e, uint32_t f) const {
    return (event(e).kind() == EventKind::kFork && event(e).address == event(f).thread) ||
           (event(f).kind() == EventKind::kJoin && event(f).address == event(e).thread);
  }
  // e is posted or sent, and f has certainly taken or received it.
  bool handed_over(uint32_t e, uint32_t f) const;
  // Whether what(w) is true of each of the stores and locked operations on bytes of e; it is asked
  // no more after the first of which it is not.
  template <typename What>
  bool all_writers(uint32_t e, const What& what) const {
    return all_on_bytes(writes_, e, what);
  }
  // Events of one lock that are ordered by their beginnings.
  bool of_lock(uint32_t e, uint32_t f) const {
    return is_lock_by_start(event(e)) && is_lock_by_start(event(f)) && same_bytes(e, f);
  }
  bool earlier(uint32_t e, uint32_t f) const {
    if (of_lock(e, f)) {
      return options_.order == TraceOrder::kIssue && trace_.lo(event(e)) < trace_.lo(event(f));
    }
    return options_.order == TraceOrder::kIssue && trace_.hi(event(e)) < trace_.lo(event(f));
  }
  // Directed edge e -> f of the trace.
  bool directed(uint32_t e, uint32_t f) const;

 private:
  using Ranges = std::map<std::pair<uint64_t, uint32_t>, std::vector<uint32_t>>;
  using Lock = std::pair<uint64_t, uint32_t>;

  Lock lock_of(uint32_t e) const { return {event(e).address, event(e).size}; }
  void note_lock(uint32_t e);
  bool first_of_channel(uint32_t e, uint32_t f) const;
  bool reads_release(uint32_t acquire, uint32_t release) const;
  template <typename What>
  bool all_on_bytes(const Ranges& ranges, uint32_t e, const What& what) const {
    spend(ranges.size());
    return std::all_of(ranges.begin(), ranges.end(), [&](const auto& range) {
      return !same_bytes(range.second.front(), e) ||
             std::all_of(range.second.begin(), range.second.end(), [&](uint32_t w) {
               spend(1);
               return what(w);
             });
    });
  }

  Ranges releases_;
  Ranges writes_;
  std::map<uint64_t, std::vector<uint32_t>> handed_;  // posts, takes and the like, by address
  std::map<ThreadId, std::map<Lock, std::vector<uint32_t>>> held_;  // acquired and not released
  std::map<uint32_t, uint32_t> sections_;                           // acquisition to release
  std::set<Lock> given_away_;
};

}  // namespace tsomon
