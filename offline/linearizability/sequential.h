// Linearizability by a specification that can only be run: the object itself, or a small class.
//
// Purpose     For objects that none of the known kinds is like. What calls return one after the
//             other is asked for (SequentialObject); a history is linearizable if some order of its
//             operations that keeps to their order in time returns what they returned.
// Texts       A call is asked for as the history has it, NAME(ARGUMENT); a result is compared as a
//             value (tso/model/history.h), and an empty one with no result or `ok`.
// Method      The search of Wing and Gong. States cannot be compared, so no configuration is known
//             from before: operations that return first are tried first.
// Violation   Of each object by itself (locality). The evidence is the shortest beginning of the
//             history that is one: leaving out others would need to know what they do.
// Bounds      max_work / 1000 calls that are asked for, for each object; past that it is
//             kInconclusive.
// Complexity  O(n * processes) calls where it need not turn back; exponential in the worst case.
// Errors      Those of the object.
// Thread-safety: that of the object.
#pragma once

#include <string>
#include <vector>

#include "offline/linearizability/check.h"

namespace tsomon::linearizability {

class SequentialObject {
 public:
  SequentialObject() = default;
  SequentialObject(const SequentialObject&) = delete;
  SequentialObject& operator=(const SequentialObject&) = delete;
  virtual ~SequentialObject() = default;

  // What the last of the calls, at least one, returns when they are made one after the other on a
  // new object.
  virtual Result<std::string> result_of(const std::vector<std::string>& calls) = 0;
};

// `options.specification` is there.
Result<Report> check_sequentially(const History& history, const Options& options);

}  // namespace tsomon::linearizability
