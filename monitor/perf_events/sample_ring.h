// The ring into which the kernel writes the records of perf events.
//
// Errors      kEnvironment with the remedy when it cannot be mapped.
// Thread-safety: none; the kernel writes beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

struct perf_event_mmap_page;

namespace tsomon::attach {

class SampleRing {
 public:
  // `bytes`: a power of two, at least a page.
  static Result<SampleRing> map(const Descriptor& event, size_t bytes);
  SampleRing(SampleRing&& other) noexcept;
  SampleRing& operator=(SampleRing&& other) = delete;
  SampleRing(const SampleRing&) = delete;
  SampleRing& operator=(const SampleRing&) = delete;
  ~SampleRing();

  // The records that are there, whole ones, and makes room. The kernel tells that records were lost
  // with the next one that it writes, which may never come: `was_full` says that less than 1 kB was
  // free.
  std::vector<char> take(bool* was_full = nullptr);

 private:
  SampleRing(perf_event_mmap_page* page, size_t bytes) : page_(page), bytes_(bytes) {}

  perf_event_mmap_page* page_ = nullptr;
  size_t bytes_ = 0;
};

// What lies between `tail` and `head`, positions that only grow, in a ring of the size of `data`.
std::vector<char> unroll_ring(std::span<const char> data, uint64_t tail, uint64_t head);

}  // namespace tsomon::attach
