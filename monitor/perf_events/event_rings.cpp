#include "monitor/perf_events/event_rings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/perf_events/remedy.h"

namespace tsomon::pt_live {
namespace {

size_t page() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

tl::unexpected<Error> cannot(const char* what, int error, const std::string& otherwise) {
  return fail(ErrorKind::kEnvironment,
              fmt::format("{}: {}: {}", what, std::strerror(error), perf_remedy(error, otherwise)));
}

}  // namespace

Result<std::unique_ptr<EventRings>> EventRings::open(const RingRequest& request) {
  std::unique_ptr<EventRings> rings(new EventRings(request));
  const int processors = request.per_thread ? 1 : static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF));
  for (int i = 0; i < processors; ++i) {
    std::optional<size_t> owner;  // of this processor's ring
    for (const pid_t thread : request.threads) {
      if (request.per_thread) {
        owner.reset();
      }
      auto opened = rings->open_on(request.per_thread ? -1 : i, thread, owner);
      if (!opened) {
        return tl::unexpected<Error>(opened.error());
      }
    }
  }
  if (rings->rings_.empty()) {
    return fail(ErrorKind::kEnvironment, "no thread to record is there any more");
  }
  return rings;
}

EventRings::~EventRings() {
  for (const Ring& ring : rings_) {
    if (ring.trace != nullptr) {
      ::munmap(ring.trace, request_.trace_pages * page());
    }
    ::munmap(ring.control, (request_.record_pages + 1) * page());
  }
}

Result<bool> EventRings::open_on(int cpu, pid_t thread, std::optional<size_t>& owner) {
  for (size_t i = 0; i < request_.events.size(); ++i) {
    Descriptor fd(static_cast<int>(::syscall(SYS_perf_event_open, &request_.events[i], thread, cpu,
                                             -1, PERF_FLAG_FD_CLOEXEC)));
    if (!fd.is_open()) {
      const int error = errno;
      if (error == ESRCH || error == ENODEV) {
        return true;  // the thread has ended, the processor is switched off
      }
      return cannot("perf event", error, "look at `tsomon doctor`");
    }
    Event event{std::move(fd), i, 0};
    if (::ioctl(event.fd.get(), PERF_EVENT_IOC_ID, &event.id) != 0) {
      return cannot("number of a perf event", errno, "use a kernel from 3.12 on");
    }
    if (!owner) {
      Ring ring;
      ring.cpu = cpu;
      ring.thread = cpu < 0 ? thread : -1;
      if (auto mapped = map(event.fd, ring); !mapped) {
        return mapped;
      }
      owner = events_.size();
    } else if (::ioctl(event.fd.get(), PERF_EVENT_IOC_SET_OUTPUT, events_[*owner].fd.get()) != 0) {
      return cannot("shared ring of perf events", errno, "look at `tsomon doctor`");
    }
    events_.push_back(std::move(event));
  }
  return true;
}

Result<bool> EventRings::map(const Descriptor& owner, Ring ring) {
  const std::string more_memory =
      "allow more locked memory (ulimit -l, or "
      "/proc/sys/kernel/perf_event_mlock_kb), or use smaller buffers";
  const size_t records = (request_.record_pages + 1) * page();
  void* const control =
      ::mmap(nullptr, records, PROT_READ | PROT_WRITE, MAP_SHARED, owner.get(), 0);
  if (control == MAP_FAILED) {
    return cannot("ring of records", errno, more_memory);
  }
  ring.control = static_cast<perf_event_mmap_page*>(control);
  ring.fd = owner.get();
  if (request_.trace_pages != 0) {
    const size_t size = request_.trace_pages * page();
    ring.control->aux_offset = records;
    ring.control->aux_size = size;
    // Read-only: it is overwritten for ever.
    const int access = PROT_READ | (request_.snapshot ? 0 : PROT_WRITE);
    void* const trace =
        ::mmap(nullptr, size, access, MAP_SHARED, owner.get(), static_cast<off_t>(records));
    if (trace == MAP_FAILED) {
      const int error = errno;
      ::munmap(control, records);
      return cannot("area of trace data", error, more_memory);
    }
    ring.trace = static_cast<char*>(trace);
  }
  rings_.push_back(ring);
  if (ring.trace != nullptr) {
    snapshots_.push_back(trace_of(ring));
  }
  return true;
}

