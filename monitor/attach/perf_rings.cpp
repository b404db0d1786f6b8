#include "monitor/attach/perf_rings.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <asm/perf_regs.h>
#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "monitor/perf_events/perf_event.h"

namespace tsomon::attach {
namespace {

constexpr size_t kDataBytes = 128 * kPage;
// The general registers by their number in the encoding, then flags.
constexpr std::array<uint32_t, 16> kRegisters = {
    PERF_REG_X86_AX,  PERF_REG_X86_CX,  PERF_REG_X86_DX,  PERF_REG_X86_BX,
    PERF_REG_X86_SP,  PERF_REG_X86_BP,  PERF_REG_X86_SI,  PERF_REG_X86_DI,
    PERF_REG_X86_R8,  PERF_REG_X86_R9,  PERF_REG_X86_R10, PERF_REG_X86_R11,
    PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15};

uint64_t register_mask() {
  uint64_t mask = 0;
  for (const uint32_t number : kRegisters) {
    mask |= uint64_t{1} << number;
  }
  return mask;
}

// One layout for all records of a ring.
perf_event_attr ring_attributes() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                           PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER;
  attributes.sample_regs_user = register_mask();
  attributes.sample_id_all = 1;
  attributes.sample_period = 1;
  attributes.inherit = 1;
  attributes.inherit_thread = 1;  // threads, not processes
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.wakeup_events = 1U << 30;  // the reader looks by itself
  return attributes;
}

perf_event_attr switches() {
  perf_event_attr attributes = ring_attributes();
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.context_switch = 1;
  attributes.task = 1;
  attributes.mmap = 1;
  attributes.mmap2 = 1;
  attributes.mmap_data = 1;
  return attributes;
}

perf_event_attr breakpoint(const WatchPoint& watch) {
  perf_event_attr attributes = ring_attributes();
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_RW;
  attributes.bp_addr = watch.address;
  attributes.bp_len = watch.size;
  return attributes;
}

tl::unexpected<Error> refused(const std::string& what, int error) {
  std::string remedy = "use a kernel with CONFIG_PERF_EVENTS";
  if (error == EPERM || error == EACCES) {
    remedy = "run as root, or with CAP_PERFMON and CAP_SYS_PTRACE";
  } else if (error == ENOSPC) {
    remedy = "a debugger holds the debug registers: watch less, or end it";
  } else if (error == EMFILE) {
    remedy = "raise the limit of open files: ulimit -n";
  }
  return fail(ErrorKind::kEnvironment,
              fmt::format("{}: {}; {}", what, std::strerror(error), remedy));
}

template <typename T>
T take(const char*& from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  from += sizeof value;
  return value;
}

}  // namespace

Result<std::unique_ptr<PerfRings>> PerfRings::create() {
  std::unique_ptr<PerfRings> rings(new PerfRings);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int processor = 0; processor < processors; ++processor) {
    Ring ring;
    ring.processor = processor;
    // An event of this process that never counts: it owns the ring.
    perf_event_attr attributes = ring_attributes();
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_DUMMY;
    attributes.inherit = 0;
    attributes.inherit_thread = 0;
    ring.owner = Descriptor(open_event(attributes, -1, processor));
    if (!ring.owner.is_open()) {
      if (errno == ENODEV) {
        continue;  // this processor is switched off
      }
      return refused("perf events cannot be opened", errno);
    }
    auto records = MappedRing::map(ring.owner, kDataBytes);
    if (!records) {
      return tl::unexpected<Error>(records.error());
    }
    ring.records.emplace(std::move(*records));
    rings->rings_.push_back(std::move(ring));
  }
  return rings;
}

PerfRings::~PerfRings() { detach(); }

void PerfRings::detach() { events_.clear(); }

void PerfRings::stop_watching() {
  for (const Descriptor& event : events_) {
    uint64_t number = 0;
    if (::ioctl(event.get(), PERF_EVENT_IOC_ID, &number) == 0 &&
        watch_of_event_.count(number) != 0) {
      ::ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0);
    }
  }
}

Result<bool> PerfRings::attach_thread(pid_t thread, const std::vector<WatchPoint>& watch) {
  for (const Ring& ring : rings_) {
    for (size_t i = 0; i <= watch.size(); ++i) {
      Descriptor event(
          open_event(i == 0 ? switches() : breakpoint(watch[i - 1]), thread, ring.processor));
      if (!event.is_open()) {
        if (errno == ESRCH) {
          return true;  // the thread has ended
        }
        return refused(i == 0 ? "perf events of a thread cannot be opened"
                              : fmt::format("{}: cannot be watched", watch[i - 1].name),
                       errno);
      }
      uint64_t number = 0;
      if (::ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, ring.owner.get()) != 0 ||
          ::ioctl(event.get(), PERF_EVENT_IOC_ID, &number) != 0) {
        return refused("perf events cannot share a ring", errno);
      }
      if (i != 0) {
        watch_of_event_[number] = static_cast<uint32_t>(i - 1);
      }
      events_.push_back(std::move(event));
    }
  }
  return true;
}

