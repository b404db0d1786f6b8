// Mappings of the program as blocks of memory (blocks.h).
//
// Interposed  mmap, mmap64, munmap, mremap; weak, as those of the allocator. What the C library maps
//             for itself (stacks, arenas, libraries) does not come here.
// mremap      What it cuts off ends before the call. Where it may move the mapping, that ends before
//             and another one begins after it; where it may not, what it adds begins after it.
// Shared      With other processes: is noted, for nothing is clean that they may write.
// Misses      As blocks: attached shared memory (shmat), the data segment (brk), system calls by number.
#include <atomic>
#include <cerrno>
#include <cstdarg>

#include <sys/mman.h>
#include <sys/shm.h>

#include "monitor/probe/blocks.h"
#include "monitor/probe/not_instrumented.h"
#include "monitor/probe/real.h"
#include "monitor/probe/runtime.h"

TSOMON_REAL(mmap)
TSOMON_REAL(munmap)
TSOMON_REAL(mremap)
TSOMON_REAL(shmat)

using namespace tsomon::probe;

namespace {

constexpr size_t kPage = 4096;
std::atomic<bool> any_anonymous{false};  // that a child would share

bool wanted() { return local.thread != nullptr && !options.only_sets; }
size_t whole_pages(size_t size) { return (size + kPage - 1) & ~(kPage - 1); }
void begins(void* pointer, size_t size, uint64_t pc) {
  if (wanted() && size != 0) {
    const int error = errno;
    block_begins(reinterpret_cast<uint64_t>(pointer), size, pc);
    errno = error;
  }
}
void ends(void* pointer, size_t size, uint64_t pc) {
  if (wanted() && size != 0) {
    block_ends(reinterpret_cast<uint64_t>(pointer), size, pc);
  }
}

void* map(void* where, size_t size, int protection, int flags, int file, off_t from, uint64_t pc) {
  void* const result = real_mmap(where, size, protection, flags, file, from);
  if (result != MAP_FAILED) {
    begins(result, whole_pages(size), pc);
    const int type = flags & MAP_TYPE;
    if ((type == MAP_SHARED || type == MAP_SHARED_VALIDATE) && !is_in_system_library(pc)) {
      if ((flags & MAP_ANONYMOUS) == 0) {
        note_shared_memory("mmap with MAP_SHARED");
      } else {
        any_anonymous.store(true, std::memory_order_relaxed);
      }
    }
  }
  return result;
}

}  // namespace

void tsomon::probe::shares_with_child() {
  if (any_anonymous.load(std::memory_order_relaxed)) {
    note_shared_memory("anonymous memory with MAP_SHARED, and a child of fork");
  }
}

TSOMON_HOOK void* shmat(int id, const void* where, int flags) noexcept {
  void* const result = real_shmat(id, where, flags);
  if (result != MAP_FAILED && !is_in_system_library(TSOMON_PC())) {
    note_shared_memory("shmat");
  }
  return result;
}
TSOMON_HOOK void* mmap(void* where, size_t size, int protection, int flags, int file,
                       off_t from) noexcept {
  return map(where, size, protection, flags, file, from, TSOMON_PC());
}
TSOMON_HOOK void* mmap64(void* where, size_t size, int protection, int flags, int file,
                         off64_t from) noexcept {
  return map(where, size, protection, flags, file, from, TSOMON_PC());
}
TSOMON_HOOK int munmap(void* where, size_t size) noexcept {
  ends(where, whole_pages(size), TSOMON_PC());
  return real_munmap(where, size);
}
TSOMON_HOOK void* mremap(void* old, size_t old_size, size_t size, int flags, ...) noexcept {
  void* target = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    target = va_arg(arguments, void*);
    va_end(arguments);
  }
  const size_t before = whole_pages(old_size);
  const size_t after = whole_pages(size);
  char* const begin = static_cast<char*>(old);
  const bool may_move = (flags & MREMAP_MAYMOVE) != 0 && (after > before || target != nullptr);
  if (may_move) {
    ends(old, before, TSOMON_PC());
  } else if (after < before) {
    ends(begin + after, before - after, TSOMON_PC());
  }
  void* const result = real_mremap(old, old_size, size, flags, target);
  if (result == MAP_FAILED) {
    if (may_move) {
      begins(old, before, TSOMON_PC());
    } else if (after < before) {
      begins(begin + after, before - after, TSOMON_PC());
    }
  } else if (may_move) {
    begins(result, after, TSOMON_PC());
  } else if (after > before) {
    begins(begin + before, after - before, TSOMON_PC());
  }
  return result;
}
