#include "monitor/attach/perf_uprobes.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <asm/perf_regs.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "monitor/perf_events/perf_event.h"
#include "monitor/perf_events/rings.h"
#include "monitor/process/descriptor.h"
#include "monitor/process/target.h"

namespace tsomon::attach {
namespace {

constexpr const char* kPrefix = "tsomon_";

// perf's numbers of the general registers in the order of their encoding.
constexpr std::array<uint32_t, 16> kRegisterBits = {
    PERF_REG_X86_AX,  PERF_REG_X86_CX,  PERF_REG_X86_DX,  PERF_REG_X86_BX,
    PERF_REG_X86_SP,  PERF_REG_X86_BP,  PERF_REG_X86_SI,  PERF_REG_X86_DI,
    PERF_REG_X86_R8,  PERF_REG_X86_R9,  PERF_REG_X86_R10, PERF_REG_X86_R11,
    PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15};
constexpr uint64_t kSampledRegisters = ((uint64_t{1} << (PERF_REG_X86_SP + 1)) - 1) |
                                       (uint64_t{1} << PERF_REG_X86_FLAGS) |
                                       (uint64_t{0xff} << PERF_REG_X86_R8);
constexpr size_t kSampledCount = 8 + 1 + 8;

struct SampleRecord {
  uint64_t event;  // of an inherited event the number of the first one
  uint64_t ip;
  uint32_t process;
  uint32_t thread;
  int64_t time;
  uint64_t abi;
  uint64_t registers[kSampledCount];  // by perf's numbers, ascending
};
static_assert(sizeof(SampleRecord) == 40 + 8 * kSampledCount);

struct ExitRecord {
  uint32_t process;
  uint32_t parent;
  uint32_t thread;
};

template <typename T>
std::optional<T> record_of(std::span<const char> body) {
  T record{};
  if (body.size() < sizeof record) {
    return std::nullopt;
  }
  std::memcpy(&record, body.data(), sizeof record);
  return record;
}

void set_registers(const SampleRecord& record, x86::RegisterFile& registers) {
  std::array<uint64_t, 64> by_bit{};
  size_t next = 0;
  for (uint32_t bit = 0; bit < by_bit.size(); ++bit) {
    if ((kSampledRegisters >> bit & 1) != 0) {
      by_bit[bit] = record.registers[next++];
    }
  }
  for (size_t i = 0; i < kRegisterBits.size(); ++i) {
    registers.set(static_cast<x86::Register>(i), by_bit[kRegisterBits[i]]);
  }
  registers.set(x86::Register::kDirection, (by_bit[PERF_REG_X86_FLAGS] >> 10) & 1);
}

perf_event_attr hit_attributes() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                           PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER;
  attributes.sample_regs_user = kSampledRegisters;
  attributes.sample_period = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.wakeup_events = 1U << 30;  // the reader looks by itself
  return attributes;
}

// Less than this free: something may have been lost.
constexpr size_t kNearlyFull = 1024;

tl::unexpected<Error> perf_refused(const std::string& what, int error) {
  std::string remedy = "use a kernel from 5.13 on with CONFIG_UPROBE_EVENTS and CONFIG_PERF_EVENTS";
  if (error == EPERM || error == EACCES) {
    remedy = "run as root";
  } else if (error == EMFILE) {
    remedy = "raise the limit of open files (ulimit -n)";
  }
  return fail(ErrorKind::kEnvironment,
              fmt::format("{}: {}; {}", what, std::strerror(error), remedy));
}

// The tracing file system.
std::optional<std::string> tracing_folder() {
  for (const char* folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (::access(fmt::format("{}/uprobe_events", folder).c_str(), F_OK) == 0) {
      return folder;
    }
  }
  return std::nullopt;
}

// One write is one definition. 0 or errno.
int define(const std::string& folder, const std::string& text) {
  const Descriptor file(
      ::open((folder + "/uprobe_events").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.is_open()) {
    return errno;
  }
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

// What monitors left that were killed. The kernel keeps what is in use.
void remove_left_over(const std::string& folder) {
  std::ifstream events(folder + "/uprobe_events");
  std::set<std::string> names;
  for (std::string line; std::getline(events, line);) {
    const std::string start = fmt::format("p:{}", kPrefix);
    if (line.compare(0, start.size(), start) == 0) {
      names.insert(line.substr(2, line.find(' ') - 2));
    }
  }
  for (const std::string& name : names) {
    const std::string process =
        name.substr(std::strlen(kPrefix), name.find('/') - std::strlen(kPrefix));
    if (::access(("/proc/" + process).c_str(), F_OK) != 0) {
      define(folder, "-:" + name + "\n");
    }
  }
}

class PerfUprobes : public Uprobes {
 public:
  PerfUprobes(pid_t pid, std::string folder) : shared_(std::make_shared<Shared>()) {
    shared_->pid = pid;
    shared_->folder = std::move(folder);
  }
  const char* name() const override { return "perf"; }

  Result<bool> open_rings(size_t bytes) {
    const long processors = ::sysconf(_SC_NPROCESSORS_CONF);
    for (int processor = 0; processor < processors; ++processor) {
      perf_event_attr attributes = hit_attributes();
      attributes.type = PERF_TYPE_SOFTWARE;
      attributes.config = PERF_COUNT_SW_DUMMY;
      Descriptor owner(open_event(attributes, shared_->pid, processor));
      if (!owner.is_open() && errno == ENODEV) {
        continue;  // switched off
      }
      if (!owner.is_open()) {
        return perf_refused("perf events cannot be opened", errno);
      }
      auto ring = MappedRing::map(owner, bytes);
      if (!ring) {
        return tl::unexpected<Error>(ring.error());
      }
      rings_.push_back({processor, std::move(owner), std::move(*ring)});
    }
    return true;
  }

  Result<ProbeHold> attach(pid_t pid, const std::string& file,
                           const std::vector<ProbePlace>& places, int* refused) override {
    TSOMON_CHECK(pid == shared_->pid, "probes are for one process");
    auto group = std::make_shared<Group>();
    group->shared = shared_;
    group->name = fmt::format("{}{}/places{}", kPrefix, ::getpid(), shared_->next_name++);
    for (const ProbePlace& place : places) {
      group->sources[place.offset] = place.source;
      std::string text = fmt::format("p:{} {}:0x{:x}", group->name, file, place.offset);
      if (place.semaphore != 0) {
        text += fmt::format("(0x{:x})", place.semaphore);
      }
      if (const int error = define(shared_->folder, text + "\n"); error != 0) {
        return refusal("a uprobe cannot be defined", error, refused);
      }
      group->defined = true;
    }
    uint64_t number = 0;
    if (!(std::ifstream(shared_->folder + "/events/" + group->name + "/id") >> number)) {
      return refusal("a uprobe has no number", ENOENT, refused);
    }
    if (const int error = open_for_threads(number, *group); error != 0) {
      return refusal("uprobes cannot be set", error, refused);
    }
    return ProbeHold(std::move(group));
  }

  void read(std::vector<Hit>& hits) override {
    std::vector<uint32_t> ended;
    for (Ring& ring : rings_) {
      std::string records;
      full_ |= ring.records.read(records) < kNearlyFull;
      for_each_record(records, [&](const perf_event_header& header, std::string_view body) {
        take(header.type, {body.data(), body.size()}, hits, ended);
      });
    }
    // Its last hits may be in a ring that had been read: one round later.
    for (const uint32_t thread : ended_) {
      shared_->own.erase(thread);
    }
    ended_ = std::move(ended);
  }

  void mappings_changed() override { code_.clear(); }
  uint64_t lost() const override { return lost_ != 0 ? lost_ : full_ ? 1 : 0; }

 private:
  struct Group;

  // What the probes that were set share, also when they go after this object.
  struct Shared {
    pid_t pid = 0;
    std::string folder;
    uint64_t next_name = 0;
    struct Opened {
      uint32_t thread = 0;  // that it was opened for
      std::shared_ptr<const std::map<uint64_t, uint32_t>> sources;
    };
    std::unordered_map<uint64_t, Opened> events;  // by number; those that are gone stay
    // Threads that events were opened for. One that was started meanwhile may also have inherited
    // those of another: they would tell its hits twice, or for some processors only.
    std::set<uint32_t> own;
  };

  struct Group {
    std::shared_ptr<Shared> shared;
    std::string name;
    bool defined = false;
    std::map<uint64_t, uint32_t> sources;  // by offset
    std::vector<Descriptor> events;

    Group() = default;
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    ~Group() {
      events.clear();
      if (defined) {
        define(shared->folder, "-:" + name + "\n");
      }
    }
  };

  struct Ring {
    int processor = 0;
    Descriptor owner;
    MappedRing records;
  };

  static tl::unexpected<Error> refusal(const char* what, int error, int* refused) {
    if (refused != nullptr) {
      *refused = error;
    }
    return perf_refused(what, error);
  }

  std::vector<pid_t> threads() const {
    std::vector<pid_t> all;
    DIR* const folder = ::opendir(fmt::format("/proc/{}/task", shared_->pid).c_str());
    if (folder == nullptr) {
      return all;
    }
    while (const dirent* entry = ::readdir(folder)) {
      if (const int thread = std::atoi(entry->d_name); thread > 0) {
        all.push_back(thread);
      }
    }
    ::closedir(folder);
    return all;
  }

  // Until there is no thread without: later ones inherit from threads that have all. 0 or errno.
  int open_for_threads(uint64_t number, Group& group) {
    perf_event_attr attributes = hit_attributes();
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.config = number;
    attributes.inherit = 1;
    attributes.inherit_thread = 1;  // not by child processes
    attributes.task = 1;            // tells ends of threads
    const auto sources = std::make_shared<const std::map<uint64_t, uint32_t>>(group.sources);
    std::set<pid_t> done;
    for (bool more = true; more;) {
      more = false;
      for (const pid_t thread : threads()) {
        if (!done.insert(thread).second) {
          continue;
        }
        more = true;
        for (const Ring& ring : rings_) {
          Descriptor event(open_event(attributes, thread, ring.processor));
          if (!event.is_open() && errno == ESRCH) {
            break;  // it has ended
          }
          uint64_t opened = 0;
          if (!event.is_open() ||
              ::ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, ring.owner.get()) != 0 ||
              ::ioctl(event.get(), PERF_EVENT_IOC_ID, &opened) != 0) {
            return errno;
          }
          shared_->events[opened] = {static_cast<uint32_t>(thread), sources};
          shared_->own.insert(static_cast<uint32_t>(thread));
          group.events.push_back(std::move(event));
        }
      }
    }
    return 0;
  }

  void take(uint32_t type, std::span<const char> body, std::vector<Hit>& hits,
            std::vector<uint32_t>& ended) {
    if (type == PERF_RECORD_LOST) {
      if (const auto record = record_of<LostRecord>(body)) {
        lost_ += record->lost;
      }
    } else if (type == PERF_RECORD_EXIT) {
      if (const auto record = record_of<ExitRecord>(body)) {
        ended.push_back(record->thread);
      }
    } else if (type == PERF_RECORD_SAMPLE) {
      const auto record = record_of<SampleRecord>(body);
      if (record && record->abi == PERF_SAMPLE_REGS_ABI_64) {
        add_hit(*record, hits);
      }
    }
  }

  void add_hit(const SampleRecord& record, std::vector<Hit>& hits) {
    const auto event = shared_->events.find(record.event);
    if (event == shared_->events.end() ||
        (event->second.thread != record.thread && shared_->own.count(record.thread) != 0)) {
      return;
    }
    const auto offset = offset_of(record.ip);
    const auto source =
        offset ? event->second.sources->find(*offset) : event->second.sources->end();
    if (source == event->second.sources->end()) {
      ++lost_;
      return;
    }
    Hit hit;
    hit.time = record.time;
    hit.thread = record.thread;
    hit.source = source->second;
    hit.ip = record.ip;
    set_registers(record, hit.registers);
    hits.push_back(hit);
  }

  std::optional<uint64_t> offset_of(uint64_t ip) {
    for (int tries = 0; tries < 2; ++tries) {
      for (const Mapping& mapping : code_) {
        if (ip >= mapping.begin && ip < mapping.end) {
          return ip - mapping.begin + mapping.offset;
        }
      }
      code_.clear();
      if (auto mappings = read_mappings(shared_->pid)) {
        for (const Mapping& mapping : *mappings) {
          if (mapping.executable && mapping.inode != 0) {
            code_.push_back(mapping);
          }
        }
      }
    }
    return std::nullopt;
  }

  std::shared_ptr<Shared> shared_;
  std::vector<Ring> rings_;
  std::vector<Mapping> code_;
  std::vector<uint32_t> ended_;
  uint64_t lost_ = 0;
  bool full_ = false;
};

}  // namespace

Result<std::unique_ptr<Uprobes>> create_perf_uprobes(pid_t pid, size_t ring_bytes) {
  const auto folder = tracing_folder();
  if (!folder) {
    return fail(ErrorKind::kEnvironment,
                "uprobe_events was not found; as root: mount -t tracefs nodev /sys/kernel/tracing, "
                "or use a kernel with CONFIG_UPROBE_EVENTS");
  }
  remove_left_over(*folder);
  auto probes = std::make_unique<PerfUprobes>(pid, *folder);
  if (auto opened = probes->open_rings(ring_bytes); !opened) {
    return tl::unexpected<Error>(opened.error());
  }
  return probes;
}

}  // namespace tsomon::attach
