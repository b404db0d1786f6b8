// Memory of explored programs: where it is depends on the thread alone, and what was freed is not
// used again. So an access to freed memory is known as one, and what nobody has written is known by
// its content.
#include <cerrno>

#include <sys/mman.h>

#include "monitor/explore/runtime/in_place.h"
#include "monitor/explore/runtime/threads.h"

namespace tsomon::explore {
namespace {

constexpr uint64_t kHeapBase = 0x300000000000;
constexpr uint64_t kHeapStride = uint64_t{1} << 32;
constexpr uint64_t kAllHeaps = (kMaxThreads + 1) * kHeapStride;
constexpr size_t kHeader = 16;
constexpr uint64_t kChunk = uint64_t{1} << 20;
// A byte for every 16 of the heaps.
constexpr uint64_t kStateBase = 0x500000000000;
constexpr uint8_t kFreed = 1;
// What memory holds before anything is written to it. A program that has it for a value is told of
// what is not there.
constexpr uint64_t kUnwritten = 0xB5A6978879D2C3F1;

struct Heap {
  uint64_t next;
  uint64_t end;  // of what is mapped
};
Heap heaps[kMaxThreads + 1];

uint8_t* state_of(uint64_t address) {
  return reinterpret_cast<uint8_t*>(kStateBase + (address - kHeapBase) / 16);
}

bool is_in_heap(uint64_t address) {
  return address >= kHeapBase && address < kHeapBase + kAllHeaps &&
         address < heaps[(address - kHeapBase) / kHeapStride].end;
}

bool map_at(uint64_t address, uint64_t size) {
  if (in_place::is_on()) {
    return in_place::map(address, size);
  }
  return mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
              0) != MAP_FAILED;
}

bool grow(Heap* heap, uint64_t end) {
  while (heap->end < end) {
    // In place every chunk is mapped once, whatever an execution takes of them.
    const uint64_t more =
        in_place::is_on() ? kChunk : (end - heap->end + kChunk - 1) & ~(kChunk - 1);
    if (!map_at(heap->end, more) ||
        !map_at(reinterpret_cast<uint64_t>(state_of(heap->end)), more / 16)) {
      return false;
    }
    heap->end += more;
  }
  return true;
}

[[noreturn]] void end_by_fault(const char* why, uint64_t pc) {
  channel->fault_pc = pc;
  end_run(End::kCrashed, why);
}

}  // namespace

void* allocate(size_t size, size_t alignment, bool zeroed) {
  had_effect();
  const uint32_t owner = thread_being_started() != 0 ? thread_being_started() : this_thread();
  Heap& heap = heaps[owner];
  const uint64_t base = kHeapBase + owner * kHeapStride;
  heap.next = heap.next == 0 ? base : heap.next;
  heap.end = heap.end == 0 ? base : heap.end;
  alignment = alignment < 16 ? 16 : alignment;
  const uint64_t at = (heap.next + kHeader + alignment - 1) & ~(alignment - 1);
  const uint64_t end = at + (size == 0 ? 1 : size);
  if (size > kHeapStride / 2 || end > base + kHeapStride ||
      !grow(&heap, (end + 15) & ~uint64_t{15})) {
    errno = ENOMEM;
    return nullptr;
  }
  *reinterpret_cast<uint64_t*>(at - 8) = size;
  // Large blocks would cost more than what is found in them is worth.
  if (!zeroed && size <= kChunk) {
    for (uint64_t word = at; word < at + size; word += 8) {
      *reinterpret_cast<volatile uint64_t*>(word) = kUnwritten;
    }
  }
  heap.next = (end + 15) & ~uint64_t{15};
  return reinterpret_cast<void*>(at);
}

void release(void* pointer, uint64_t pc) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (!is_in_heap(address)) {
    return;  // null, or from before the program was under control
  }
  had_effect();
  make_stores();
  if (*state_of(address) == kFreed) {
    end_by_fault("memory is freed twice", pc);
  }
  const size_t size = size_of(pointer);
  for (uint64_t at = address; at < address + (size == 0 ? 1 : size); at += 16) {
    *state_of(at) = kFreed;
  }
  if (concurrent && others_may_run() && note_freed(address, size)) {
    mark_freed(address, size);
  }
}

bool owns(const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return address >= kHeapBase && address < kHeapBase + kAllHeaps;
}

size_t size_of(const void* pointer) {
  return *reinterpret_cast<const uint64_t*>(reinterpret_cast<uint64_t>(pointer) - 8);
}

void check_alive(uint64_t address, uint64_t pc) {
  if (is_in_heap(address) && *state_of(address) == kFreed) {
    end_by_fault("memory is used after it was freed", pc);
  }
}

void check_written(uint64_t address, uint32_t size, Value value, uint64_t pc) {
  if (size != 4 && size != 8) {
    return;
  }
  const uint64_t unwritten = kUnwritten >> (8 * (address & 7));
  if (low_bytes(value, size) == low_bytes(unwritten, size) && (address & 7) + size <= 8 &&
      is_in_heap(address)) {
    end_by_fault("memory is read that nothing was written to", pc);
  }
}

}  // namespace tsomon::explore
