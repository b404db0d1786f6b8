#include "monitor/pt_live/pt_device.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>

#include <cpuid.h>
#include <fmt/format.h>

namespace tsomon::pt_live {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) ? std::optional(line) : std::nullopt;
}

std::optional<uint64_t> number(std::string_view text, int base) {
  uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// "config:14-17" or "config:10"; other words of the attribute are not asked for.
std::optional<PtDevice::Bits> bits_of(std::string_view text) {
  constexpr std::string_view kConfig = "config:";
  if (text.substr(0, kConfig.size()) != kConfig) {
    return std::nullopt;
  }
  text.remove_prefix(kConfig.size());
  const auto first = number(text, 10);
  const size_t dash = text.find('-');
  const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1), 10);
  if (!first || !last || *first > *last || *last > 63) {
    return std::nullopt;
  }
  return PtDevice::Bits{static_cast<unsigned>(*first), static_cast<unsigned>(*last)};
}

template <typename F>
void for_each_file(const fs::path& folder, F f) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (const auto line = line_of(at->path())) {
      f(at->path().filename().string(), *line);
    }
  }
}

}  // namespace

uint64_t PtDevice::Bits::mask() const {
  const unsigned count = last - first + 1;
  return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

bool PtDevice::can(const std::string& capability) const {
  const auto found = caps.find(capability);
  return found != caps.end() && found->second != 0;
}

uint64_t PtDevice::mask_of(const std::string& name) const {
  const auto found = format.find(name);
  return found == format.end() ? 0 : found->second.mask();
}

Result<PtDevice> find_pt_device(const std::string& folder) {
  const fs::path root(folder);
  PtDevice device;
  const auto type = line_of(root / "type");
  const auto type_number = type ? number(*type, 10) : std::nullopt;
  if (!type_number) {
    return fail(
        ErrorKind::kEnvironment,
        "this machine has no Intel PT that the kernel knows of: use bare metal with an Intel "
        "processor from Broadwell on, or a hypervisor that passes it through (`tsomon "
        "doctor` shows what is there); elsewhere a recording can be checked that was made "
        "on such a machine");
  }
  device.type = static_cast<uint32_t>(*type_number);
  for_each_file(root / "format", [&](const std::string& name, const std::string& line) {
    if (const auto bits = bits_of(line)) {
      device.format[name] = *bits;
    }
  });
  for_each_file(root / "caps", [&](const std::string& name, const std::string& line) {
    device.caps[name] = number(line, 16).value_or(0);
  });
  device.address_filters = number(line_of(root / "nr_addr_filters").value_or("0"), 10).value_or(0);
  device.nonturbo_ratio =
      number(line_of(root / "max_nonturbo_ratio").value_or("0"), 10).value_or(0);
  unsigned denominator = 0;
  unsigned numerator = 0;
  unsigned crystal = 0;
  unsigned unused = 0;
  if (__get_cpuid(0x15, &denominator, &numerator, &crystal, &unused) != 0) {
    device.tsc_numerator = numerator;
    device.tsc_denominator = denominator;
  }
  return device;
}

uint64_t trace_config(const PtDevice& device) {
  uint64_t config = 0;
  const auto set = [&](const char* name, uint64_t value) {
    if (const auto bits = device.format.find(name); bits != device.format.end()) {
      config |= bits->second.value(value);
    }
  };
  set("pt", 1);
  set("branch", 1);
  set("tsc", 1);
  if (device.can("mtc")) {
    set("mtc", 1);
    // Of the periods that there are the shortest from 2^3 ticks on.
    const auto periods = device.caps.find("mtc_periods");
    for (unsigned period = 3; periods != device.caps.end() && period < 16; ++period) {
      if ((periods->second >> period & 1U) != 0) {
        set("mtc_period", period);
        break;
      }
    }
  }
  if (device.can("psb_cyc")) {
    set("cyc", 1);
  }
  if (device.can("ptwrite")) {
    set("ptw", 1);
    set("fup_on_ptw", 1);
  }
  return config;
}

std::vector<uint64_t> auxtrace_values(const PtDevice& device, bool snapshot, bool per_cpu,
                                      const std::string& filter) {
  return {device.type,
          0,
          0,
          0,
          0,
          device.mask_of("tsc"),
          device.mask_of("noretcomp"),
          1,
          snapshot ? uint64_t{1} : 0,
          per_cpu ? uint64_t{1} : 0,
          device.mask_of("mtc"),
          device.mask_of("mtc_period"),
          device.tsc_numerator,
          device.tsc_denominator,
          device.mask_of("cyc"),
          device.nonturbo_ratio,
          filter.size()};
}

}  // namespace tsomon::pt_live
