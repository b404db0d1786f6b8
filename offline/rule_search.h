// Satisfies all "not between" rules of an order of events.
//
// Source      Theory sections 5.1 and 5.3: a tie, or a load with its source, says that a third
//             event does not come between two others.
// Purpose     Once every rule is satisfied by what is ordered, every linear extension of the order
//             of the events satisfies them all: nothing else has to be decided for a valid
//             orientation of all open edges.
// Method      Depth-first, a rule at a time. Ties alone never need a decision to be taken back.
// Complexity  A pass over the rules in all; exponential in them in the worst case.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/growing_order.h"
#include "tso/orientations.h"

namespace tsomon {

class RuleSearch {
 public:
  // Has the rules implied by the order; settle() it afterwards. `priority`: the elements in the
  // order that is tried first.
  RuleSearch(std::vector<ReadsFrom> rules, std::vector<uint32_t> priority, GrowingOrder* order);

  // kYes: the order, to which edges were added, satisfies all rules. Otherwise it is as before.
  Answer resolve(uint64_t* steps, uint64_t max_steps);

  // The place of each element in a linear extension of the order, by priority.
  std::vector<uint32_t> places() const;

 private:
  struct Decision {
    uint32_t rule;
    size_t mark;
    bool first;
  };
  bool satisfied(const ReadsFrom& rule) const {
    return order_.reaches(rule.other, rule.write) || order_.reaches(rule.read, rule.other);
  }
  bool decide(uint32_t rule, bool first);
  Answer search(uint64_t* steps, uint64_t max_steps);

  std::vector<ReadsFrom> rules_;
  std::vector<uint32_t> priority_;
  GrowingOrder& order_;
  std::vector<Decision> decisions_;
};

}  // namespace tsomon
