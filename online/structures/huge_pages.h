// Memory for large tables that are read in no foreseeable order: in huge pages where the system
// has them, for otherwise finding the page takes as long as reading it.
//
// Complexity  As std::allocator; what is larger than a huge page is rounded up to whole ones.
// Thread-safety: as std::allocator.
#pragma once

#include <cstddef>
#include <new>

namespace tsomon {

inline constexpr size_t kHugePage = size_t{2} << 20;

// From the system, not from the allocator of the program: not every one of them can align to so
// much. Throws std::bad_alloc.
void* map_huge_pages(size_t bytes);
void unmap_huge_pages(void* memory, size_t bytes);

template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename Other>
  explicit HugePageAllocator(const HugePageAllocator<Other>&) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    return static_cast<T*>(bytes < kHugePage ? ::operator new(bytes, std::align_val_t(alignof(T)))
                                             : map_huge_pages(bytes));
  }
  void deallocate(T* memory, size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kHugePage) {
      ::operator delete(memory, std::align_val_t(alignof(T)));
    } else {
      unmap_huge_pages(memory, bytes);
    }
  }
  template <typename Other>
  bool operator==(const HugePageAllocator<Other>&) const {
    return true;
  }
};

}  // namespace tsomon
