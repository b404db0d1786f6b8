// From a partial orientation of a component to a complete one that is accepted.
//
// Purpose     Depth-first over the open edges that the order of the nodes leaves open. With an
//             order of the units as well, only orientations without a cycle of units are found.
// Complexity  A pass over the edges that are still open per decision; decisions are bounded by
//             the caller.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "offline/check/execution_model.h"
#include "tso/order/orientations.h"

namespace tsomon {

class Completion {
 public:
  // `classes`: nothing, or the order of the units; `class_of`: the element of it for each event.
  // Both orders are changed and left as they were found.
  Completion(const OrientationProblem& problem, ExecutionModel* model, GrowingOrder* classes,
             const std::vector<uint32_t>& class_of)
      : problem_(problem), model_(*model), classes_(classes), class_of_(class_of) {}

  // kYes: found() is accepted. kUnknown: *steps reached max_steps.
  Answer run(uint64_t* steps, uint64_t max_steps);
  const std::vector<bool>& found() const { return found_; }

 private:
  struct Decision {
    size_t edge;
    size_t nodes;  // marks
    size_t classes;
    size_t unsettled;
    std::array<const StepOrder::Way*, 4> ways = {};  // the last one first
    size_t untried = 0;                              // of these
  };

  bool propagate();
  // Not all that follows has been drawn.
  bool exhausted() const {
    return model_.order.exhausted() || (classes_ != nullptr && classes_->exhausted());
  }
  bool is_open(size_t edge) const {
    return !model_.implied(model_.forward[edge]) && !model_.implied(model_.backward[edge]);
  }
  bool try_next();
  Answer search(uint64_t* steps, uint64_t max_steps);

  const OrientationProblem& problem_;
  ExecutionModel& model_;
  GrowingOrder* classes_;
  const std::vector<uint32_t>& class_of_;
  std::vector<Decision> decisions_;
  // The open edges; behind the first `unsettled_` those that both orders have decided, until a
  // decision is taken back.
  std::vector<uint32_t> edges_;
  size_t unsettled_ = 0;
  std::vector<bool> found_;
};

}  // namespace tsomon
