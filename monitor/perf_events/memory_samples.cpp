#include "monitor/perf_events/memory_samples.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/perf_events/perf_event.h"
#include "monitor/perf_events/rings.h"
#include "monitor/process/descriptor.h"

namespace tsomon::attach {
namespace {

constexpr size_t kRingBytes = size_t{128} << 10;
constexpr uint64_t kUserEnd = 1ULL << 63;
constexpr uint64_t kSampleType =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC;
// Not a divisor of usual lengths of loops, so that no instruction of one is left out.
constexpr uint64_t kPeriod = 1009;
constexpr uint64_t kOperationPeriod = 16 * 1009;  // IBS counts in units of 16

struct KernelSample {  // of kSampleType
  uint64_t ip;
  uint32_t process;
  uint32_t thread;
  uint64_t address;
  uint64_t data_source;
};
static_assert(sizeof(KernelSample) == 32);

SampledAccess access_of(uint64_t data_source, SampledAccess usual) {
  perf_mem_data_src source{};
  source.val = data_source;
  const uint64_t operation = source.mem_op;
  if ((operation & PERF_MEM_OP_STORE) != 0) {
    return SampledAccess::kStore;
  }
  if ((operation & PERF_MEM_OP_LOAD) != 0) {
    return SampledAccess::kLoad;
  }
  return operation == 0 || (operation & PERF_MEM_OP_NA) != 0 ? usual : SampledAccess::kUnknown;
}

// Names of one kind of event, best first: processors differ in which they have. Some newer ones
// take the latency of loads only beside a second event; there any load will do.
struct NamedEvents {
  SampledAccess access;
  std::vector<const char*> names;
};

const std::vector<NamedEvents>& intel_events() {
  static const std::vector<NamedEvents> events = {
      {SampledAccess::kLoad,
       {"MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=3",
        "MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD:ldlat=3",
        "MEM_INST_RETIRED:LATENCY_ABOVE_THRESHOLD:ldlat=3", "MEM_INST_RETIRED:ALL_LOADS",
        "MEM_UOPS_RETIRED:ALL_LOADS"}},
      {SampledAccess::kStore,
       {"MEM_INST_RETIRED:ALL_STORES", "MEM_TRANS_RETIRED:STORE_SAMPLE",
        "MEM_UOPS_RETIRED:ALL_STORES", "MEM_TRANS_RETIRED:PRECISE_STORE"}}};
  return events;
}

// nullopt: the processor has no event of this name.
std::optional<perf_event_attr> encode(const char* name) {
  auto attributes = event_named(name, false);
  if (!attributes) {
    return std::nullopt;
  }
  attributes->sample_period = kPeriod;
  attributes->precise_ip = 2;
  attributes->exclude_kernel = 1;
  attributes->exclude_hv = 1;
  return attributes;
}

std::optional<perf_event_attr> ibs_operations() {
  perf_event_attr attributes{};
  if (!(std::ifstream("/sys/bus/event_source/devices/ibs_op/type") >> attributes.type)) {
    return std::nullopt;
  }
  attributes.size = sizeof attributes;
  attributes.sample_period = kOperationPeriod;
  return attributes;
}

int open_sampling(perf_event_attr attributes, pid_t thread) {
  attributes.sample_type = kSampleType;
  return open_event(attributes, thread, -1);
}

struct Chosen {
  std::string name;
  SampledAccess access = SampledAccess::kUnknown;
  perf_event_attr attributes{};
};

// Tries on this process. What was tried in vain goes to `reasons`; `error` is 0 or the last errno.
std::vector<Chosen> choose(std::string& reasons, int& error) {
  std::vector<Chosen> chosen;
  const auto try_one = [&](const char* name, SampledAccess access,
                           const std::optional<perf_event_attr>& attributes) {
    if (!attributes) {
      return false;
    }
    const Descriptor opened(open_sampling(*attributes, 0));
    if (opened.is_open()) {
      chosen.push_back({name, access, *attributes});
      return true;
    }
    error = errno;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : ", ", name, std::strerror(error));
    return false;
  };
  if (try_one("IBS operations", SampledAccess::kUnknown, ibs_operations())) {
    return chosen;
  }
  for (const NamedEvents& events : intel_events()) {
    for (const char* name : events.names) {
      if (try_one(name, events.access, encode(name))) {
        break;
      }
    }
  }
  return chosen;
}

tl::unexpected<Error> refusal(const std::string& reasons, int error) {
  if (error == EACCES || error == EPERM) {
    return fail(ErrorKind::kEnvironment,
                fmt::format("memory accesses cannot be sampled ({}); run as root or with "
                            "CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=1",
                            reasons));
  }
  return fail(ErrorKind::kEnvironment,
              fmt::format("this machine samples no memory accesses: neither Intel PEBS nor AMD IBS "
                          "({}); use bare metal, or a virtual machine with its PMU switched on, or "
                          "name what to watch",
                          reasons.empty() ? "no such event of this processor is known" : reasons));
}

}  // namespace

uint64_t decode_memory_samples(std::span<const char> records, SampledAccess usual,
                               std::vector<MemorySample>& samples) {
  uint64_t lost = 0;
  for_each_record({records.data(), records.size()}, [&](const perf_event_header& header,
                                                        std::string_view body) {
    if (header.type == PERF_RECORD_SAMPLE && body.size() >= sizeof(KernelSample)) {
      KernelSample record{};
      std::memcpy(&record, body.data(), sizeof record);
      const SampledAccess access = access_of(record.data_source, usual);
      if (access != SampledAccess::kUnknown && record.address != 0 && record.address < kUserEnd &&
          record.ip < kUserEnd) {
        samples.push_back(
            {record.ip, record.address, record.thread, access == SampledAccess::kStore});
      }
    } else if (header.type == PERF_RECORD_LOST && body.size() >= sizeof(LostRecord)) {
      LostRecord record{};
      std::memcpy(&record, body.data(), sizeof record);
      lost += record.lost;
    }
  });
  return lost;
}

struct MemorySampler::Ring {
  Descriptor event;
  MappedRing records;
  SampledAccess access = SampledAccess::kUnknown;
};

MemorySampler::MemorySampler() = default;
MemorySampler::~MemorySampler() = default;

Result<std::unique_ptr<MemorySampler>> MemorySampler::open(const std::vector<pid_t>& threads) {
  std::string reasons;
  int error = 0;
  const std::vector<Chosen> events = choose(reasons, error);
  if (events.empty()) {
    return refusal(reasons, error);
  }
  std::unique_ptr<MemorySampler> sampler(new MemorySampler);
  for (const Chosen& event : events) {
    sampler->events_ += (sampler->events_.empty() ? "" : ", ") + event.name;
    for (const pid_t thread : threads) {
      Descriptor opened(open_sampling(event.attributes, thread));
      if (!opened.is_open()) {
        if (errno == ESRCH) {
          continue;  // the thread has ended
        }
        return refusal(fmt::format("{}: {}", event.name, std::strerror(errno)), errno);
      }
      auto ring = MappedRing::map(opened, kRingBytes);
      if (!ring) {
        return tl::unexpected<Error>(ring.error());
      }
      sampler->rings_.push_back({std::move(opened), std::move(*ring), event.access});
    }
  }
  return sampler;
}

void MemorySampler::read(std::vector<MemorySample>& samples) {
  for (Ring& ring : rings_) {
    std::string records;
    ring.records.read(records);
    lost_ += decode_memory_samples(records, ring.access, samples);
  }
}

}  // namespace tsomon::attach
