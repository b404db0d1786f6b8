// Blocks of memory that the program allocates (blocks.h), and by option objects=SIZE objects: what
// it allocates together is an atomic set.
//
// Interposed  malloc, calloc, realloc, reallocarray, free, aligned_alloc, posix_memalign, memalign,
//             valloc, pvalloc; with them operator new and delete, which call these (operators_new.cpp).
//             The definitions here are weak: a program that has its own allocator keeps it (and has
//             no blocks and no objects).
// Records     With the option, of objects of that size kAllocate with a stamp that is taken after
//             the memory was obtained, and of all frees kFree with one that is taken before the
//             memory is given back: at one address the stamps of an object's end and of the next
//             one's beginning are in this order, whichever threads these are. Otherwise blocks.
//             realloc ends an object or block and begins another one, also in place.
// Start       Nothing is recorded before the first unit or thread. The objects that are alive by
//             then are kept in a table and recorded at that moment. Blocks need none: the end of
//             one says how long it was.
// Reentrancy  Recording allocates nothing. dlsym, which finds the next definitions, may allocate:
//             it is served from a small arena, which is never given back.
// Signals     As for all hooks. The table is used with signals blocked.
// Misses      Memory of other sources: pools, each of whose blocks is one. What a thread that is not recorded frees lasts until its place is allocated
//             again. In a child of fork: what was allocated before.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <dlfcn.h>
#include <malloc.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/blocks.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/real.h"

