// The functions of libatomic. Compilers call them for atomic objects that no instruction accesses as a whole, and
// for those of which they do not know that one can: clang for every std::atomic of a structure.
//
// Sizes    1, 2, 4, 8 and 16 bytes, aligned: as the compiler's own hooks do it (atomic_operations.h). All others: under
//          a lock, which is no event of the recording; what is recorded is one locked operation on the whole
//          object, with digests for values. Under exploration the lock is one of the program's.
// Passed   What is stored, expected and returned lies in memory of the program: plain accesses.
// Libraries  They call these, too: an object has one lock, whoever accesses it. So the names are exported
//          (tools/tsomon-c++).
// Misses   Of objects of more than 1,023 bytes what lies behind. Libraries with a libatomic.a of their own.
// Thread-safety: as the functions. Async-signal-safe, which libatomic's are not.
#include <algorithm>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/atomic_operations.h"
#include "monitor/probe/copy.h"
#include "monitor/probe/guard.h"
#include "monitor/probe/library_calls.h"

// What an exploration names where threads wait for one another.
pthread_mutex_t libatomic_lock[64];

namespace {

using namespace tsomon::probe;
namespace explore = tsomon::explore;

constexpr size_t kPart = 256;
std::atomic<uint32_t> locks[64];

// To the runtime's own memory, and from it.
void take(char* to, const volatile void* from, size_t size, uint64_t pc) {
  const void* const place = const_cast<const void*>(from);
  if (explore::is_concurrent()) {
    explore::load_copy(to, place, size, pc);
  } else {
    copy(to, place, size);
  }
}
void give(volatile void* to, const char* from, size_t size, uint64_t pc) {
  void* const place = const_cast<void*>(to);
  if (!explore::is_concurrent() || !explore::copy(place, from, size, pc)) {
    copy(place, from, size);
  }
}
char* at(volatile void* object, size_t offset) {
  return static_cast<char*>(const_cast<void*>(object)) + offset;
}
const char* at(const volatile void* object, size_t offset) {
  return static_cast<const char*>(const_cast<const void*>(object)) + offset;
}

bool is_equal(const volatile void* a, const void* b, size_t size, uint64_t pc) {
  char first[kPart];
  char second[kPart];
  for (size_t i = 0; i < size; i += kPart) {
    const size_t part = std::min(kPart, size - i);
    take(first, at(a, i), part, pc);
    take(second, at(b, i), part, pc);
    if (__builtin_memcmp(first, second, part) != 0) {
      return false;
    }
  }
  return true;
}
void copy_parts(volatile void* to, const volatile void* from, size_t size, uint64_t pc) {
  char part[kPart];
  for (size_t i = 0; i < size; i += kPart) {
    take(part, at(from, i), std::min(kPart, size - i), pc);
    give(at(to, i), part, std::min(kPart, size - i), pc);
  }
}

// Of at most 8 bytes the value.
uint64_t digest_of(const volatile void* object, size_t size) {
  uint64_t digest = 0;
  if (size <= sizeof digest) {
    copy(&digest, at(object, 0), size);
    return digest;
  }
  for (size_t i = 0; i < size; i += sizeof digest) {
    uint64_t word = 0;
    copy(&word, at(object, i), std::min(sizeof word, size - i));
    digest = add_to_digest(digest, word);
  }
  return digest;
}

// What `action` does with the object nobody else does anything with meanwhile.
template <typename Action>
__attribute__((noinline)) bool under_lock(const volatile void* object, size_t size, bool loads,
                                          uint64_t pc, Action action) {
  const size_t number = (reinterpret_cast<uint64_t>(object) * 0x9E3779B97F4A7C15ULL) >> 58;
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::mutex_lock(&libatomic_lock[number], true, pc);
    const bool result = action();
    explore::mutex_unlock(&libatomic_lock[number], pc);
    return result;
  }
  Operation operation(
      loads ? RecordType::kFailedCompareExchange : RecordType::kAtomicReadModifyWrite, object,
      static_cast<uint32_t>(std::min<size_t>(size, tsomon::capture::kMaxSize)), loads ? 1 : 2, pc);
  bool result = false;
  uint64_t before = 0;
  uint64_t after = 0;
  {
    const Guard guard(&locks[number]);
    before = digest_of(object, size);
    result = action();
    after = loads ? before : digest_of(object, size);
  }
  // The release of the lock is an ordinary store: others see what was stored when the operation ends.
  __builtin_ia32_mfence();
  if (result || loads) {
    operation.done(true, before, after);
  } else {
    operation.failed(before);
  }
  return result;
}

// Under exploration take() and give() tell.
void put_passed(RecordType type, const void* passed, size_t size, uint64_t pc) {
  if (!explore::active) {
    put_range(type, passed, size, pc);
  }
}

template <typename T>
T value_at(const void* from, uint64_t pc) {
  T value{};
  put_range(RecordType::kRead, from, sizeof value, pc);
  copy(&value, from, sizeof value);
  return value;
}
template <typename T>
void put_value(void* to, T value, uint64_t pc) {
  put_range(RecordType::kWrite, to, sizeof value, pc);
  copy(to, &value, sizeof value);
}

}  // namespace

// CALL(T) returns from the function, where an instruction accesses the object as a whole: T has its size.
#define TSOMON_OF_SIZE(BYTES, T, OBJECT, CALL)               \
  case BYTES:                                                \
    if (reinterpret_cast<uint64_t>(OBJECT) % (BYTES) == 0) { \
      CALL(T)                                                \
    }                                                        \
    break;
