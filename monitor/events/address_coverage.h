// How the addresses of a trace's accesses were found, where the recording has none (Intel PT).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace tsomon {

struct AddressCoverage {
  uint64_t instructions = 0;    // on the paths of the threads
  uint64_t by_instruction = 0;  // accesses, by what gave their address
  uint64_t forward = 0;
  uint64_t backward = 0;
  uint64_t unknown = 0;  // of no event
  uint64_t stack = 0;    // left out: through the stack pointer
  uint64_t loader = 0;   // left out: what the loader read to bind symbols
  uint64_t gaps = 0;
  uint64_t incomplete_units = 0;
};

std::string coverage_text(const AddressCoverage& coverage);
nlohmann::ordered_json coverage_json(const AddressCoverage& coverage);

}  // namespace tsomon
