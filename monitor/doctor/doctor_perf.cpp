// What can be opened with perf_event_open. Everything is opened for this process only and closed.

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/attach/proved_watch_points.h"
#include "monitor/doctor/doctor_parts.h"
#include "monitor/perf_events/remedy.h"
#include "monitor/process/target.h"
#include "monitor/pt_live/pt_device.h"

namespace tsomon::doctor {
namespace {

struct Opened {
  bool ok = false;
  int error = 0;
  std::optional<uint64_t> count;  // of the event around `body`
};

// Counts the event in this thread, in user mode, while `body` runs.
template <typename Body>
Opened try_event(perf_event_attr attributes, const Body& body) {
  attributes.size = sizeof attributes;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  const int fd =
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) {
    return {false, errno, {}};
  }
  body();
  Opened result{true, 0, {}};
  uint64_t count = 0;
  if (read(fd, &count, sizeof count) == sizeof count) {
    result.count = count;
  }
  close(fd);
  return result;
}

Opened try_event(const perf_event_attr& attributes) {
  return try_event(attributes, [] {});
}

perf_event_attr event_of(uint32_t type, uint64_t config) {
  perf_event_attr attributes{};
  attributes.type = type;
  attributes.config = config;
  return attributes;
}

std::string outcome(const Opened& opened) {
  return opened.ok ? "opened" : std::string("cannot be opened: ") + std::strerror(opened.error);
}

std::string remedy_for(const Opened& opened, const std::string& otherwise) {
  return perf_remedy(opened.error, otherwise);
}

MachineFinding examine_paranoid() {
  int level = 0;
  const bool known =
      static_cast<bool>(std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> level);
  return finding("perf_event", known, false,
                 known ? fmt::format("perf_event_paranoid is {}", level) : "not in this kernel",
                 "attaching to running programs", "use a kernel with CONFIG_PERF_EVENTS");
}

MachineFinding examine_software() {
  const Opened opened = try_event(event_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK));
  return finding("perf_software", opened.ok, false, outcome(opened),
                 "scheduling events while attached",
                 remedy_for(opened, "use a kernel with CONFIG_PERF_EVENTS"));
}

MachineFinding examine_hardware() {
  const Opened opened = try_event(event_of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS));
  return finding(
      "perf_hardware", opened.ok, false, outcome(opened), "sampling accesses while attached",
      remedy_for(opened, "use bare metal, or a virtual machine with its PMU switched on"));
}

MachineFinding examine_uprobes() {
  const std::string needed_by = "attaching: unit boundaries at functions of a running program";
  const std::optional<uint32_t> type = device_type("uprobe");
  const std::optional<CodePlace> place = code_place(reinterpret_cast<uint64_t>(&device_type));
  if (!type || !place) {
    return finding("uprobes", false, false, "not in this kernel", needed_by, uprobe_remedy(ENOENT));
  }
  perf_event_attr attributes = event_of(*type, 0);
  attributes.config1 = reinterpret_cast<uint64_t>(place->file.c_str());
  attributes.config2 = place->offset;
  const Opened opened = try_event(attributes);
  return finding("uprobes", opened.ok, false, outcome(opened), needed_by,
                 uprobe_remedy(opened.error));
}

// Accepted says nothing: some virtual machines never report a breakpoint.
MachineFinding examine_breakpoints() {
  const std::string needed_by = "attaching: watching single locations of a running program";
  static volatile uint64_t watched = 0;
  perf_event_attr attributes = event_of(PERF_TYPE_BREAKPOINT, 0);
  attributes.bp_type = HW_BREAKPOINT_W;
  attributes.bp_addr = reinterpret_cast<uint64_t>(&watched);
  attributes.bp_len = HW_BREAKPOINT_LEN_8;
  const Opened opened = try_event(attributes, [] { watched = 1; });
  if (!opened.ok || opened.count != 1U) {
    return finding("hardware_breakpoints", false, false,
                   opened.ok ? "accepted but never reported: a watched store was not counted"
                             : outcome(opened),
                   needed_by,
                   remedy_for(opened, "let the virtual machine pass debug registers on"));
  }
  // All at once, as attaching does.
  const std::vector<attach::WatchPoint> all(attach::kMaxWatchPoints, {"a location", 0, 8});
  const auto proved = attach::prove_watch_points(all);
  return finding(
      "hardware_breakpoints", proved.has_value(), false,
      proved ? fmt::format("{} locations at once were reported on each processor", all.size())
             : proved.error().message,
      needed_by, "let the virtual machine pass debug registers on");
}

MachineFinding examine_intel_pt() {
  const std::string needed_by = "recording branches with Intel PT (tsomon record --pt)";
  const auto device = pt_live::find_pt_device();
  if (!device) {
    return finding("intel_pt", false, false, "not on this machine", needed_by,
                   "use bare metal with an Intel processor from Broadwell on");
  }
  const Opened opened = try_event(event_of(device->type, pt_live::trace_config(*device)));
  const auto has = [&](const char* capability) { return device->can(capability) ? "yes" : "no"; };
  return finding("intel_pt", opened.ok, false,
                 fmt::format("{}; PTWRITE {}, CYC {}, MTC {}, {} address filters", outcome(opened),
                             has("ptwrite"), has("psb_cyc"), has("mtc"), device->address_filters),
                 needed_by,
                 remedy_for(opened, "use bare metal with an Intel processor from Broadwell on"));
}

}  // namespace

std::optional<uint32_t> device_type(const std::string& name) {
  uint32_t type = 0;
  if (std::ifstream("/sys/bus/event_source/devices/" + name + "/type") >> type) {
    return type;
  }
  return std::nullopt;
}

std::optional<CodePlace> code_place(uint64_t address) {
  const auto mappings = attach::read_mappings(::getpid());
  if (!mappings) {
    return std::nullopt;
  }
  for (const attach::Mapping& mapping : *mappings) {
    if (address >= mapping.begin && address < mapping.end) {
      return CodePlace{mapping.path, address - mapping.begin + mapping.offset};
    }
  }
  return std::nullopt;
}

std::vector<MachineFinding> examine_perf() {
  return {examine_paranoid(), examine_software(),    examine_hardware(),
          examine_uprobes(),  examine_breakpoints(), examine_intel_pt()};
}

}  // namespace tsomon::doctor
