// What a PT decode needs, whatever container it came in.
//
// Streams     Trace bytes of one CPU or of one thread. `parts`: where bytes were lost (a full
//             buffer); packets never go across such a place.
// Code        Files mapped into processes, from the time on when they were mapped.
// Switches    Which thread ran on a CPU from when on; 0: none of interest.
// Time        TSC cycles throughout.
// Ownership   The bytes belong to the caller and outlive the decode.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tso/model/event.h"

namespace tsomon::pt {

struct CodeSection {
  std::string file;     // readable now: found by build-id or path
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;
  uint64_t address = 0;
  int64_t from = kTimeMin;
  int process = 0;
};

struct TraceStream {
  std::string_view bytes;
  std::vector<size_t> parts;  // offsets, ascending: bytes are missing before each
  int cpu = -1;               // -1: one thread's
  int process = 0;            // of a stream without a cpu
  int thread = 0;
};

// Calls `f` with each stretch between two losses.
template <typename F>
void for_each_part(const TraceStream& stream, F f) {
  size_t begin = 0;
  for (size_t part = 0; part <= stream.parts.size(); ++part) {
    const size_t end = part == stream.parts.size()
                           ? stream.bytes.size()
                           : std::min(stream.parts[part], stream.bytes.size());
    if (end > begin) {
      f(stream.bytes.substr(begin, end - begin));
      begin = end;
    }
  }
}

struct Switch {
  int64_t time = 0;
  int cpu = 0;
  int process = 0;
  int thread = 0;
};

// How the trace was configured: without it there is only the time of TSC packets.
struct Clock {
  uint32_t tsc_numerator = 0;    // CPUID leaf 0x15: TSC cycles for each tick of the crystal
  uint32_t tsc_denominator = 0;  //                  clock are numerator / denominator
  uint8_t mtc_frequency = 0;     // an MTC packet every 2^n ticks
  uint8_t nominal_ratio = 0;     // TSC cycles for each bus cycle, as CBR packets count
};

// Family, model and stepping of the Intel processor that traced; all 0: not known. Some models
// write packets that they should not, or leave some out.
struct Processor {
  uint16_t family = 0;
  uint8_t model = 0;
  uint8_t stepping = 0;
};

struct Input {
  std::vector<TraceStream> streams;
  std::vector<CodeSection> code;
  std::vector<Switch> switches;  // by time
  Clock clock;
  Processor processor;
  bool kernel = false;  // its code may have been traced, too
};

}  // namespace tsomon::pt
