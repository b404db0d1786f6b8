// Which store a load has read, where the values leave one answer (theory section 5.3).
//
// Soundness   A load is explained only when every access that could have provided its value is
//             known: all stores to bytes of it have its very range; a store without a value could
//             have written any. The initial value is a candidate like a store's. Whether it is
//             older than the stores before a slice (Trace::pending_prefix) is not known.
// Misses      Loads that mix the bytes of several stores, and accesses of more than 8 bytes.
// Three uses  infer_from_values() finds what is certain for the whole trace. values_agree() rejects
//             a complete orientation under which some load would have returned something else.
//             read_choice() states for one load what a search can draw from a partial one.
// Complexity  O(log n) per load and thread where order separates the stores; a load with more than
//             kMaxCandidates unordered stores of one thread is left unexplained. read_choice():
//             the square of the stores that it leaves open, at most kMaxElements.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tso/order/event_graph.h"
#include "tso/order/execution.h"
#include "tso/order/orientations.h"
#include "tso/order/reachability.h"
#include "tso/order/refinement.h"

namespace tsomon {

// Which locations have values that can be compared, and what they held at first.
class RecordedValues {
 public:
  RecordedValues(const Relation& relation, const AccessIndex& accesses);

  // All stores to bytes of the location have its very range, and the values that nobody wrote are
  // one: the initial value.
  bool usable(LocationId location) const { return locations_[location].usable; }
  std::optional<uint64_t> initial(LocationId location) const {
    return locations_[location].initial;
  }
  std::optional<uint64_t> read(uint32_t e) const { return trace_->read_value(trace_->events[e]); }
  std::optional<uint64_t> written(uint32_t e) const {
    return trace_->write_value(trace_->events[e]);
  }
  bool after_initial(uint32_t store) const { return store >= trace_->pending_prefix; }
  // Whether a load may have read the initial value when `before` are stores before it: not behind
  // loads of its thread with other values.
  bool may_be_initial(LocationId location, uint32_t load,
                      const std::vector<uint32_t>& before) const;

 private:
  struct Location {
    bool usable = false;
    std::optional<uint64_t> initial;
    // Of each thread the first load whose value is another one than that of its first load.
    std::vector<std::pair<ThreadId, uint32_t>> changed;
  };
  void declare_initial_values(const LocationTable& locations);
  Location examine(const Relation& relation, const AccessIndex& accesses, LocationId id) const;
  std::optional<uint64_t> read_before_all_stores(const Relation& relation,
                                                 std::span<const ThreadAccesses> lists) const;

  const Trace* trace_;
  std::vector<Location> locations_;
};

inline constexpr size_t kMaxCandidates = 4096;

Inference infer_from_values(const Relation& relation, const AccessIndex& accesses,
                            const RecordedValues& values, const Reachability& order);
// Load by load in the order of the trace, or against it, each with what those before have shown:
// that becomes part of the order at once. Nothing: it contradicts the order.
std::optional<Inference> infer_one_by_one(const Relation& relation, const AccessIndex& accesses,
                                          const RecordedValues& values, bool backwards,
                                          Reachability* order);

// Of `load`: its value and location are known. `order` of two events by trace index: as in
// ReadChoice::order. Nothing: it says nothing, or with more than kMaxElements.
inline constexpr size_t kMaxElements = 24;
std::optional<ReadChoice> read_choice(const Relation& relation, const AccessIndex& accesses,
                                      const RecordedValues& values, uint32_t load,
                                      const std::function<int32_t(uint32_t, uint32_t)>& order);

// Whether an order of conflicting accesses gives every load of `events` its recorded value, as far
// as values are known; a location had one initial value. Where it leaves the order of some open, as of those outside of the part of
// the trace that is searched, each load by itself must have a store that it may have read.
bool values_agree(const Relation& relation, const AccessIndex& accesses,
                  const RecordedValues& values, const std::vector<uint32_t>& events,
                  const OrientationOracle& before);

}  // namespace tsomon
