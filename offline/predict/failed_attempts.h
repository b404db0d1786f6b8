// Attempts of waiting loops that fail: in the trace, and in a witness.
//
// Purpose     A unit that begins before it has its lock contains attempts to get it. Those that
//             failed are no accesses of the unit (tso/model/idle_iterations.h). And where a witness
//             lets an access read what another store has left than in the trace, the attempt that
//             succeeded in the trace may fail: then the thread tries again later, and nothing is
//             violated.
// In a witness  An access fails, as far as we know, if it reads what another store has left, and
//             either it is at a place in the source where threads have failed in the trace, or it
//             is a locked operation that finds what it wrote in the trace: it would leave it.
//             Where nobody has failed in the trace a load is known to be an attempt by the code alone
//             (KnownValues::waiting).
// Misses      Violations that end with a locked operation which finds what it wrote (one that
//             counts to where it is), and those that an access at a place where threads wait ends.
// Source      Theory, "Waiting inside of a unit" (docs/theory.md).
// Complexity  O(events) once; fails(): O(tail of the witness + threads log events).
// Errors      Throws WorkEnded.
// Thread-safety: const after construction.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "offline/predict/known_values.h"
#include "offline/predict/model.h"
#include "offline/predict/witness.h"

namespace tsomon::predict {

class FailedAttempts {
 public:
  FailedAttempts(const Model& model, const KnownValues* known);

  // The node is one of the trace.
  bool has(NodeId id) const {
    const uint32_t event = model_.node(id).event;
    return known_ != nullptr && event < known_->failed.size() && known_->failed[event];
  }
  // Threads have failed at its place in the source, or the code there waits.
  bool waits(NodeId id) const { return waiting_.count(model_.event(id).location) != 0; }
  // The access, whose read is free, may be one in the witness.
  bool fails(const Witness& witness, NodeId id) const;

 private:
  uint32_t found(const Witness& witness, NodeId id) const;
  uint32_t last_write(NodeId id, uint32_t start) const;

  const Model& model_;
  const KnownValues* const known_;
  std::unordered_set<uint32_t> waiting_;  // locations in the source
};

}  // namespace tsomon::predict
