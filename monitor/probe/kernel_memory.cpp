// Memory for the life of the process, taken from the kernel.
#include <atomic>
#include <cstdint>

#include <sys/mman.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/probe/chunk_writer.h"

namespace tsomon::probe {

void* take_memory(size_t size) {
  static std::atomic<uint64_t> next{0};
  static std::atomic<uint64_t> last{0};
  constexpr size_t kBlock = size_t{1} << 20;
  size = (size + 63) & ~size_t{63};
  if (size < kBlock / 4) {
    // A race for a new block wastes what is left of one of them.
    const uint64_t limit = last.load(std::memory_order_acquire);
    const uint64_t at = next.fetch_add(size, std::memory_order_acq_rel);
    if (at != 0 && at + size <= limit && at + kBlock >= limit) {
      return reinterpret_cast<void*>(at);
    }
  }
  const size_t wanted = size < kBlock / 4 ? kBlock : size;
  void* const memory =
      kernel::mmap(wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  if (wanted == kBlock && size < kBlock / 4) {
    const auto base = reinterpret_cast<uint64_t>(memory);
    last.store(0, std::memory_order_release);
    next.store(base + size, std::memory_order_release);
    last.store(base + kBlock, std::memory_order_release);
  }
  return memory;
}

}  // namespace tsomon::probe
