// Memory for large tables that are read in no foreseeable order: in huge pages where the system
// has them, for otherwise finding the page takes as long as reading it.
//
// Complexity  As std::allocator; what is larger than a huge page is rounded up to whole ones.
// Thread-safety: as std::allocator.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace tsomon {

inline constexpr size_t kHugePage = size_t{2} << 20;

template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename Other>
  explicit HugePageAllocator(const HugePageAllocator<Other>&) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    const size_t unit = bytes < kHugePage ? alignof(T) : kHugePage;
    void* const memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    if (unit == kHugePage) {
      madvise(memory, bytes, MADV_HUGEPAGE);  // no harm if there are none
    }
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t /*count*/) { std::free(memory); }
  template <typename Other>
  bool operator==(const HugePageAllocator<Other>&) const {
    return true;
  }
};

}  // namespace tsomon
