// The accesses of a trace in lists that are ordered by themselves, and the units of each thread by
// number.
//
// Lists       One for each location, thread and sort: stores (all that conflicts with a load),
//             loads from memory, loads that may be forwarded. Each is in program order and ordered
//             by directed edges. Only lists that some access of another thread conflicts with.
// Units       Of each thread in order, from 0; of robustness single events. A unit that holds
//             nothing but stores and what was forwarded leads to later units that hold a store or a
//             fence, but to those of loads alone only behind a unit that has both, a load of what
//             it stored, or an event that finds its stores committed. (More than that is said where
//             that unit holds nothing but forwarded loads.)
// Complexity  O(n) to build, O(log n) a query.
// Thread-safety: immutable after construction; the relation and the index must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tso/model/relation.h"
#include "tso/model/units.h"
#include "tso/order/event_graph.h"

namespace tsomon {

class ThreadLists {
 public:
  static constexpr uint32_t kEnd = 0xFFFFFFFFU;

  struct List {
    ThreadId thread = 0;
    std::vector<uint32_t> events;
    bool shared = false;  // accesses of other threads conflict with it
    // Where units are entered by all: from each place on the first such place. Empty: all are.
    std::vector<uint32_t> next_entered;
    // The least full_from() of the units from each place on.
    std::vector<uint32_t> full_from;
    // When each forwarded load was certainly issued, under Semantics::kExact. A store of
    // another thread that was issued later comes before it only if it comes before its source, too
    // (theory 5.1): then the source is where the store leads to. Empty: not to be looked at.
    std::vector<int64_t> issued;
  };

  // `by_event`: every event is a unit of its own and leads to all later ones.
  ThreadLists(const Relation& relation, const AccessIndex& accesses, const UnitTable& units,
              bool by_event);

  const std::vector<List>& lists() const { return lists_; }
  // The first of the two that a list of the index makes; loads that may be forwarded are in the
  // second.
  static uint32_t first_of(uint32_t index_list) { return 2 * index_list; }
  // Those of a thread that are shared.
  std::span<const uint32_t> of_thread(ThreadId thread) const {
    return {by_thread_.data() + thread_begin_[thread],
            by_thread_.data() + thread_begin_[thread + 1]};
  }
  uint32_t list_of(uint32_t e) const { return list_of_[e]; }  // kEnd: in none
  uint32_t place_of(uint32_t e) const { return place_[e]; }   // in its list

  // The number of the event's unit in its thread.
  uint32_t unit(uint32_t e) const { return unit_[e]; }
  uint32_t units(ThreadId thread) const { return static_cast<uint32_t>(kind_[thread].size()); }
  // The first unit from this one on such that it leads to that and to all later ones; units():
  // none. Of the units before that, but for itself, it leads to those that are entered_by_all().
  uint32_t full_from(ThreadId thread, uint32_t unit) const { return full_from_[thread][unit]; }
  // All earlier units lead to it: it does not hold loads alone.
  bool entered_by_all(ThreadId thread, uint32_t unit) const {
    return (kind_[thread][unit] & kLoads) == 0;
  }

  // `near`: as of first_without() (tso/support/nearby.h), of the same list.
  // The first place in the list with a unit from `unit` on, kEnd: none.
  uint32_t first_from(uint32_t list, uint32_t unit, uint32_t* near) const;
  // The last place with a unit that is this one or leads to it.
  uint32_t last_leading_to(uint32_t list, uint32_t unit, uint32_t* near) const;
  // The first place with a unit from `unit` on that is entered by all.
  uint32_t first_entered_from(uint32_t list, uint32_t unit, uint32_t* near) const;

 private:
  static constexpr uint8_t kRelaxed = 1;  // nothing but stores and forwarded loads
  static constexpr uint8_t kLoads = 2;    // nothing but loads, and joins
  static constexpr uint8_t kSeveral = 4;  // more than one event

  // It leads to all later units: something in it is ordered before all that comes. Taken to be so
  // of several forwarded loads, by one of which it may be entered and left by another.
  bool leads_to_all(ThreadId thread, uint32_t unit) const {
    const uint8_t kind = kind_[thread][unit];
    return (kind & kRelaxed) == 0 || (kind & (kLoads | kSeveral)) == (kLoads | kSeveral);
  }
  void number_units(const Relation& relation, const UnitTable& units, bool by_event);
  void sort_units(const Relation& relation, bool by_event);
  void find_full(const Relation& relation, ThreadId thread);
  void make_lists(const Relation& relation, const AccessIndex& accesses);
  void find_shared(const Relation& relation, const AccessIndex& accesses);

  std::vector<List> lists_;
  std::vector<uint32_t> by_thread_;
  std::vector<uint32_t> thread_begin_;
  std::vector<uint32_t> list_of_;
  std::vector<uint32_t> place_;
  std::vector<uint32_t> unit_;
  std::vector<std::vector<uint8_t>> kind_;        // by thread and unit
  std::vector<std::vector<uint32_t>> full_from_;  // likewise
};

}  // namespace tsomon
