// Block copies and fills.
//
// The compilers leave calls of memcpy, memmove and memset as they are. The wrapper links with
// --wrap for them: calls from the objects of the program come here, calls from shared libraries do
// not. Standing in front of the C library's functions, as libtsan does, would record in addition
// what uninstrumented libraries copy, but only this part of what they do, and would make every copy
// in the process slower, those of the loader and of signal handlers included.
// (g++ 12 and clang 14 do not emit the names __tsan_memcpy, __tsan_memmove, __tsan_memset of later
// compilers.)
// With -D_FORTIFY_SOURCE the calls are __memcpy_chk and so on: wrapped as well.
// Missed: the other string functions (strcpy, strlen, ...), and libraries. Large copies of the C
// library use stores that bypass the cache, with a fence behind them; the events say that they
// commit in order with the thread's earlier stores, which these need not.
#include <cstddef>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/runtime.h"

using namespace tsomon::probe;

// Weak: absent in a program that is linked without --wrap, where nothing calls the wrappers.
extern "C" {
__attribute__((weak)) void* __real_memcpy(void* to, const void* from, size_t size);
__attribute__((weak)) void* __real_memmove(void* to, const void* from, size_t size);
__attribute__((weak)) void* __real_memset(void* to, int value, size_t size);
__attribute__((weak)) void* __real___memcpy_chk(void* to, const void* from, size_t size,
                                                size_t room);
__attribute__((weak)) void* __real___memmove_chk(void* to, const void* from, size_t size,
                                                 size_t room);
__attribute__((weak)) void* __real___memset_chk(void* to, int value, size_t size, size_t room);
}

// In a program under control the copy is made step by step.
#define TSOMON_IF_EXPLORED(CALL)                                           \
  if (TSOMON_UNLIKELY(tsomon::explore::active) && tsomon::explore::CALL) { \
    return to;                                                             \
  }

TSOMON_HOOK void* __wrap_memcpy(void* to, const void* from, size_t size) {
  TSOMON_IF_EXPLORED(copy(to, from, size, TSOMON_PC()))
  put_copy(to, from, size, TSOMON_PC());
  return __real_memcpy(to, from, size);
}
TSOMON_HOOK void* __wrap_memmove(void* to, const void* from, size_t size) {
  TSOMON_IF_EXPLORED(copy(to, from, size, TSOMON_PC()))
  put_copy(to, from, size, TSOMON_PC());
  return __real_memmove(to, from, size);
}
TSOMON_HOOK void* __wrap_memset(void* to, int value, size_t size) {
  TSOMON_IF_EXPLORED(fill(to, value, size, TSOMON_PC()))
  put_range(RecordType::kWrite, to, size, TSOMON_PC());
  return __real_memset(to, value, size);
}
TSOMON_HOOK void* __wrap___memcpy_chk(void* to, const void* from, size_t size, size_t room) {
  TSOMON_IF_EXPLORED(copy(to, from, size, TSOMON_PC()))
  put_copy(to, from, size, TSOMON_PC());
  return __real___memcpy_chk(to, from, size, room);
}
TSOMON_HOOK void* __wrap___memmove_chk(void* to, const void* from, size_t size, size_t room) {
  TSOMON_IF_EXPLORED(copy(to, from, size, TSOMON_PC()))
  put_copy(to, from, size, TSOMON_PC());
  return __real___memmove_chk(to, from, size, room);
}
TSOMON_HOOK void* __wrap___memset_chk(void* to, int value, size_t size, size_t room) {
  TSOMON_IF_EXPLORED(fill(to, value, size, TSOMON_PC()))
  put_range(RecordType::kWrite, to, size, TSOMON_PC());
  return __real___memset_chk(to, value, size, room);
}
