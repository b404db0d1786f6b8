// Objects: what the program allocates together, by option objects=SIZE.
//
// Interposed  malloc, calloc, realloc, reallocarray, free, aligned_alloc, posix_memalign, memalign,
//             valloc; with them operator new and delete, which call these. The definitions here are
//             weak: a program that has its own allocator keeps it (and has no objects). Without the
//             option each is a call of the next definition.
// Records     kAllocate with a stamp that is taken after the memory was obtained, kFree with one
//             that is taken before it is given back: at one address the stamps of an object's end
//             and of the next one's beginning are in this order, whichever threads these are.
//             realloc ends an object and begins another one, also in place.
// Start       Nothing is recorded before the first unit or thread. The objects that are alive by
//             then are kept in a table and recorded at that moment.
// Reentrancy  Recording allocates nothing. dlsym, which finds the next definitions, may allocate:
//             it is served from a small arena, which is never given back.
// Signals     As for all hooks. The table is used with signals blocked.
// Misses      Memory of other sources: the stack, globals, mmap, pools (each of whose blocks is one
//             object). What a thread that is not recorded frees lasts until its place is allocated
//             again. In a child of fork: what was allocated before.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <malloc.h>

#include "monitor/explore/runtime/runtime.h"
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
};
Allocator next;
bool found = false;
bool searching = false;

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

bool wanted() { return TSOMON_UNLIKELY(options.objects != 0) && recording && !local.off; }

void* begins(void* pointer, size_t size, uint64_t pc) {
  if (!wanted() || pointer == nullptr || size == 0 || size > options.objects) {
    return pointer;
  }
  const int saved_errno = errno;
  if (local.thread != nullptr) {
    put_object(reinterpret_cast<uint64_t>(pointer), size, pc);
  } else if (!activated()) {
    remember(reinterpret_cast<uint64_t>(pointer), size);
  }
  errno = saved_errno;
  return pointer;
}

void ends(void* pointer, uint64_t pc) {
  if (!wanted() || pointer == nullptr) {
    return;
  }
  const int saved_errno = errno;
  if (local.thread != nullptr) {
    put_point_now(RecordType::kFree, reinterpret_cast<uint64_t>(pointer), pc);
  } else if (!activated()) {
    forget(reinterpret_cast<uint64_t>(pointer));
  }
  errno = saved_errno;
}

void* resize(void* pointer, size_t size, uint64_t pc) {
  if (in_arena(pointer)) {
    void* const moved = next.malloc(size);
    const size_t rest = static_cast<size_t>(arena + sizeof arena - static_cast<char*>(pointer));
    return moved != nullptr ? std::memcpy(moved, pointer, size < rest ? size : rest) : nullptr;
  }
  if (!wanted()) {
    return next.realloc(pointer, size);
  }
  const size_t before = pointer != nullptr ? malloc_usable_size(pointer) : 0;
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
