// The formats of tracepoints, as perf copies them from the kernel's tracefs: for the probes that
// `perf probe` made, where in a sample's raw data the probed address stands; for sched_switch,
// where the thread that runs next does.
//
// Complexity  Linear. Misses: everything of a tracepoint that does not tell probes apart.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tsomon::perf {

struct Tracepoint {
  std::string system;
  std::string name;
  // Of an entry probe: where its address is in the raw data.
  std::optional<uint32_t> probe_ip;
  // Of a return probe: where the function's address is.
  std::optional<uint32_t> return_function;
  // Of sched:sched_switch: where the id of the next thread is (4 bytes).
  std::optional<uint32_t> next_thread;
};

// `bytes` as in Feature::kTracingData. False when they are cut off or something else; what was
// read until then is kept.
bool read_tracing_data(std::string_view bytes, std::unordered_map<uint64_t, Tracepoint>& points);

}  // namespace tsomon::perf
