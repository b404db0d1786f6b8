// Samples of memory accesses, taken by the processor.
//
// Purpose     Which addresses are busy: the processor notes every Nth load and store with its
//             address. Nothing is written into the process and no instruction of it traps.
// Hardware    Intel PEBS: loads by their latency and stores, by the names that libpfm4 knows them
//             under. AMD IBS: every Nth operation.
// Errors      kEnvironment with what is missing and the remedy: most virtual machines have neither.
// Misses      Threads that begin after open(); accesses of the kernel. A sample is one access of
//             thousands: what is not sampled may still be shared.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tso/support/result.h"

namespace tsomon::attach {

struct MemorySample {
  uint64_t ip = 0;
  uint64_t address = 0;
  uint32_t thread = 0;
  bool store = false;
};

// What an event's samples are when the processor does not say it of each.
enum class SampledAccess : uint8_t { kUnknown, kLoad, kStore };

// Of whole perf records with PERF_SAMPLE_IP, _TID, _ADDR and _DATA_SRC. Appends the samples of
// loads and stores in user memory; returns how many records the kernel says were lost. Stops at
// bytes that are no record.
uint64_t decode_memory_samples(std::span<const char> records, SampledAccess usual,
                               std::vector<MemorySample>& samples);

class MemorySampler {
 public:
  static Result<std::unique_ptr<MemorySampler>> open(const std::vector<pid_t>& threads);
  ~MemorySampler();

  const std::string& events() const { return events_; }  // that are sampled, for the user
  void read(std::vector<MemorySample>& samples);
  uint64_t lost() const { return lost_; }

 private:
  struct Ring;
  MemorySampler();

  std::vector<Ring> rings_;
  std::string events_;
  uint64_t lost_ = 0;
};

}  // namespace tsomon::attach