namespace tsomon::probe {
namespace {

// The next definitions, found together by the first call.
struct Allocator {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
};
Allocator next;
bool found = false;
bool searching = false;
bool sizes_are_known = false;  // malloc_usable_size is that of the same allocator

alignas(64) char arena[16384];
size_t arena_used = 0;

void* take_from_arena(size_t size) {
  const size_t at = arena_used;
  size = (size + 15) & ~size_t{15};
  if (size > sizeof arena - at) {
    return nullptr;
  }
  arena_used = at + size;
  return arena + at;  // zeroed
}
bool in_arena(const void* pointer) {
  return static_cast<const char*>(pointer) >= arena &&
         static_cast<const char*>(pointer) < arena + sizeof arena;
}

template <typename Function>
void look_up(Function* function, const char* name) {
  *function = reinterpret_cast<Function>(next_definition(name, nullptr));
}

bool same_module(const void* one, const void* other) {
  Dl_info first;
  Dl_info second;
  return dladdr(one, &first) != 0 && dladdr(other, &second) != 0 &&
         first.dli_fbase == second.dli_fbase;
}

// False: this call comes from the search. The first call comes before there are threads.
bool ready() {
  if (TSOMON_LIKELY(found)) {
    return true;
  }
  if (searching) {
    return false;
  }
  searching = true;
  look_up(&next.malloc, "malloc");
  look_up(&next.calloc, "calloc");
  look_up(&next.realloc, "realloc");
  look_up(&next.free, "free");
  look_up(&next.aligned_alloc, "aligned_alloc");
  look_up(&next.posix_memalign, "posix_memalign");
  look_up(&next.memalign, "memalign");
  look_up(&next.valloc, "valloc");
  look_up(&next.pvalloc, "pvalloc");
  sizes_are_known = same_module(reinterpret_cast<const void*>(next.malloc),
                                reinterpret_cast<const void*>(&malloc_usable_size));
  found = true;
  return true;
}

// What is alive before recording starts: open addressing by address, at most half full.
struct Known {
  uint64_t address;  // 0: free
  uint64_t size;
};
Known* table = nullptr;
size_t table_size = 0;  // a power of two
size_t table_used = 0;
std::atomic<uint32_t> table_lock{0};

size_t home(uint64_t address) {
  return static_cast<size_t>((address * 0x9E3779B97F4A7C15ULL) >> 32) & (table_size - 1);
}
size_t place_of(uint64_t address) {
  size_t at = home(address);
  while (table[at].address != 0 && table[at].address != address) {
    at = (at + 1) & (table_size - 1);
  }
  return at;
}

bool make_room() {
  if (2 * (table_used + 1) <= table_size) {
    return true;
  }
  const size_t size = table_size == 0 ? 1024 : 2 * table_size;
  auto* const larger = static_cast<Known*>(take_memory(size * sizeof(Known)));
  if (larger == nullptr) {
    return false;
  }
  const Known* const old = table;
  const size_t old_size = table_size;
  table = larger;
  table_size = size;
  for (size_t i = 0; i < old_size; ++i) {
    if (old[i].address != 0) {
      table[place_of(old[i].address)] = old[i];
    }
  }
  return true;
}

void remember(uint64_t address, uint64_t size) {
  const Guard guard(&table_lock);
  if (!make_room()) {
    return;
  }
  Known& entry = table[place_of(address)];
  table_used += entry.address == 0 ? 1 : 0;
  entry = {address, size};
}

void forget(uint64_t address) {
  const Guard guard(&table_lock);
  if (table_used == 0) {
    return;
  }
  size_t hole = place_of(address);
  if (table[hole].address == 0) {
    return;
  }
  --table_used;
  // Those behind it that would no longer be found move up.
  for (size_t at = (hole + 1) & (table_size - 1); table[at].address != 0;
       at = (at + 1) & (table_size - 1)) {
    const size_t from_home = (at - home(table[at].address)) & (table_size - 1);
    if (from_home >= ((at - hole) & (table_size - 1))) {
      table[hole] = table[at];
      hole = at;
    }
  }
  table[hole] = {};
}

// An object, of which option objects=SIZE asks for the beginning and the end.
bool is_object(size_t size) { return size != 0 && size <= options.objects; }

// Where the program allocates or frees: not where an operator of the C++ library does.
uint64_t place(uint64_t pc) {
  return TSOMON_LIKELY(local.allocates == 0) ? pc : std::exchange(local.allocates, 0);
}

// Bytes of the block, which may be more than were asked for: none of them is given to others.
size_t bytes_of(void* pointer, size_t size) {
  return sizes_are_known ? malloc_usable_size(pointer) : size;
}

void* begins(void* pointer, size_t size, uint64_t pc) {
  pc = place(pc);
  if (!recording || local.off || pointer == nullptr) {
    return pointer;
  }
  const int saved_errno = errno;
  if (TSOMON_UNLIKELY(is_object(size))) {
    if (local.thread != nullptr) {
      put_object(reinterpret_cast<uint64_t>(pointer), size, pc);
    } else if (!activated()) {
      remember(reinterpret_cast<uint64_t>(pointer), size);
    }
  } else if (local.thread != nullptr && !options.only_sets) {
    if (const size_t bytes = bytes_of(pointer, size); bytes != 0) {
      block_begins(reinterpret_cast<uint64_t>(pointer), bytes, pc);
    }
  }
  errno = saved_errno;
  return pointer;
}

void ends(void* pointer, uint64_t pc) {
  pc = place(pc);
  if (!recording || local.off || pointer == nullptr) {
    return;
  }
  const int saved_errno = errno;
  if (TSOMON_UNLIKELY(options.objects != 0)) {
    if (local.thread != nullptr) {
      put_point_now(RecordType::kFree, reinterpret_cast<uint64_t>(pointer), pc);
    } else if (!activated()) {
      forget(reinterpret_cast<uint64_t>(pointer));
    }
  } else if (local.thread != nullptr && !options.only_sets) {
    block_ends(reinterpret_cast<uint64_t>(pointer), bytes_of(pointer, 0), pc);
  }
  errno = saved_errno;
}

void* resize(void* pointer, size_t size, uint64_t pc) {
  if (in_arena(pointer)) {
    void* const moved = next.malloc(size);
    const size_t rest = static_cast<size_t>(arena + sizeof arena - static_cast<char*>(pointer));
    return moved != nullptr ? std::memcpy(moved, pointer, size < rest ? size : rest) : nullptr;
  }
  if (!recording || local.off) {
    return next.realloc(pointer, size);
  }
  const size_t before = pointer != nullptr && sizes_are_known ? malloc_usable_size(pointer) : 0;
  ends(pointer, pc);
  void* const result = next.realloc(pointer, size);
  if (result == nullptr && size != 0) {
    begins(pointer, before, pc);  // it is still there
  }
  return begins(result, size, pc);
}

}  // namespace

void put_known_objects() {
  if (options.objects == 0) {
    return;
  }
  const Guard guard(&table_lock);
  for (size_t i = 0; i < table_size; ++i) {
    if (table[i].address != 0) {
      put_object(table[i].address, table[i].size, 0);
      table[i] = {};
    }
  }
  table_used = 0;
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

// Under control (monitor/explore/runtime): addresses depend on the thread alone, and nothing that
// was freed is used again.
#define TSOMON_IF_EXPLORED(...)                   \
  if (TSOMON_UNLIKELY(tsomon::explore::active)) { \
    return tsomon::explore::__VA_ARGS__;          \
  }

static void* explored_resize(void* pointer, size_t size) {
  void* const made = tsomon::explore::allocate(size, 16);
  if (made != nullptr && pointer != nullptr) {
    const size_t before = tsomon::explore::owns(pointer) ? tsomon::explore::size_of(pointer)
                          : in_arena(pointer)            ? 0
                                                         : malloc_usable_size(pointer);
    std::memcpy(made, pointer, before < size ? before : size);
    tsomon::explore::release(pointer, 0);
  }
  return made;
}

TSOMON_HOOK void* malloc(size_t size) noexcept {
  TSOMON_IF_EXPLORED(allocate(size, 16))
  return ready() ? begins(next.malloc(size), size, TSOMON_PC()) : take_from_arena(size);
}
TSOMON_HOOK void* calloc(size_t count, size_t size) noexcept {
  TSOMON_IF_EXPLORED(
      allocate(size != 0 && count > SIZE_MAX / size ? SIZE_MAX : count * size, 16, true))
  return ready() ? begins(next.calloc(count, size), count * size, TSOMON_PC())
                 : take_from_arena(count * size);
}
TSOMON_HOOK void* realloc(void* pointer, size_t size) noexcept {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    return explored_resize(pointer, size);
  }
  return ready() ? resize(pointer, size, TSOMON_PC()) : take_from_arena(size);
}
TSOMON_HOOK void* reallocarray(void* pointer, size_t count, size_t size) noexcept {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    return explored_resize(pointer, bytes);
  }
  return ready() ? resize(pointer, bytes, TSOMON_PC()) : take_from_arena(bytes);
}
TSOMON_HOOK void free(void* pointer) noexcept {
  TSOMON_IF_EXPLORED(release(pointer, TSOMON_PC()))
  if (in_arena(pointer) || !ready()) {
    return;
  }
  ends(pointer, TSOMON_PC());
  next.free(pointer);
}
TSOMON_HOOK void* aligned_alloc(size_t alignment, size_t size) noexcept {
  TSOMON_IF_EXPLORED(allocate(size, alignment))
  return ready() ? begins(next.aligned_alloc(alignment, size), size, TSOMON_PC()) : nullptr;
}
TSOMON_HOOK int posix_memalign(void** pointer, size_t alignment, size_t size) noexcept {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    *pointer = tsomon::explore::allocate(size, alignment);
    return *pointer == nullptr ? ENOMEM : 0;
  }
  const int result = ready() ? next.posix_memalign(pointer, alignment, size) : ENOMEM;
  if (result == 0) {
    begins(*pointer, size, TSOMON_PC());
  }
  return result;
}
TSOMON_HOOK void* memalign(size_t alignment, size_t size) noexcept {
  TSOMON_IF_EXPLORED(allocate(size, alignment))
  return ready() ? begins(next.memalign(alignment, size), size, TSOMON_PC()) : nullptr;
}
TSOMON_HOOK void* valloc(size_t size) noexcept {
  TSOMON_IF_EXPLORED(allocate(size, 4096))
  return ready() ? begins(next.valloc(size), size, TSOMON_PC()) : nullptr;
}
TSOMON_HOOK void* pvalloc(size_t size) noexcept {
  TSOMON_IF_EXPLORED(allocate((size + 4095) & ~size_t{4095}, 4096))
  return ready() ? begins(next.pvalloc(size), size, TSOMON_PC()) : nullptr;
}

TSOMON_INTERCEPTOR(malloc)
TSOMON_INTERCEPTOR(calloc)
TSOMON_INTERCEPTOR(realloc)
TSOMON_INTERCEPTOR(reallocarray)
TSOMON_INTERCEPTOR(free)
TSOMON_INTERCEPTOR(aligned_alloc)
TSOMON_INTERCEPTOR(posix_memalign)
TSOMON_INTERCEPTOR(memalign)
TSOMON_INTERCEPTOR(valloc)
TSOMON_INTERCEPTOR(pvalloc)
