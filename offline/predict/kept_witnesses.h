// The witnesses of one kind of prediction: whole as long as they are not too many, then in short.
//
// Complexity  O(events of the witness) if it is kept whole, else O(tail + threads x log n).
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/predict/model.h"
#include "offline/predict/witness.h"

namespace tsomon::predict {

// `as_in_trace`: but for the last two events of the tail, which need not be in order.
ShortWitness shortened(const Model& model, const Witness& witness, bool as_in_trace);

class KeptWitnesses {
 public:
  KeptWitnesses(const Model& model, uint64_t max_events) : model_(model), left_(max_events) {}

  // Exactly one of `whole` and `brief` is filled.
  void keep(const Witness& witness, bool as_in_trace, std::vector<uint32_t>* whole,
            ShortWitness* brief);
  uint64_t in_short() const { return in_short_; }

 private:
  const Model& model_;
  uint64_t left_;  // events
  uint64_t in_short_ = 0;
};

}  // namespace tsomon::predict
