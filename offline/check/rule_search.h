// Satisfies all either-or rules of an order.
//
// Source      Theory sections 5.1 and 5.3: a forwarding constraint, or a load with its source, says that a third
//             event does not come between two others: it comes before the one or after the other.
// Purpose     Once every rule is satisfied by what is ordered, every linear extension of the order
//             satisfies them all: nothing else has to be decided for a valid orientation of all
//             open edges.
// Method      Depth-first, a rule at a time. Forwarding constraints alone never need a decision to be taken back.
// Complexity  A pass over the rules in all; exponential in them in the worst case.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/check/growing_order.h"
#include "tso/order/orientations.h"

namespace tsomon {

class RuleSearch {
 public:
  // The order implies the rules and is settled. `priority` of its elements: which
  // way a rule is tried first.
  RuleSearch(GrowingOrder* order, const std::vector<EitherOrder>& rules,
             const std::vector<uint32_t>& priority)
      : order_(*order), rules_(rules), priority_(priority) {}

  // kYes: the order, to which edges were added, satisfies all rules. Otherwise it is as before.
  Answer resolve(uint64_t* steps, uint64_t max_steps);

  // The place of each node in a linear extension that satisfies all rules, found by deciding only
  // those that the extensions on the way there break. Empty: that led nowhere, the order is as
  // before. Otherwise edges were added to it.
  std::vector<uint32_t> extend_lazily(uint64_t* steps);

  // The place of each node in a linear extension of the order, by priority.
  std::vector<uint32_t> places() const;

 private:
  struct Decision {
    uint32_t rule;
    size_t mark;
    bool first;
  };
  bool satisfied(const EitherOrder& rule) const {
    return order_.reaches(rule.a.from, rule.a.to) || order_.reaches(rule.b.from, rule.b.to);
  }
  bool decide(uint32_t rule, bool first);
  bool decide_either(uint32_t rule);  // the second way if the first is impossible
  Answer search(uint64_t* steps, uint64_t max_steps);

  GrowingOrder& order_;
  const std::vector<EitherOrder>& rules_;
  const std::vector<uint32_t>& priority_;
  std::vector<Decision> decisions_;
};

}  // namespace tsomon
