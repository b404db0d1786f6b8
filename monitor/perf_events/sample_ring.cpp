#include "monitor/perf_events/sample_ring.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "monitor/perf_events/perf_event.h"

namespace tsomon::attach {
namespace {

constexpr size_t kNearlyFull = 1024;

}  // namespace

Result<SampleRing> SampleRing::map(const Descriptor& event, size_t bytes) {
  void* const mapped =
      ::mmap(nullptr, kPage + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
  if (mapped == MAP_FAILED) {
    return fail(ErrorKind::kEnvironment,
                fmt::format("a ring for perf events cannot be mapped: {}; run as root, or: sysctl "
                            "kernel.perf_event_mlock_kb=100000",
                            std::strerror(errno)));
  }
  return SampleRing(static_cast<perf_event_mmap_page*>(mapped), bytes);
}

SampleRing::SampleRing(SampleRing&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), bytes_(other.bytes_) {}

SampleRing::~SampleRing() {
  if (page_ != nullptr) {
    ::munmap(page_, kPage + bytes_);
  }
}

std::vector<char> SampleRing::take(bool* was_full) {
  const char* const data = reinterpret_cast<const char*>(page_) + kPage;
  const uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);
  const uint64_t tail = page_->data_tail;
  std::vector<char> records = unroll_ring({data, bytes_}, tail, head);
  __atomic_store_n(&page_->data_tail, head, __ATOMIC_RELEASE);
  if (was_full != nullptr) {
    *was_full = head - tail + kNearlyFull > bytes_;
  }
  return records;
}

std::vector<char> unroll_ring(std::span<const char> data, uint64_t tail, uint64_t head) {
  std::vector<char> bytes(head - tail);
  const size_t at = tail % data.size();
  const size_t first = std::min(bytes.size(), data.size() - at);
  std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(at), first, bytes.begin());
  std::copy_n(data.begin(), bytes.size() - first,
              bytes.begin() + static_cast<std::ptrdiff_t>(first));
  return bytes;
}

}  // namespace tsomon::attach
