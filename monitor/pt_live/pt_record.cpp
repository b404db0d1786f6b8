#include "monitor/pt_live/pt_record.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "monitor/process/child.h"
#include "monitor/process/elf_image.h"
#include "monitor/pt_live/pt_device.h"

namespace tsomon::pt_live {
namespace {

volatile std::sig_atomic_t dump_asked = 0;
volatile std::sig_atomic_t stop_asked = 0;

// Handlers while the object lives; a program that is executed has the ones from before.
class Signals {
 public:
  explicit Signals(bool stops) : stops_(stops) {
    dump_asked = 0;
    stop_asked = 0;
    set(
        SIGUSR2, [](int) { dump_asked = 1; }, dump_);
    if (stops) {
      set(
          SIGINT, [](int) { stop_asked = 1; }, interrupt_);
      set(
          SIGTERM, [](int) { stop_asked = 1; }, terminate_);
    }
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    ::sigaction(SIGUSR2, &dump_, nullptr);
    if (stops_) {
      ::sigaction(SIGINT, &interrupt_, nullptr);
      ::sigaction(SIGTERM, &terminate_, nullptr);
    }
  }

 private:
  static void set(int signal, void (*handler)(int), struct sigaction& before) {
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, &before);
  }
  struct sigaction dump_ {};
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
  bool stops_;
};

size_t power_of_two(size_t value) {
  size_t power = 1;
  while (power < value) {
    power *= 2;
  }
  return power;
}

std::string executable_of(const PtRecordRequest& request) {
  if (request.command.empty()) {
    return fmt::format("/proc/{}/exe", request.pid);
  }
  const std::string& name = request.command[0];
  if (name.find('/') != std::string::npos) {
    return name;
  }
  const char* const path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    std::string file = rest.substr(0, end) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) {
      return file;
    }
    rest.erase(0, end + 1);
  }
  return name;
}

template <typename Ended>
Result<PtRecordResult> follow(Recording& recording, bool snapshot, Ended ended) {
  PtRecordResult result;
  while (!ended()) {
    recording.wait(100);
    auto written = recording.write();
    if (written && dump_asked != 0 && snapshot) {
      dump_asked = 0;
      ++result.snapshots;
      written = recording.dump();
    }
    if (!written) {
      return tl::unexpected<Error>(written.error());
    }
  }
  result.snapshots += snapshot ? 1 : 0;
  if (auto finished = recording.finish(); !finished) {
    return tl::unexpected<Error>(finished.error());
  }
  result.trace_bytes = recording.trace_bytes();
  return result;
}

perf_event_attr common(bool inherit, bool on_exec) {
  perf_event_attr event{};
  event.size = 128;  // as perf::WrittenAttribute has it
  event.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                      PERF_SAMPLE_CPU;
  event.sample_period = 1;
  event.sample_id_all = 1;
  event.disabled = 1;
  event.enable_on_exec = on_exec ? 1 : 0;
  event.inherit = inherit ? 1 : 0;
  event.exclude_kernel = 1;
  event.exclude_hv = 1;
  return event;
}

}  // namespace

perf_event_attr sideband_event(bool inherit, bool on_exec) {
  perf_event_attr event = common(inherit, on_exec);
  event.type = PERF_TYPE_SOFTWARE;
  event.config = PERF_COUNT_SW_DUMMY;
  event.mmap = 1;
  event.mmap2 = 1;
  event.comm = 1;
  event.comm_exec = 1;
  event.task = 1;
  event.context_switch = 1;
  return event;
}

RecordingSetup setup_of(const PtRecordRequest& request, std::vector<perf_event_attr> events,
                        std::vector<uint64_t> auxtrace_values) {
  RecordingSetup setup;
  setup.rings.events = std::move(events);
  setup.rings.per_thread = request.per_thread;
  setup.rings.snapshot = request.snapshot;
  if (!auxtrace_values.empty()) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    setup.rings.trace_pages = std::max<size_t>(power_of_two(request.trace_bytes) / page, 1);
  }
  setup.auxtrace_values = std::move(auxtrace_values);
  return setup;
}

Result<RecordingSetup> pt_setup(const PtRecordRequest& request) {
  const auto device = find_pt_device();
  if (!device) {
    return tl::unexpected<Error>(device.error());
  }
  std::string filter;
  if (!request.filter.empty()) {
    auto made = filter_of(executable_of(request), request.filter, device->address_filters);
    if (!made) {
      return tl::unexpected<Error>(made.error());
    }
    filter = std::move(*made);
  }
  const bool inherit = !request.per_thread;
  const bool on_exec = request.pid == 0;
  perf_event_attr trace = common(inherit, on_exec);
  trace.type = device->type;
  trace.config = trace_config(*device);
  RecordingSetup setup =
      setup_of(request, {trace, sideband_event(inherit, on_exec)},
               auxtrace_values(*device, request.snapshot, !request.per_thread, filter));
  setup.filter = std::move(filter);
  return setup;
}

Result<PtRecordResult> record_with(const PtRecordRequest& request, const RecordingSetup& setup) {
  const Signals signals(request.command.empty());
  if (request.command.empty()) {
    auto recording = Recording::begin(setup, request.output, request.pid, true);
    if (!recording) {
      return tl::unexpected<Error>(recording.error());
    }
    return follow(**recording, request.snapshot,
                  [&] { return stop_asked != 0 || ::kill(request.pid, 0) != 0; });
  }
  Result<std::unique_ptr<Recording>> recording;
  Child child(request.command, [&](pid_t pid) {
    recording = Recording::begin(setup, request.output, pid, false);
    return recording.has_value();
  });
  if (!recording) {
    return tl::unexpected<Error>(recording.error());
  }
  if (child.exec_error() != 0) {
    return fail(ErrorKind::kUsage,
                fmt::format("{}: {}", request.command[0], std::strerror(child.exec_error())));
  }
  auto result =
      follow(**recording, request.snapshot, [&] { return child.ended() || child.left(); });
  if (result) {
    result->status = exit_status(child.wait());
  }
  return result;
}

Result<PtRecordResult> record_pt(const PtRecordRequest& request) {
  const auto setup = pt_setup(request);
  if (!setup) {
    return tl::unexpected<Error>(setup.error());
  }
  return record_with(request, *setup);
}

Result<std::string> filter_of(const std::string& file, const std::vector<std::string>& patterns,
                              uint64_t most) {
  const auto real = std::unique_ptr<char, void (*)(void*)>(::realpath(file.c_str(), nullptr), free);
  const std::string path = real ? real.get() : file;
  auto image = attach::ElfImage::open(path, path);
  if (!image) {
    return tl::unexpected<Error>(image.error());
  }
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // offset, size
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (const attach::Symbol& symbol : (*image)->functions()) {
      const auto offset = (*image)->offset_of(symbol.address);
      if (offset && symbol.size != 0 && symbol.matches(pattern)) {
        any = true;
        ranges.emplace_back(*offset, symbol.size);
      }
    }
    if (!any) {
      return fail(ErrorKind::kUsage,
                  fmt::format("--filter {}: no such function in {}", pattern, path));
    }
  }
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  if (ranges.size() > most) {
    return fail(ErrorKind::kUsage,
                fmt::format("--filter: {} functions match, the processor has {} address filters",
                            ranges.size(), most));
  }
  std::string filter;
  for (const auto& [offset, size] : ranges) {
    filter +=
        fmt::format("{}filter 0x{:x}/0x{:x}@{}", filter.empty() ? "" : ",", offset, size, path);
  }
  return filter;
}

}  // namespace tsomon::pt_live
