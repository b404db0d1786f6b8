// What the code of a program accesses, from its instructions: no word of the instrumentation is believed.
//
// Purpose     Runs a program, one instruction at a time where its own code runs, and counts each byte
//             of memory that an instruction loads or stores, by function.
// Shared      Accesses that others could see: not of the thread's own stack and thread-local storage,
//             nor of memory that cannot be written. In the main thread only those while another
//             thread has run, and main has not returned: others need not be recorded.
// Optional    Accesses that an instruction may leave out (masks, conditions), and those that are not
//             shared.
// Errors      Exceptions: this is a tool of the tests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/accesses/own_code.h"

namespace tsomon::testing {

// Function, byte, whether it is a store.
using AccessKey = std::tuple<std::string, uint64_t, bool>;

struct AccessCount {
  uint64_t needed = 0;   // times that it has to be recorded
  uint64_t allowed = 0;  // times that it may be
  // One of the instructions, and what it accesses.
  uint64_t pc = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SteppedAccesses {
  std::map<AccessKey, AccessCount> bytes;
  std::map<uint64_t, std::string> unknown;  // instructions whose addresses registers do not give
  std::vector<std::pair<uint64_t, uint64_t>> stacks;  // of threads, as far as they were used
  uint64_t bias = 0;                                  // address in memory minus address in the file
  uint64_t steps = 0;
  uint64_t own_steps = 0;
  int status = -1;
};

// `options`: of TSOMON_OPTIONS.
SteppedAccesses step_accesses(const std::vector<std::string>& command, const std::string& options,
                              const OwnCode& code);

}  // namespace tsomon::testing
