// Which reads of a reordered trace have to see what they saw.
//
// A read keeps its write exactly if a branch of its thread after it is executed: what the program
// does after that may depend on the value. Before it the read is free. That of an atomic
// read-modify-write is bound in every mode as soon as anything follows: programs use these to wait
// for each other.
#pragma once

#include <cstdint>

#include "tso/model/trace.h"

namespace tsomon::predict {

enum class Branches : uint8_t {
  kAuto,            // as recorded where the trace has branches, else after every read
  kAsRecorded,      // the trace's branch events
  kAfterEveryRead,  // whatever a thread does depends on all that it read before: safe
  kNone,            // nothing depends on what plain loads read
};

// Never kAuto.
inline Branches resolved(Branches branches, const Trace& trace) {
  if (branches != Branches::kAuto) {
    return branches;
  }
  for (const Event& event : trace.events) {
    if (event.kind() == EventKind::kBranch) {
      return Branches::kAsRecorded;
    }
  }
  return Branches::kAfterEveryRead;
}

}  // namespace tsomon::predict