Result<bool> PerfRings::attach(pid_t pid, const std::function<std::vector<pid_t>()>& list,
                               const std::vector<WatchPoint>& watch) {
  pid_ = static_cast<uint32_t>(pid);
  std::set<pid_t> done;
  for (bool more = true; more;) {
    more = false;
    // Threads that those we have were starting meanwhile have inherited; the rings say which.
    std::vector<Hit> early;
    const std::vector<pid_t> threads = list();
    read(early);
    for (const pid_t thread : threads) {
      if (started_.count(static_cast<uint32_t>(thread)) != 0 || !done.insert(thread).second) {
        continue;
      }
      if (auto attached = attach_thread(thread, watch); !attached) {
        return attached;
      }
      more = true;
    }
  }
  return true;
}

void PerfRings::record(const perf_event_header& header, std::string_view body,
                       std::vector<Hit>& hits) {
  const char* at = body.data();
  // What sample_id_all adds to other records.
  constexpr size_t kTrailer = 8 + 8 + 8;
  if (body.size() < kTrailer) {
    return;
  }
  const char* trailer = body.data() + body.size() - kTrailer;
  const auto time_in = [](const char* from) {
    from += 8;  // process and thread
    return take<int64_t>(from);
  };
  // Process, thread, address, length, place in the file, file: then protection and flags.
  constexpr size_t kPlaceInMapping = 4 + 4 + 8 + 8 + 8 + 24;
  Hit hit;
  switch (header.type) {
    case PERF_RECORD_SAMPLE: {
      const auto number = take<uint64_t>(at);
      const auto found = watch_of_event_.find(number);
      hit.ip = take<uint64_t>(at);
      const auto process = take<uint32_t>(at);
      hit.thread = take<uint32_t>(at);
      hit.time = take<int64_t>(at);
      const auto abi = take<uint64_t>(at);
      if (found == watch_of_event_.end() || process != pid_) {
        return;
      }
      hit.kind = Hit::Kind::kWatch;
      hit.source = found->second;
      if (abi != PERF_SAMPLE_REGS_ABI_64) {
        return;
      }
      // In the order of perf's numbers.
      const uint64_t mask = register_mask();
      for (uint32_t perf = 0; perf < 64; ++perf) {
        if ((mask >> perf & 1) == 0) {
          continue;
        }
        const auto value = take<uint64_t>(at);
        for (uint32_t i = 0; i < kRegisters.size(); ++i) {
          if (kRegisters[i] == perf) {
            hit.registers.set(static_cast<x86::Register>(i), value);
          }
        }
      }
      hits.push_back(hit);
      return;
    }
    case PERF_RECORD_SWITCH:
      // Not when it was the scheduler's wish: that says nothing about the program.
      if ((header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0 &&
          (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) == 0) {
        if (take<uint32_t>(trailer) != pid_) {
          return;
        }
        hit.thread = take<uint32_t>(trailer);
        hit.time = take<int64_t>(trailer);
        hit.kind = Hit::Kind::kSleep;
        hits.push_back(hit);
      }
      return;
    case PERF_RECORD_EXIT: {
      // Its stores have drained: the kernel's locked instructions come before this record.
      if (take<uint32_t>(at) != pid_) {
        return;
      }
      take<uint32_t>(at);  // the parent
      hit.thread = take<uint32_t>(at);
      hit.time = time_in(trailer);
      hit.kind = Hit::Kind::kSleep;
      hits.push_back(hit);
      return;
    }
    case PERF_RECORD_FORK:
      take<uint32_t>(at);  // process, its parent, thread
      take<uint32_t>(at);
      started_.insert(take<uint32_t>(at));
      not_alone_from(time_in(trailer));
      return;
    case PERF_RECORD_MMAP2: {
      at += kPlaceInMapping;
      const auto protection = take<uint32_t>(at);
      const auto flags = take<uint32_t>(at);
      if ((protection & PROT_EXEC) != 0) {
        code_mapped_ = std::max(code_mapped_, time_in(trailer));
      }
      if ((flags & MAP_SHARED) != 0) {
        not_alone_from(time_in(trailer));
      }
      return;
    }
    case PERF_RECORD_LOST:
      take<uint64_t>(at);
      lost_ += take<uint64_t>(at);
      not_alone_from(last_read_);
      return;
    default:
      return;
  }
}

void PerfRings::not_alone_from(int64_t time) { alone_until_ = std::min(alone_until_, time); }

void PerfRings::read(std::vector<Hit>& hits) {
  constexpr size_t kNearlyFull = 8192;  // a record that found no room is told later
  const int64_t now = hit_clock();
  for (Ring& ring : rings_) {
    std::string records;
    if (ring.records->read(records) < kNearlyFull) {
      not_alone_from(last_read_);
    }
    for_each_record(records, [&](const perf_event_header& header, std::string_view body) {
      record(header, body, hits);
    });
  }
  last_read_ = now;
}

}  // namespace tsomon::attach
