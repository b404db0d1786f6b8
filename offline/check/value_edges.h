// Which stores loads have read, and the edges that this adds, without looking at what is open.
//
// Source      Theory section 5.3.
// Purpose     What is cheap of what tso/order/values.h finds, one load at a time: one that can have
//             read one store alone comes behind that store, and before whatever comes after it;
//             what comes before the load comes before the store. Of its own thread a load can have
//             read the newest store only; of another thread, one that no store that comes before
//             the load comes after. A load that may have been forwarded and read another thread's
//             store was not. One that has read the initial value comes before all stores.
// Misses      Values that several stores may have given, and what they have in common; locations
//             with a store whose value is not known. Where the initial value is not known, a load
//             may have read it that nothing of its thread shows to come later.
// Complexity  O(n log n) to build. draw() O(loads * threads * log n), and Reachability::insert() for
//             what is new.
// Thread-safety: as a container; what is given must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tso/model/relation.h"
#include "tso/order/event_graph.h"
#include "tso/order/reachability.h"
#include "tso/order/values.h"

namespace tsomon {

class ValueReads {
 public:
  static constexpr uint32_t kOpen = 0xFFFFFFFFU;     // one of several
  static constexpr uint32_t kInitial = 0xFFFFFFFEU;  // the initial value

  struct Read {
    uint32_t load = 0;
    uint32_t store = kOpen;  // what it has read
    uint32_t value = 0;      // in values_; kOpen: nobody wrote it
  };

  ValueReads(const Relation& relation, const AccessIndex& accesses);

  // Some load has a value that says something.
  bool any() const { return any_; }
  // In the order of the trace.
  const std::vector<Read>& reads() const { return reads_; }

  // What is so whatever the order of the events.
  void add_edges(std::vector<Edge>* edges) const;
  // What follows from the order, in a few rounds, each load with what those before have added. False:
  // the values contradict it.
  bool draw(Reachability* order);

 private:
  // The stores of one value by one thread.
  struct Stores {
    uint32_t list = 0;   // of the location, in the index
    uint32_t begin = 0;  // in stores_
    uint32_t end = 0;
  };
  struct Value {
    uint32_t begin = 0;  // in of_value_
    uint32_t end = 0;
  };

  void collect(LocationId location);
  std::span<const Stores> stores_of(const Read& read) const;
  std::span<const uint32_t> in(const Stores& stores) const;
  uint32_t last_own(uint32_t load) const;
  bool may_be_initial(uint32_t load) const;
  uint32_t only_source(const Read& read) const;
  uint32_t only_source(const Read& read, const Reachability& order,
                       std::span<const uint32_t> last) const;
  void find_last(uint32_t load, const Reachability& order, std::vector<uint32_t>* last) const;
  void add_later_loads(const Read& read, std::vector<Edge>* edges) const;
  template <typename Add>
  bool link(const Read& read, const Add& add) const;
  template <typename Add>
  bool draw_around(const Read& read, const Reachability& order, std::span<const uint32_t> last,
                   const Add& add) const;

  const Relation& relation_;
  const AccessIndex& accesses_;
  std::optional<RecordedValues> recorded_;
  bool any_ = false;
  std::vector<Read> reads_;
  std::vector<Value> values_;
  std::vector<Stores> of_value_;
  std::vector<uint32_t> stores_;
};

}  // namespace tsomon