AuxRing EventRings::trace_of(const Ring& ring) const {
  return {ring.control, ring.trace, request_.trace_pages * page()};
}

std::vector<perf::WrittenAttribute> EventRings::attributes() const {
  std::vector<perf::WrittenAttribute> all;
  for (size_t i = 0; i < request_.events.size(); ++i) {
    const perf_event_attr& from = request_.events[i];
    perf::WrittenAttribute to;
    to.type = from.type;
    to.config = from.config;
    to.sample_period = from.sample_period;
    to.sample_type = from.sample_type;
    to.read_format = from.read_format;
    // The bit fields are one word there.
    static_assert(offsetof(perf_event_attr, read_format) + 16 ==
                  offsetof(perf_event_attr, wakeup_events));
    std::memcpy(&to.flags,
                reinterpret_cast<const char*>(&from) + offsetof(perf_event_attr, read_format) + 8,
                sizeof to.flags);
    for (const Event& event : events_) {
      if (event.of == i) {
        to.ids.push_back(event.id);
      }
    }
    all.push_back(std::move(to));
  }
  return all;
}

std::optional<perf::TimeConversion> EventRings::clock() const {
  const perf_event_mmap_page& page = *rings_.front().control;
  if (page.cap_user_time_zero == 0 || page.time_mult == 0) {
    return std::nullopt;
  }
  perf::TimeConversion clock;
  clock.shift = page.time_shift;
  clock.mult = page.time_mult;
  clock.zero = page.time_zero;
  return clock;
}

Result<bool> EventRings::set_filter(const std::string& filter) {
  for (const Event& event : events_) {
    if (event.of == 0 && ::ioctl(event.fd.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) != 0) {
      return cannot("address filter", errno,
                    "name fewer functions, in files that the kernel can find");
    }
  }
  return true;
}

void EventRings::control_all(unsigned long what, bool traces) {
  for (const Event& event : events_) {
    if (!traces || (event.of == 0 && request_.trace_pages != 0)) {
      ::ioctl(event.fd.get(), what, 0);
    }
  }
}

void EventRings::wait(int milliseconds) const {
  std::vector<pollfd> ready;
  for (const Ring& ring : rings_) {
    ready.push_back({ring.fd, POLLIN, 0});
  }
  const int found = ::poll(ready.data(), ready.size(), milliseconds);
  // Rings whose threads have ended are ready for ever.
  const auto hung_up = [](const pollfd& one) { return (one.revents & POLLHUP) != 0; };
  if (found > 0 && std::any_of(ready.begin(), ready.end(), hung_up)) {
    ::poll(nullptr, 0, std::min(milliseconds, 10));
  }
}

void EventRings::read(std::string& records) {
  const size_t before = records.size();
  for (const Ring& ring : rings_) {
    RecordRing(ring.control, reinterpret_cast<char*>(ring.control) + page(),
               request_.record_pages * page())
        .read(records);
  }
  if (records.size() != before) {
    records += record_bytes(perf::RecordType::kFinishedRound, 0, {});
  }
}

Result<bool> EventRings::write_trace(PerfFile& file, bool end) {
  for (size_t i = 0; i < rings_.size() && request_.trace_pages != 0; ++i) {
    AuxRing trace = trace_of(rings_[i]);
    const AuxRing::Piece piece = trace.read(end);
    auto written =
        file.add_trace(piece, static_cast<uint32_t>(i), rings_[i].cpu, rings_[i].thread, 0);
    if (!written) {
      return written;
    }
    trace.release(piece);
  }
  return true;
}

Result<bool> EventRings::write_snapshot(PerfFile& file) {
  ++snapshot_;
  for (size_t i = 0; i < snapshots_.size(); ++i) {
    auto written = file.add_trace(snapshots_[i].snapshot(), static_cast<uint32_t>(i), rings_[i].cpu,
                                  rings_[i].thread, snapshot_);
    if (!written) {
      return written;
    }
  }
  return true;
}

}  // namespace tsomon::pt_live
