// What the kernel says about this machine's Intel PT, and how to ask it for a trace.
//
// Source      /sys/bus/event_source/devices/intel_pt: type, format/*, caps/*, nr_addr_filters,
//             max_nonturbo_ratio; CPUID leaf 0x15 for the clock.
// Errors      kEnvironment with the remedy: there is no such device.
// Thread-safety: pure functions of the file system.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tso/support/result.h"

namespace tsomon::pt_live {

struct PtDevice {
  struct Bits {
    unsigned first = 0;
    unsigned last = 0;
    uint64_t mask() const;
    uint64_t value(uint64_t number) const { return number << first & mask(); }
  };
  uint32_t type = 0;
  std::map<std::string, Bits> format;    // of perf_event_attr::config
  std::map<std::string, uint64_t> caps;  // hexadecimal bit masks among them
  uint64_t address_filters = 0;
  uint64_t nonturbo_ratio = 0;
  uint32_t tsc_numerator = 0;
  uint32_t tsc_denominator = 0;

  bool can(const std::string& capability) const;
  uint64_t mask_of(const std::string& name) const;  // 0: there are no such bits
};

Result<PtDevice> find_pt_device(
    const std::string& folder = "/sys/bus/event_source/devices/intel_pt");

// Branches with time as exact as the processor has it, PTWRITE with addresses where it is there.
uint64_t trace_config(const PtDevice& device);

// What a perf.data tells of it: the values of perf::AuxtraceInfo, without the clock of the records
// (1 to 4).
std::vector<uint64_t> auxtrace_values(const PtDevice& device, bool snapshot, bool per_cpu,
                                      const std::string& filter);

}  // namespace tsomon::pt_live
