#include "online/structures/huge_pages.h"

#include <cstdint>

#include <sys/mman.h>

#include "tso/support/mapped_memory.h"

namespace tsomon {
namespace {

size_t whole_pages(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

}  // namespace

void* map_huge_pages(size_t bytes) {
  // One page more, of which what stands before and after the aligned ones is given back.
  const size_t size = whole_pages(bytes);
  if (!count_mapped(static_cast<int64_t>(size))) {
    throw std::bad_alloc();
  }
  void* const mapped = ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    count_mapped(-static_cast<int64_t>(size));
    throw std::bad_alloc();
  }
  auto* const begin = static_cast<char*>(mapped);
  const size_t in_front = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (in_front != 0) {
    ::munmap(begin, in_front);
  }
  ::munmap(begin + in_front + size, kHugePage - in_front);
  ::madvise(begin + in_front, size, MADV_HUGEPAGE);  // no harm if there are none
  return begin + in_front;
}

void unmap_huge_pages(void* memory, size_t bytes) {
  ::munmap(memory, whole_pages(bytes));
  count_mapped(-static_cast<int64_t>(whole_pages(bytes)));
}

}  // namespace tsomon
