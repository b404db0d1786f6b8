// Plain accesses of instrumented code (g++ 12, clang 14).
//
// The hook runs before the access and never reads the memory: the value is not known, the interval
// is that of the stamps around it (stamp.h).
#include <atomic>

#include <dlfcn.h>

#include "monitor/probe/runtime.h"

namespace tsomon::probe {
namespace {
constexpr RecordType kRead = RecordType::kRead;
constexpr RecordType kWrite = RecordType::kWrite;
std::atomic<bool> left_out_said{false};
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

// Loads and stores of an object's table of virtual functions. A destructor begins by storing the one
// that is there already, which nobody can tell: that is taken for a load.
TSOMON_HOOK void __tsan_vptr_read(void** address) { access(kRead, address, 8, TSOMON_PC()); }
TSOMON_HOOK void __tsan_vptr_update(void** address, void* table) {
  access(*address == table ? kRead : kWrite, address, 8, TSOMON_PC());
}

// Of code that -ftsomon-files and -ftsomon-functions leave out, with -ftsomon-files-check: declared
// data is about to be accessed and not to be recorded. The first one is named.
TSOMON_HOOK void tsomon_runtime_left_out(const volatile void* address, unsigned long size,
                                         int store) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (!tsomon::probe::would_be_recorded(begin, size, store != 0)) {
    return;
  }
  tsomon::probe::count_lost();
  if (!tsomon::probe::left_out_said.exchange(true, std::memory_order_relaxed)) {
    const uint64_t pc = TSOMON_PC();
    Dl_info module{};
    dladdr(reinterpret_cast<void*>(pc), &module);
    tsomon::probe::warn(
        "-ftsomon-files or -ftsomon-functions leaves out a %s of declared data at %#lx, by %s+%#lx "
        "(addr2line); more such accesses are counted as lost only",
        store != 0 ? "store" : "load", begin, module.dli_fname != nullptr ? module.dli_fname : "?",
        pc - 1 - reinterpret_cast<uint64_t>(module.dli_fbase));
  }
}

// clang brackets code that its own instrumentation added, which is not instrumented in release 14.
// What a program brackets is recorded all the same (tsan_interface.cpp).
TSOMON_HOOK void __tsan_ignore_thread_begin() {}
TSOMON_HOOK void __tsan_ignore_thread_end() {}
