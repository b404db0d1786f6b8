// The programs of the tests, stepped through once each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "decoders/pt/packets/input.h"
#include "tests/pt/stepped_run.h"
#include "tests/pt/trace_encoder.h"
#include "tso/model/trace.h"

namespace tsomon::test {

inline const std::vector<std::string>& traced_programs() {
  static const std::vector<std::string> names{"pointer_chasing", "hash_table", "queue",
                                              "strings",         "recursion",  "indirect_calls",
                                              "signals",         "threads"};
  return names;
}

// `name` may end in "_ptwrite".
const SteppedRun& stepped(const std::string& name);

// What a decoder is given of a run. The bytes stay with `encoded`.
pt::Input input_of(const SteppedRun& run, const EncodedRun& encoded);

// Checks that the accesses of the trace are accesses of the run, in their time and in the order of
// their threads, and says how many there are. `behind`: a location minus the instruction's address.
size_t check_accesses(const SteppedRun& run, const Trace& trace, uint64_t behind);

}  // namespace tsomon::test
