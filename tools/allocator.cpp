// The allocation functions of the program `tsomon`: mimalloc, a heap for each analysis, and what
// the analysis may use of it (tso/support/work.h).
//
// Which      operator new and delete are replaced here; malloc() and its relatives are mimalloc's
//            because the program is linked with it. Neither is ever in the probe or in a program
//            that is monitored, and not in builds with sanitizers, which have functions of their
//            own: there only what is announced with expect_bytes() is bounded.
// Counting   What is allocated inside a scope with a bound, less what is freed there. A block from
//            before that is freed inside makes the bound looser by its size, never tighter.
// Pages      Memory asks for pages of 2 MiB (madvise(2), MADV_HUGEPAGE): tables of millions of events
//            are written once and read many times, and every first write to a page of 4 KiB is a fault, which
//            in a virtual machine costs as much as what is then written. mimalloc would also take pages that somebody has set aside
//            for a database (hugetlbfs): where there are such, only large blocks ask.
// Heaps      operator delete takes blocks of any heap, from any thread. A heap is destroyed when
//            nothing is left in it, and handed to the thread otherwise (HeapHooks).
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <fcntl.h>
#include <mimalloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tso/support/work.h"

namespace tsomon {
namespace {

using work_internal::this_thread;
using work_internal::ThreadWork;

constexpr int64_t kPortion = 1 << 18;       // bytes that a thread uses before its meter hears of it
constexpr size_t kLarge = size_t{1} << 20;  // asked for before they are allocated

constexpr size_t kHugePage = size_t{2} << 20;

#if MI_MALLOC_VERSION >= 210
constexpr mi_option_t kDelays[] = {mi_option_purge_delay};
#else
constexpr mi_option_t kDelays[] = {mi_option_decommit_delay, mi_option_segment_decommit_delay,
                                   mi_option_decommit_extend_delay};
#endif

// Freed memory, which mimalloc keeps for a moment, is not counted: near the bound it goes back at once.
bool is_short(const WorkMeter& meter) {
  const auto most = static_cast<uint64_t>(std::max<int64_t>(meter.most_bytes(), 0));
  return !meter.has_room_for(4 * most);
}

// False: too much.
bool count(ThreadWork& mine, int64_t bytes) noexcept {
  mine.bytes += bytes;
  if (mine.bytes < kPortion && mine.bytes > -kPortion) {
    return true;
  }
  const int64_t told = mine.bytes;
  mine.bytes = 0;
  if (told > 0 && is_short(*mine.meter)) {
    for (const mi_option_t delay : kDelays) {
      mi_option_set(delay, 0);
    }
  }
  return mine.meter->add_bytes(told);
}

// Where the system has no such pages nothing changes.
void ask_for_huge_pages(void* block, size_t size) noexcept {
  const auto begin = (reinterpret_cast<uintptr_t>(block) + kHugePage - 1) & ~(kHugePage - 1);
  const auto end = (reinterpret_cast<uintptr_t>(block) + size) & ~(kHugePage - 1);
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
}

void* allocate(size_t size, size_t alignment) noexcept {
  ThreadWork& mine = this_thread;
  if (mine.bounded && size >= kLarge) {
    const auto bytes = static_cast<int64_t>(size < INT64_MAX ? size : INT64_MAX);
    const bool fits = mine.meter->add_bytes(bytes);
    mine.meter->add_bytes(-bytes);
    if (!fits) {
      return nullptr;
    }
  }
  auto* const heap = static_cast<mi_heap_t*>(mine.heap);
  void* const block = heap != nullptr  ? alignment == 0
                                             ? mi_heap_malloc(heap, size)
                                             : mi_heap_malloc_aligned(heap, size, alignment)
                       : alignment == 0 ? mi_malloc(size)
                                       : mi_malloc_aligned(size, alignment);
  if (size >= 2 * kHugePage && block != nullptr) {
    const int error = errno;
    ask_for_huge_pages(block, size);
    errno = error;
  }
  if (mine.bounded && block != nullptr &&
      !count(mine, static_cast<int64_t>(mi_usable_size(block)))) {
    count(mine, -static_cast<int64_t>(mi_usable_size(block)));
    mi_free(block);
    return nullptr;
  }
  return block;
}

void* allocate_or_throw(size_t size, size_t alignment) {
  void* const block = allocate(size, alignment);
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  return block;
}

void release(void* block) noexcept {
  if (this_thread.bounded && block != nullptr) {
    count(this_thread, -static_cast<int64_t>(mi_usable_size(block)));
  }
  mi_free(block);
}

bool note_use(const mi_heap_t* /*heap*/, const mi_heap_area_t* area, void* /*block*/,
              size_t /*block_size*/, void* any) {
  *static_cast<bool*>(any) = area->used != 0;
  return area->used == 0;
}

void* create_heap() noexcept { return mi_heap_new(); }

void end_heap(void* heap) noexcept {
  auto* const mine = static_cast<mi_heap_t*>(heap);
  // What other threads have freed. By force all memory would go back to the system, after each of
  // thousands of small analyses.
  mi_heap_collect(mine, false);
  bool any = false;
  mi_heap_visit_blocks(mine, false, note_use, &any);
  if (any) {
    mi_heap_delete(mine);
  } else {
    mi_heap_destroy(mine);
  }
}

bool is_zero(const char* file) {
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  char text[2] = {};
  const bool zero = fd >= 0 && read(fd, text, sizeof text) > 0 && text[0] == '0';
  if (fd >= 0) {
    close(fd);
  }
  return zero;
}

const bool hooked = [] {
  set_heap_hooks({create_heap, end_heap});
  if (is_zero("/proc/sys/vm/nr_hugepages") && is_zero("/proc/sys/vm/nr_overcommit_hugepages")) {
    mi_option_set(mi_option_large_os_pages, 1);
  }
  return true;
}();

size_t number(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace
}  // namespace tsomon

void* operator new(size_t size) { return tsomon::allocate_or_throw(size, 0); }
void* operator new[](size_t size) { return tsomon::allocate_or_throw(size, 0); }
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return tsomon::allocate(size, 0);
}
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return tsomon::allocate(size, 0);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return tsomon::allocate_or_throw(size, tsomon::number(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return tsomon::allocate_or_throw(size, tsomon::number(alignment));
}
void* operator new(size_t size, std::align_val_t alignment,
                   const std::nothrow_t& /*tag*/) noexcept {
  return tsomon::allocate(size, tsomon::number(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment,
                     const std::nothrow_t& /*tag*/) noexcept {
  return tsomon::allocate(size, tsomon::number(alignment));
}
void operator delete(void* block) noexcept { tsomon::release(block); }
void operator delete[](void* block) noexcept { tsomon::release(block); }
void operator delete(void* block, size_t /*size*/) noexcept { tsomon::release(block); }
void operator delete[](void* block, size_t /*size*/) noexcept { tsomon::release(block); }
void operator delete(void* block, const std::nothrow_t& /*tag*/) noexcept {
  tsomon::release(block);
}
void operator delete[](void* block, const std::nothrow_t& /*tag*/) noexcept {
  tsomon::release(block);
}
void operator delete(void* block, std::align_val_t /*alignment*/) noexcept {
  tsomon::release(block);
}
void operator delete[](void* block, std::align_val_t /*alignment*/) noexcept {
  tsomon::release(block);
}
void operator delete(void* block, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  tsomon::release(block);
}
void operator delete[](void* block, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  tsomon::release(block);
}
void operator delete(void* block, std::align_val_t /*alignment*/,
                     const std::nothrow_t& /*tag*/) noexcept {
  tsomon::release(block);
}
void operator delete[](void* block, std::align_val_t /*alignment*/,
                       const std::nothrow_t& /*tag*/) noexcept {
  tsomon::release(block);
}
