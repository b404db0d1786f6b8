// Memory of explored programs: where it is depends on the thread alone, and what was freed is not
// used again but where that is asked for. So an access to freed memory is known as one, and what
// nobody has written is known by its content.
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

// Of blocks that may be given out again, by how many 16 bytes they have; larger ones are not.
constexpr uint32_t kClasses = 64;
struct Heap {
  uint64_t next;
  uint64_t end;                  // of what is mapped
  uint64_t freed[kClasses + 1];  // the last one; before each is the one before (link_of)
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

// In front of the block, below its size.
uint64_t& link_of(uint64_t address) { return *reinterpret_cast<uint64_t*>(address - 16); }
uint64_t class_of(size_t size) { return ((size == 0 ? 1 : size) + 15) / 16; }

void set_state(uint64_t address, size_t size, uint8_t state) {
  for (uint64_t at = address; at < address + (size == 0 ? 1 : size); at += 16) {
    *state_of(at) = state;
  }
}

// 0: none is left. What it holds is what is left of the time before.
uint64_t take_freed(Heap& heap, size_t size, bool zeroed) {
  const uint64_t wanted = class_of(size);
  if (!channel->reuse || wanted > kClasses || heap.freed[wanted] == 0) {
    return 0;
  }
  const uint64_t address = heap.freed[wanted];
  heap.freed[wanted] = link_of(address);
  set_state(address, 16 * wanted, 0);
  *reinterpret_cast<uint64_t*>(address - 8) = size;
  if (zeroed && !fill(reinterpret_cast<void*>(address), 0, size, 0)) {
    for (uint64_t at = address; at < address + size; ++at) {
      *reinterpret_cast<volatile char*>(at) = 0;
    }
  }
  return address;
}

void keep_freed(uint64_t address, size_t size) {
  const uint64_t has = class_of(size);
  if (channel->reuse && has <= kClasses) {
    Heap& heap = heaps[this_thread()];
    link_of(address) = heap.freed[has];
    heap.freed[has] = address;
  }
}

}  // namespace

void* allocate(size_t size, size_t alignment, bool zeroed) {
  had_effect();
  const uint32_t owner = thread_being_started() != 0 ? thread_being_started() : this_thread();
  Heap& heap = heaps[owner];
  if (const uint64_t again = alignment <= 16 ? take_freed(heap, size, zeroed) : 0; again != 0) {
    return reinterpret_cast<void*>(again);
  }
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
  set_state(address, size, kFreed);
  if (concurrent && others_may_run() && note_freed(address, size)) {
    mark_freed(address, size);
  }
  keep_freed(address, size);
}

bool owns(const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return address >= kHeapBase && address < kHeapBase + kAllHeaps;
}

size_t size_of(const void* pointer) {
  return *reinterpret_cast<const uint64_t*>(reinterpret_cast<uint64_t>(pointer) - 8);
}

bool was_freed(uint64_t address) { return is_in_heap(address) && *state_of(address) == kFreed; }

void check_alive(uint64_t address, uint64_t pc) {
  if (was_freed(address)) {
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
