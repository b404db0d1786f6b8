// From a partial orientation of a part to a complete one that is accepted.
//
// Purpose     Depth-first over the open edges that the order of the events leaves open. With an
//             order of the units as well, only orientations without a cycle of units are found.
// Complexity  A pass over the open edges per decision; decisions are bounded by the caller.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/growing_order.h"
#include "tso/orientations.h"

namespace tsomon {

class Completion {
 public:
  // `classes`: nothing, or the order of the units; `class_of`: the element of it for each event.
  // Both orders are changed and left as they were found.
  Completion(const OrientationProblem& problem, GrowingOrder* events, GrowingOrder* classes,
             const std::vector<uint32_t>& class_of)
      : problem_(problem), events_(*events), classes_(classes), class_of_(class_of) {}

  // kYes: found() is accepted. kUnknown: *steps reached max_steps.
  Answer run(uint64_t* steps, uint64_t max_steps);
  const std::vector<bool>& found() const { return found_; }

 private:
  struct Decision {
    size_t edge;
    size_t events;  // marks
    size_t classes;
    bool first;  // the direction tried first is being tried
  };

  bool propagate();
  bool orient(size_t edge, bool forward);
  bool is_open(size_t edge) const;
  Answer search(uint64_t* steps, uint64_t max_steps);

  const OrientationProblem& problem_;
  GrowingOrder& events_;
  GrowingOrder* classes_;
  const std::vector<uint32_t>& class_of_;
  std::vector<Decision> decisions_;
  std::vector<bool> found_;
};

}  // namespace tsomon
