// Which events of a perf.data are probes at the begin or end of a function.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "decoders/perf/info.h"
#include "decoders/perf/sample.h"

namespace tsomon::perf {

struct Probe {
  bool is_return = false;
  std::string label;
  std::optional<uint32_t> address_at;  // of the function, in a sample's raw data
  uint64_t function = 0;               // without that, what tells it from others
};

// Nothing for an event that is none.
std::optional<Probe> find_probe(const FileInfo& info, const Attribute& attribute);

// What begin and end of the same function have in common; nothing when the raw data lack it.
std::optional<uint64_t> probed_function(const Probe& probe, const Sample& sample);

}  // namespace tsomon::perf
