// Random small traces that really happened: a simulated TSO run, with its commits remembered.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tso/check/analysis.h"
#include "tso/model/trace.h"
#include "tso/order/execution.h"

namespace tsomon::testing {

struct RandomTraceOptions {
  uint32_t threads = 3;
  uint32_t locations = 3;
  uint32_t steps = 8;    // events other than unit boundaries, about
  uint32_t units = 40;   // percent of steps that open or close a unit
  uint32_t locked = 10;  // percent of accesses
  uint32_t fences = 10;  // percent of steps
  uint32_t locks = 0;    // percent of steps
  uint32_t lock_count = 1;
  uint32_t readers = 0;       // percent of acquisitions
  uint32_t store_buffer = 0;  // capacity
  uint32_t hand_overs = 0;    // percent of steps: posts, takes, sends, receives
  uint32_t waits = 0;         // percent of steps inside of units: condition waits
  bool nesting = false;
  bool values = false;
  uint32_t unvalued = 0;  // percent of plain stores whose value was not recorded
  bool flags = false;     // of two values, one of them the initial one
  bool intervals = false;
  bool mixed_sizes = false;
  bool threads_start = false;  // fork and join events
  uint32_t repeats = 0;        // percent of steps that do the thread's last load once more
  bool unique_values = false;  // no value is written twice
  bool fenced = false;         // a fence ends every unit that stores
};

struct RandomTrace {
  Trace trace;
  std::vector<Step> execution;  // as it happened
};

// Small enough for the brute-force twins, of every kind.
RandomTraceOptions random_options(std::mt19937_64& random);

RandomTrace random_trace(std::mt19937_64& random, const RandomTraceOptions& options);

// A question about a trace that was made with these options, without its values.
AnalysisOptions random_analysis(std::mt19937_64& random, const RandomTraceOptions& made);

}  // namespace tsomon::testing
