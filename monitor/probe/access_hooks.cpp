// Plain accesses of instrumented code (g++ 12, clang 14).
//
// The hook runs before the access and never reads the memory: the value is not known, the interval
// is that of the stamps around it (stamp.h).
#include "monitor/probe/runtime.h"

namespace tsomon::probe {
namespace {
constexpr RecordType kRead = RecordType::kRead;
constexpr RecordType kWrite = RecordType::kWrite;
// 0 would be the key of no site.
uint64_t given(void* pc) { return reinterpret_cast<uint64_t>(pc) | (pc == nullptr ? 1 : 0); }
}  // namespace
}  // namespace tsomon::probe

using tsomon::probe::access;
using tsomon::probe::given;
using tsomon::probe::kRead;
using tsomon::probe::kWrite;
using tsomon::probe::put_copy;
using tsomon::probe::put_range;

// The return address of the compiler's own call, or, in the _pc variants, the one that is passed.
#define TSOMON_ACCESS(NAME, TYPE, SIZE)                                                       \
  TSOMON_HOOK void __tsan_##NAME(void* address) { access(TYPE, address, SIZE, TSOMON_PC()); } \
  TSOMON_HOOK void __tsan_##NAME##_pc(void* address, void* pc) {                              \
    access(TYPE, address, SIZE, given(pc));                                                   \
  }
#define TSOMON_COMPOUND(NAME, SIZE) \
  TSOMON_HOOK void __tsan_##NAME(void* address) { put_copy(address, address, SIZE, TSOMON_PC()); }
#define TSOMON_SIZE(SIZE)                                     \
  TSOMON_ACCESS(read##SIZE, kRead, SIZE)                      \
  TSOMON_ACCESS(write##SIZE, kWrite, SIZE)                    \
  TSOMON_ACCESS(volatile_read##SIZE, kRead, SIZE)             \
  TSOMON_ACCESS(volatile_write##SIZE, kWrite, SIZE)           \
  TSOMON_ACCESS(unaligned_read##SIZE, kRead, SIZE)            \
  TSOMON_ACCESS(unaligned_write##SIZE, kWrite, SIZE)          \
  TSOMON_ACCESS(unaligned_volatile_read##SIZE, kRead, SIZE)   \
  TSOMON_ACCESS(unaligned_volatile_write##SIZE, kWrite, SIZE) \
  TSOMON_COMPOUND(read_write##SIZE, SIZE)                     \
  TSOMON_COMPOUND(unaligned_read_write##SIZE, SIZE)

TSOMON_SIZE(1)
TSOMON_SIZE(2)
TSOMON_SIZE(4)
TSOMON_SIZE(8)
TSOMON_SIZE(16)

TSOMON_HOOK void __tsan_read_range(void* address, uint64_t size) {
  put_range(kRead, address, size, TSOMON_PC());
}
TSOMON_HOOK void __tsan_write_range(void* address, uint64_t size) {
  put_range(kWrite, address, size, TSOMON_PC());
}
TSOMON_HOOK void __tsan_read_range_pc(void* address, uint64_t size, void* pc) {
  put_range(kRead, address, size, reinterpret_cast<uint64_t>(pc));
}
TSOMON_HOOK void __tsan_write_range_pc(void* address, uint64_t size, void* pc) {
  put_range(kWrite, address, size, reinterpret_cast<uint64_t>(pc));
}

// Loads and stores of an object's table of virtual functions.
TSOMON_HOOK void __tsan_vptr_read(void** address) { access(kRead, address, 8, TSOMON_PC()); }
TSOMON_HOOK void __tsan_vptr_update(void** address, void*) {
  access(kWrite, address, 8, TSOMON_PC());
}

// clang brackets code that its own instrumentation added; nothing there is to be recorded, and
// nothing there is instrumented in release 14.
TSOMON_HOOK void __tsan_ignore_thread_begin() {}
TSOMON_HOOK void __tsan_ignore_thread_end() {}