#define TSOMON_BY_SIZE(SIZE, OBJECT, CALL)              \
  switch (SIZE) {                                       \
    TSOMON_OF_SIZE(1, uint8_t, OBJECT, CALL)            \
    TSOMON_OF_SIZE(2, uint16_t, OBJECT, CALL)           \
    TSOMON_OF_SIZE(4, uint32_t, OBJECT, CALL)           \
    TSOMON_OF_SIZE(8, uint64_t, OBJECT, CALL)           \
    TSOMON_OF_SIZE(16, unsigned __int128, OBJECT, CALL) \
    default:                                            \
      break;                                            \
  }

// The names are the compiler's own, with other types.
#define TSOMON_LIBATOMIC(RESULT, NAME, PARAMETERS)                           \
  TSOMON_HOOK RESULT atomic_object_##NAME PARAMETERS asm("__atomic_" #NAME); \
  RESULT atomic_object_##NAME PARAMETERS

TSOMON_LIBATOMIC(void, load, (size_t size, const volatile void* object, void* to, int order)) {
#define TSOMON_LOAD(T)                                                                           \
  if (TSOMON_UNLIKELY(explore::active)) {                                                        \
    return explore::load_object<T>(object, to);                                                  \
  }                                                                                              \
  return put_value(to, tsomon::probe::load(static_cast<const volatile T*>(object), TSOMON_PC()), \
                   TSOMON_PC());
  TSOMON_BY_SIZE(size, object, TSOMON_LOAD)
  static_cast<void>(order);
  const uint64_t pc = TSOMON_PC();
  put_passed(RecordType::kWrite, to, size, pc);
  under_lock(object, size, true, pc, [&] {
    copy_parts(to, object, size, pc);
    return true;
  });
}

TSOMON_LIBATOMIC(void, store, (size_t size, volatile void* object, const void* from, int order)) {
#define TSOMON_STORE(T)                                                                         \
  if (TSOMON_UNLIKELY(explore::active)) {                                                       \
    return explore::store_object<T>(object, from, order);                                       \
  }                                                                                             \
  return tsomon::probe::store(static_cast<volatile T*>(object), value_at<T>(from, TSOMON_PC()), \
                              order, TSOMON_PC());
  TSOMON_BY_SIZE(size, object, TSOMON_STORE)
  const uint64_t pc = TSOMON_PC();
  put_passed(RecordType::kRead, from, size, pc);
  under_lock(object, size, false, pc, [&] {
    copy_parts(object, from, size, pc);
    return true;
  });
}

TSOMON_LIBATOMIC(void, exchange,
                 (size_t size, volatile void* object, const void* from, void* to, int order)) {
#define TSOMON_EXCHANGE(T)                                                               \
  if (TSOMON_UNLIKELY(explore::active)) {                                                \
    return explore::exchange_object<T>(object, from, to);                                \
  }                                                                                      \
  return put_value(to,                                                                   \
                   tsomon::probe::exchange(static_cast<volatile T*>(object),             \
                                           value_at<T>(from, TSOMON_PC()), TSOMON_PC()), \
                   TSOMON_PC());
  TSOMON_BY_SIZE(size, object, TSOMON_EXCHANGE)
  static_cast<void>(order);
  const uint64_t pc = TSOMON_PC();
  put_passed(RecordType::kRead, from, size, pc);
  put_passed(RecordType::kWrite, to, size, pc);
  under_lock(object, size, false, pc, [&] {
    // `to` may be `from`.
    char before[kPart];
    char after[kPart];
    for (size_t i = 0; i < size; i += kPart) {
      const size_t part = std::min(kPart, size - i);
      take(before, at(object, i), part, pc);
      take(after, at(from, i), part, pc);
      give(at(object, i), after, part, pc);
      give(at(to, i), before, part, pc);
    }
    return true;
  });
}

TSOMON_LIBATOMIC(bool, compare_exchange,
                 (size_t size, volatile void* object, void* expected, const void* from, int order,
                  int order_of_failure)) {
#define TSOMON_COMPARE_EXCHANGE(T)                                                           \
  if (TSOMON_UNLIKELY(explore::active)) {                                                    \
    return explore::compare_exchange_object<T>(object, expected, from);                      \
  }                                                                                          \
  T wanted = value_at<T>(expected, TSOMON_PC());                                             \
  const bool equal = compare_exchange_recorded(static_cast<volatile T*>(object), &wanted,    \
                                               value_at<T>(from, TSOMON_PC()), TSOMON_PC()); \
  if (!equal) {                                                                              \
    put_value(expected, wanted, TSOMON_PC());                                                \
  }                                                                                          \
  return equal;
  TSOMON_BY_SIZE(size, object, TSOMON_COMPARE_EXCHANGE)
  static_cast<void>(order);
  static_cast<void>(order_of_failure);
  const uint64_t pc = TSOMON_PC();
  put_passed(RecordType::kRead, expected, size, pc);
  put_passed(RecordType::kRead, from, size, pc);
  const bool equal = under_lock(object, size, false, pc, [&] {
    if (is_equal(object, expected, size, pc)) {
      copy_parts(object, from, size, pc);
      return true;
    }
    copy_parts(expected, object, size, pc);
    return false;
  });
  if (!equal) {
    put_passed(RecordType::kWrite, expected, size, pc);
  }
  return equal;
}
