// Block copies and fills: memcpy and its relatives (library_calls.h).
//
// Large copies of the C library use stores that bypass the cache, with a fence behind them; the
// events say that they commit in order with the thread's earlier stores, which these need not.
// Standing in front of the C library's functions, as libtsan does, would record in addition what
// uninstrumented libraries copy, but only this part of what they do, and would make every copy in
// the process slower, those of the loader and of signal handlers included.
// (g++ 12 and clang 14 do not emit the names __tsan_memcpy, __tsan_memmove, __tsan_memset of later
// compilers.)
#include <cstddef>

#include "monitor/probe/library_calls.h"

using namespace tsomon::probe;

extern "C" {
void* __memcpy_chk(void* to, const void* from, size_t size, size_t room);
void* __memmove_chk(void* to, const void* from, size_t size, size_t room);
void* __memset_chk(void* to, int value, size_t size, size_t room);
void* __mempcpy_chk(void* to, const void* from, size_t size, size_t room);
}

// In a program under control the copy is made step by step.
#define TSOMON_IF_EXPLORED(CALL)                                           \
  if (TSOMON_UNLIKELY(tsomon::explore::active) && tsomon::explore::CALL) { \
    return to;                                                             \
  }

TSOMON_WRAP(void*, memcpy, (void* to, const void* from, size_t size)) {
  TSOMON_IF_EXPLORED(copy(to, from, size, TSOMON_PC()))
  put_copy(to, from, size, TSOMON_PC());
  return memcpy(to, from, size);
}
TSOMON_WRAP(void*, memmove, (void* to, const void* from, size_t size)) {
  TSOMON_IF_EXPLORED(copy(to, from, size, TSOMON_PC()))
  put_copy(to, from, size, TSOMON_PC());
  return memmove(to, from, size);
}
TSOMON_WRAP(void*, memset, (void* to, int value, size_t size)) {
  TSOMON_IF_EXPLORED(fill(to, value, size, TSOMON_PC()))
  put_range(RecordType::kWrite, to, size, TSOMON_PC());
  return memset(to, value, size);
}
TSOMON_WRAP(void*, __memcpy_chk, (void* to, const void* from, size_t size, size_t room)) {
  TSOMON_IF_EXPLORED(copy(to, from, size, TSOMON_PC()))
  put_copy(to, from, size, TSOMON_PC());
  return __memcpy_chk(to, from, size, room);
}
TSOMON_WRAP(void*, __memmove_chk, (void* to, const void* from, size_t size, size_t room)) {
  TSOMON_IF_EXPLORED(copy(to, from, size, TSOMON_PC()))
  put_copy(to, from, size, TSOMON_PC());
  return __memmove_chk(to, from, size, room);
}
TSOMON_WRAP(void*, __memset_chk, (void* to, int value, size_t size, size_t room)) {
  TSOMON_IF_EXPLORED(fill(to, value, size, TSOMON_PC()))
  put_range(RecordType::kWrite, to, size, TSOMON_PC());
  return __memset_chk(to, value, size, room);
}

// The compiler's own copies (monitor/probe/gcc/tsomon_calls.cpp): hooks told of them.
TSOMON_HOOK void* tsomon_runtime_memcpy(void* to, const void* from, size_t size) {
  return memcpy(to, from, size);
}
TSOMON_HOOK void* tsomon_runtime_memmove(void* to, const void* from, size_t size) {
  return memmove(to, from, size);
}
TSOMON_HOOK void* tsomon_runtime_memset(void* to, int value, size_t size) {
  return memset(to, value, size);
}

namespace {

void* copied(void* to, const void* from, size_t size, uint64_t pc) {
  TSOMON_IF_EXPLORED(copy(to, from, size, pc))
  put_copy(to, from, size, pc);
  return memmove(to, from, size);
}
void filled(void* to, size_t size, uint64_t pc) {
  if (TSOMON_UNLIKELY(tsomon::explore::active) && tsomon::explore::fill(to, 0, size, pc)) {
    return;
  }
  put_range(RecordType::kWrite, to, size, pc);
  explicit_bzero(to, size);
}

}  // namespace

TSOMON_WRAP(void*, mempcpy, (void* to, const void* from, size_t size)) {
  return static_cast<char*>(copied(to, from, size, TSOMON_PC())) + size;
}
TSOMON_WRAP(void*, __mempcpy, (void* to, const void* from, size_t size)) {
  return static_cast<char*>(copied(to, from, size, TSOMON_PC())) + size;
}
TSOMON_WRAP(void*, __mempcpy_chk, (void* to, const void* from, size_t size, size_t room)) {
  if (size > room) {
    return __mempcpy_chk(to, from, size, room);
  }
  return static_cast<char*>(copied(to, from, size, TSOMON_PC())) + size;
}
TSOMON_WRAP(void, bcopy, (const void* from, void* to, size_t size)) {
  copied(to, from, size, TSOMON_PC());
}
TSOMON_WRAP(void, bzero, (void* to, size_t size)) { filled(to, size, TSOMON_PC()); }
TSOMON_WRAP(void, explicit_bzero, (void* to, size_t size)) { filled(to, size, TSOMON_PC()); }
