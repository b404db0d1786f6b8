// Whether recorded values leave an execution in which some pairs of accesses came in a given order.
//
// Source      Theory section 5.3: each load has a store that it can have read
//             (tso/order/issue_order.h).
// Purpose     Orders that the intervals leave open may be tied to one another by values: of two
//             sections behind one flag either was first, not each in a component. The assumed orders and
//             what follows are added to what is known; of what is still open between locked
//             operations near them both answers are tried.
// Soundness   `false`: there is no TSO execution with the recorded values and these orders of the
//             issues. `true` may mean that none was excluded: no more than kMaxLoads loads near the
//             assumed orders, kMaxSources sources of each and kMaxTries answers are looked at.
// Complexity  O(kMaxLoads * accesses of a location + (tries * rules * events^2 / 64)).
// Thread-safety: a pure function of its arguments.
#pragma once

#include <vector>

#include "tso/order/event_graph.h"
#include "tso/order/reachability.h"
#include "tso/order/values.h"

namespace tsomon {

class AssumedOrder {
 public:
  // Of the relation of MemoryModel::kSc whose event graph has the order and these open edges.
  AssumedOrder(const Relation& issues, const AccessIndex& accesses, const RecordedValues& values,
               const Reachability& order, const std::vector<Edge>& open);

  bool possible(const std::vector<Edge>& assumed) const;

 private:
  static constexpr size_t kMaxLoads = 64;
  static constexpr size_t kMaxSources = 16;
  static constexpr uint32_t kMaxTries = 200;

  std::vector<uint32_t> loads_near(const std::vector<Edge>& assumed) const;

  const Relation* issues_;
  const AccessIndex* accesses_;
  const RecordedValues* values_;
  const Reachability* order_;
  std::vector<uint32_t> loads_;  // those whose order with some other access is open
};

}  // namespace tsomon
