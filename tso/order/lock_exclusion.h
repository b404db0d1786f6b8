// What is certain because two threads never hold a lock at once.
//
// Source      Theory section 2: each acq(l) reads the latest earlier rel(l), so no
//             other acq(l) lies between an acquisition and its release. Of two
//             critical sections one is over, its release committed, before the other
//             begins.
// Words       that are locks by their values (value_locks.h) exclude likewise, where the values count:
//             what takes one has read what the thread that held it stored.
// Sections    From a thread's acquisition to the release of the same lock by which it holds it no
//             more; what it acquires again in between is part of it. Two sections of readers
//             exclude nothing.
// Misses      Sections of locks that never end or have a condition wait inside, which gives a
//             lock back, and all sections of a lock that some thread releases without
//             holding it: it was acquired before the trace began, or by another
//             thread.
// Complexity  O(n) to build; infer() O(log n) for each open edge, common_lock() O(log n + the locks
//             that the thread holds).
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tso/order/refinement.h"
#include "tso/order/value_locks.h"
#include "tso/support/flat_map.h"

namespace tsomon {

// Whether it may be relied on: nothing is missing from the trace, and locks are to be looked at.
bool locks_exclude(const Relation& relation);

class LockExclusion {
 public:
  struct Section {
    LocationId lock = 0;
    uint32_t acquisition = 0;
    uint32_t release = 0;
    bool given_back = true;  // or else `release` is the thread's last access
  };

  // The library's locks, if `locks`, and words whose values show that they are locks.
  LockExclusion(const Relation& relation, bool locks, const std::vector<ValueSection>& words);

  bool empty() const { return sections_.empty(); }
  // The event is the acquisition or the release of one.
  bool is_section(uint32_t e) const { return sections_.contains(e); }
  bool is_acquisition(uint32_t e) const {
    const Section* const section = sections_.find(e);
    return section != nullptr && section->acquisition == e;
  }

  // What follows from an order for the edges that it leaves open, some of which are of locks.
  Inference infer(std::span<const Edge> open, const Reachability& order) const;

  // Sections of e and f, accesses of different threads, that exclude each other; both ends of a
  // section belong to it.
  std::optional<std::pair<Section, Section>> common_lock(uint32_t e, uint32_t f) const;

 private:
  // Of a thread: by the acquisition, and until where one of those up to it lasts.
  struct InThread {
    std::vector<Section> sections;
    std::vector<uint32_t> last;  // position in the thread
  };

  void add_locks();
  bool exclude(const Section& a, const Section& b) const;
  template <typename Function>
  void for_each_around(uint32_t e, const Function& function) const;

  const Relation& relation_;
  FlatMap<uint32_t, Section> sections_;  // by the acquisition and by the release
  std::vector<InThread> in_threads_;
};

}  // namespace tsomon
