#include "monitor/pt_live/pt_record.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include "monitor/attach/elf_image.h"
#include "monitor/child.h"
#include "monitor/pt_live/event_rings.h"
#include "monitor/pt_live/pt_device.h"
#include "monitor/pt_live/running_code.h"

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

std::string auxtrace_info(std::vector<uint64_t> values,
                          const std::optional<perf::TimeConversion>& clock,
                          const std::string& filter) {
  if (clock && values.size() > 4) {
    values[1] = clock->shift;
    values[2] = clock->mult;
    values[3] = clock->zero;
    values[4] = 1;
  }
  perf::Fields payload;
  payload.put(perf::AuxtraceInfo::kIntelPt).put(uint32_t{0});
  for (const uint64_t value : values) {
    payload.put(value);
  }
  if (!filter.empty()) {
    payload.put_text(filter);
  }
  return record_bytes(perf::RecordType::kAuxtraceInfo, 0, payload.bytes());
}

class Recording {
 public:
  Recording(const PtRecordRequest& request, RingRequest rings, std::vector<uint64_t> values,
            std::string filter)
      : request_(request),
        ring_request_(std::move(rings)),
        values_(std::move(values)),
        filter_(std::move(filter)) {}

  Result<PtRecordResult> run() {
    const Signals signals(request_.command.empty());
    if (request_.command.empty()) {
      if (threads_of(request_.pid).empty()) {
        return fail(ErrorKind::kUsage, fmt::format("there is no process {}", request_.pid));
      }
      if (auto begun = begin(request_.pid); !begun) {
        return tl::unexpected<Error>(begun.error());
      }
      rings_->enable();
      return follow([&] { return stop_asked != 0 || ::kill(request_.pid, 0) != 0; });
    }
    Result<bool> begun = true;
    Child child(request_.command, [&](pid_t pid) {
      begun = begin(pid);
      return begun.has_value();
    });
    if (!begun) {
      return tl::unexpected<Error>(begun.error());
    }
    if (child.exec_error() != 0) {
      return fail(ErrorKind::kUsage,
                  fmt::format("{}: {}", request_.command[0], std::strerror(child.exec_error())));
    }
    auto result = follow([&] { return child.ended(); });
    if (result) {
      result->status = exit_status(child.wait());
    }
    return result;
  }

 private:
  Result<bool> begin(pid_t pid) {
    ring_request_.threads = threads_of(pid);
    auto rings = EventRings::open(ring_request_);
    if (!rings) {
      return tl::unexpected<Error>(rings.error());
    }
    rings_ = std::move(*rings);
    if (!filter_.empty()) {
      if (auto set = rings_->set_filter(filter_); !set) {
        return set;
      }
    }
    const auto attributes = rings_->attributes();
    auto file = PerfFile::create(request_.output, attributes);
    if (!file) {
      return tl::unexpected<Error>(file.error());
    }
    file_.emplace(std::move(*file));
    std::string records;
    if (!values_.empty()) {
      records = auxtrace_info(values_, rings_->clock(), filter_);
    }
    if (request_.command.empty()) {
      records += running_code(pid, attributes.back().ids.front());
    }
    return file_->add(records);
  }

  template <typename Ended>
  Result<PtRecordResult> follow(Ended ended) {
    PtRecordResult result;
    while (!ended()) {
      rings_->wait(100);
      if (auto written = rings_->write(*file_, false); !written) {
        return tl::unexpected<Error>(written.error());
      }
      if (dump_asked != 0 && request_.snapshot) {
        dump_asked = 0;
        if (auto dumped = dump(result); !dumped) {
          return tl::unexpected<Error>(dumped.error());
        }
      }
    }
    rings_->disable();
    auto written = rings_->write(*file_, true);
    if (written && request_.snapshot) {
      written = dump(result);
    }
    if (written) {
      written = file_->finish();
    }
    if (!written) {
      return tl::unexpected<Error>(written.error());
    }
    result.trace_bytes = file_->trace_bytes();
    return result;
  }

  Result<bool> dump(PtRecordResult& result) {
    ++result.snapshots;
    return rings_->write_snapshot(*file_);
  }

  const PtRecordRequest& request_;
  RingRequest ring_request_;
  std::vector<uint64_t> values_;
  std::string filter_;
  std::unique_ptr<EventRings> rings_;
  std::optional<PerfFile> file_;
};

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

Result<PtRecordResult> record_events(const PtRecordRequest& request,
                                     std::vector<perf_event_attr> events,
                                     const std::vector<uint64_t>& auxtrace_values,
                                     const std::string& filter) {
  RingRequest rings;
  rings.events = std::move(events);
  rings.per_thread = request.per_thread;
  rings.snapshot = request.snapshot;
  if (!auxtrace_values.empty()) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    rings.trace_pages = std::max<size_t>(power_of_two(request.trace_bytes) / page, 1);
  }
  return Recording(request, std::move(rings), auxtrace_values, filter).run();
}

Result<PtRecordResult> record_pt(const PtRecordRequest& request) {
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
  const bool on_exec = !request.command.empty();
  perf_event_attr trace = common(inherit, on_exec);
  trace.type = device->type;
  trace.config = trace_config(*device);
  return record_events(request, {trace, sideband_event(inherit, on_exec)},
                       auxtrace_values(*device, request.snapshot, !request.per_thread, filter),
                       filter);
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
    for (const attach::Symbol& symbol : (*image)->symbols()) {
      const auto offset = (*image)->offset_of(symbol.address);
      if (symbol.function && offset && symbol.size != 0 &&
          (::fnmatch(pattern.c_str(), symbol.readable.c_str(), 0) == 0 ||
           ::fnmatch(pattern.c_str(), symbol.name.c_str(), 0) == 0)) {
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
