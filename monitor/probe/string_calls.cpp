// Functions of the C library that look at bytes and strings, or make numbers of them
// (library_calls.h).
#include <cstdlib>
#include <cstring>

#include <strings.h>
#include <unistd.h>

#include "monitor/probe/library_calls.h"

using namespace tsomon::probe;
namespace explore = tsomon::explore;

namespace {

char* unconst(const char* text) { return const_cast<char*>(text); }
template <typename Number>
Number unconst(Number number) {
  return number;
}

const char* bytes(const void* from) { return static_cast<const char*>(from); }

// The bytes that a comparison of two strings looks at: up to the first that differ.
template <typename Same>
size_t compared(const char* a, const char* b, size_t most, Same same) {
  for (size_t i = 0; i < most; ++i) {
    if (!same(a[i], b[i]) || a[i] == 0) {
      return i + 1;
    }
  }
  return most;
}
bool equal(char a, char b) { return a == b; }
bool equal_letters(char a, char b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
  return lower(a) == lower(b);
}

using Comparison = int (*)(const char* a, const char* b, size_t most);

template <typename Same>
__attribute__((noinline)) int compare(const char* a, const char* b, size_t most, Same same,
                                      Comparison real, uint64_t pc) {
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own_a(a, most, true, pc);
    const Explored own_b(b, most, true, pc);
    return real(own_a.at(), own_b.at(), most);
  }
  Accesses accesses(pc);
  const int result = real(a, b, most);
  const size_t size = compared(a, b, most, same);
  accesses.load(a, size);
  accesses.load(b, size);
  return result;
}

// A place in a string, or nullptr. Where it is found the function has looked no further (`forward`).
template <typename Find>
__attribute__((noinline)) char* find(const char* text, bool forward, uint64_t pc, Find real) {
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own(text, kNoBound, true, pc);
    return own.original(real(own.at()));
  }
  Accesses accesses(pc);
  const char* const found = real(text);
  if (found != nullptr && forward) {
    accesses.load(text, static_cast<size_t>(found - text) + 1);
  } else {
    accesses.load_text(text);
  }
  return const_cast<char*>(found);
}
template <typename Find>
__attribute__((noinline)) void* find_byte(const void* from, size_t size, bool forward, uint64_t pc,
                                          Find real) {
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own(bytes(from), size, false, pc);
    return own.original(bytes(real(own.at())));
  }
  Accesses accesses(pc);
  const char* const found = bytes(real(bytes(from)));
  accesses.load(from, found == nullptr ? size
                      : forward        ? static_cast<size_t>(found - bytes(from)) + 1
                                       : size);
  return const_cast<char*>(found);
}

// Of two strings, one of which says what is looked for in the other.
template <typename Result, typename Look>
__attribute__((noinline)) Result look(const char* text, const char* what, uint64_t pc, Look real) {
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own(text, kNoBound, true, pc);
    const Explored own_what(what, kNoBound, true, pc);
    if constexpr (std::is_pointer_v<Result>) {
      return own.original(real(own.at(), own_what.at()));
    } else {
      return real(own.at(), own_what.at());
    }
  }
  Accesses accesses(pc);
  const auto result = real(text, what);
  accesses.load_text(text);
  accesses.load_text(what);
  return unconst(result);
}

}  // namespace

#define TSOMON_UNLESS_SEEN(CALL) \
  if (!is_seen()) {              \
    return CALL;                 \
  }

TSOMON_WRAP(size_t, strlen, (const char* text)) {
  TSOMON_UNLESS_SEEN(strlen(text))
  if (TSOMON_UNLIKELY(explore::active)) {
    return strlen(Explored(text, kNoBound, true, TSOMON_PC()).at());
  }
  Accesses accesses(TSOMON_PC());
  const size_t size = strlen(text);
  accesses.load(text, size + 1);
  return size;
}
TSOMON_WRAP(size_t, strnlen, (const char* text, size_t most)) {
  TSOMON_UNLESS_SEEN(strnlen(text, most))
  if (TSOMON_UNLIKELY(explore::active)) {
    return strnlen(Explored(text, most, true, TSOMON_PC()).at(), most);
  }
  Accesses accesses(TSOMON_PC());
  const size_t size = strnlen(text, most);
  accesses.load(text, size + (size < most ? 1 : 0));
  return size;
}

TSOMON_WRAP(int, strcmp, (const char* a, const char* b)) {
  TSOMON_UNLESS_SEEN(strcmp(a, b))
  return compare(
      a, b, kNoBound, equal, [](const char* x, const char* y, size_t) { return strcmp(x, y); },
      TSOMON_PC());
}
TSOMON_WRAP(int, strncmp, (const char* a, const char* b, size_t most)) {
  TSOMON_UNLESS_SEEN(strncmp(a, b, most))
  return compare(a, b, most, equal, strncmp, TSOMON_PC());
}
TSOMON_WRAP(int, strcasecmp, (const char* a, const char* b)) {
  TSOMON_UNLESS_SEEN(strcasecmp(a, b))
  return compare(
      a, b, kNoBound, equal_letters,
      [](const char* x, const char* y, size_t) { return strcasecmp(x, y); }, TSOMON_PC());
}
TSOMON_WRAP(int, strncasecmp, (const char* a, const char* b, size_t most)) {
  TSOMON_UNLESS_SEEN(strncasecmp(a, b, most))
  return compare(a, b, most, equal_letters, strncasecmp, TSOMON_PC());
}
TSOMON_WRAP(int, strcoll, (const char* a, const char* b)) {
  TSOMON_UNLESS_SEEN(strcoll(a, b))
  return look<int>(a, b, TSOMON_PC(), strcoll);
}

#define TSOMON_FIND(NAME, FORWARD)                                                 \
  TSOMON_WRAP(char*, NAME, (const char* text, int what)) {                         \
    TSOMON_UNLESS_SEEN(const_cast<char*>(NAME(text, what)))                        \
    return find(text, FORWARD, TSOMON_PC(),                                        \
                [what](const char* at) -> const char* { return NAME(at, what); }); \
  }
TSOMON_FIND(strchr, true)
TSOMON_FIND(index, true)
TSOMON_FIND(strchrnul, true)
TSOMON_FIND(strrchr, false)
TSOMON_FIND(rindex, false)

#define TSOMON_FIND_BYTE(NAME, FORWARD)                                                    \
  TSOMON_WRAP(void*, NAME, (const void* from, int what, size_t size)) {                    \
    TSOMON_UNLESS_SEEN(const_cast<void*>(NAME(from, what, size)))                          \
    return find_byte(from, size, FORWARD, TSOMON_PC(),                                     \
                     [=](const char* at) -> const void* { return NAME(at, what, size); }); \
  }
TSOMON_FIND_BYTE(memchr, true)
TSOMON_FIND_BYTE(memrchr, false)
TSOMON_WRAP(void*, rawmemchr, (const void* from, int what)) {
  TSOMON_UNLESS_SEEN(const_cast<void*>(rawmemchr(from, what)))
  const size_t size = static_cast<size_t>(bytes(rawmemchr(from, what)) - bytes(from)) + 1;
  return find_byte(from, size, true, TSOMON_PC(),
                   [=](const char* at) -> const void* { return memchr(at, what, size); });
}
TSOMON_WRAP(void*, memmem, (const void* from, size_t size, const void* what, size_t what_size)) {
  TSOMON_UNLESS_SEEN(memmem(from, size, what, what_size))
  const uint64_t pc = TSOMON_PC();
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own(bytes(from), size, false, pc);
    const Explored own_what(bytes(what), what_size, false, pc);
    return own.original(bytes(memmem(own.at(), size, own_what.at(), what_size)));
  }
  Accesses accesses(pc);
  void* const found = memmem(from, size, what, what_size);
  accesses.load(
      from, found == nullptr ? size : static_cast<size_t>(bytes(found) - bytes(from)) + what_size);
  accesses.load(what, what_size);
  return found;
}

// memcmp looks at all bytes, whatever they are: the program may rely on nothing less.
#define TSOMON_COMPARE_BYTES(NAME)                                      \
  TSOMON_WRAP(int, NAME, (const void* a, const void* b, size_t size)) { \
    TSOMON_UNLESS_SEEN(NAME(a, b, size))                                \
    const uint64_t pc = TSOMON_PC();                                    \
    if (TSOMON_UNLIKELY(explore::active)) {                             \
      const Explored own_a(bytes(a), size, false, pc);                  \
      const Explored own_b(bytes(b), size, false, pc);                  \
      return NAME(own_a.at(), own_b.at(), size);                        \
    }                                                                   \
    Accesses accesses(pc);                                              \
    const int result = NAME(a, b, size);                                \
    accesses.load(a, size);                                             \
    accesses.load(b, size);                                             \
    return result;                                                      \
  }
TSOMON_COMPARE_BYTES(memcmp)
TSOMON_COMPARE_BYTES(bcmp)

#define TSOMON_LOOK(RESULT, NAME)                                                     \
  TSOMON_WRAP(RESULT, NAME, (const char* text, const char* what)) {                   \
    TSOMON_UNLESS_SEEN(unconst(NAME(text, what)))                                     \
    return look<RESULT>(text, what, TSOMON_PC(),                                      \
                        [](const char* at, const char* of) { return NAME(at, of); }); \
  }
TSOMON_LOOK(char*, strstr)
TSOMON_LOOK(char*, strcasestr)
TSOMON_LOOK(char*, strpbrk)
TSOMON_LOOK(size_t, strspn)
TSOMON_LOOK(size_t, strcspn)

// Numbers: read up to the character behind them, which is where `end` then points.
namespace {

template <typename Number, typename Parse>
__attribute__((noinline)) Number parse(const char* text, char** end, uint64_t pc, Parse real) {
  char* own_end = nullptr;
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own(text, kNoBound, true, pc);
    const Number number = real(own.at(), &own_end);
    if (end != nullptr) {
      char* const original = own.original(own_end);
      explored_store(end, &original, sizeof original, pc);
    }
    return number;
  }
  Accesses accesses(pc);
  const Number number = real(text, &own_end);
  if (own_end != nullptr) {
    accesses.load(text, static_cast<size_t>(own_end - text) + 1);
  }
  if (end != nullptr) {
    *end = own_end;
    accesses.store(end, sizeof *end);
  }
  return number;
}

}  // namespace

#define TSOMON_PARSE_INTEGER(NUMBER, NAME)                                                  \
  TSOMON_WRAP(NUMBER, NAME, (const char* text, char** end, int base)) {                     \
    TSOMON_UNLESS_SEEN(NAME(text, end, base))                                               \
    return parse<NUMBER>(text, end, TSOMON_PC(),                                            \
                         [base](const char* at, char** to) { return NAME(at, to, base); }); \
  }
TSOMON_PARSE_INTEGER(long, strtol)
TSOMON_PARSE_INTEGER(unsigned long, strtoul)
TSOMON_PARSE_INTEGER(long long, strtoll)
TSOMON_PARSE_INTEGER(unsigned long long, strtoull)
TSOMON_PARSE_INTEGER(long long, strtoq)
TSOMON_PARSE_INTEGER(unsigned long long, strtouq)
#define TSOMON_PARSE_FLOAT(NUMBER, NAME)                                          \
  TSOMON_WRAP(NUMBER, NAME, (const char* text, char** end)) {                     \
    TSOMON_UNLESS_SEEN(NAME(text, end))                                           \
    return parse<NUMBER>(text, end, TSOMON_PC(),                                  \
                         [](const char* at, char** to) { return NAME(at, to); }); \
  }
TSOMON_PARSE_FLOAT(double, strtod)
TSOMON_PARSE_FLOAT(float, strtof)
TSOMON_PARSE_FLOAT(long double, strtold)
#define TSOMON_NUMBER(NUMBER, NAME, CALL)                                                      \
  TSOMON_WRAP(NUMBER, NAME, (const char* text)) {                                              \
    TSOMON_UNLESS_SEEN(NAME(text))                                                             \
    return parse<NUMBER>(text, nullptr, TSOMON_PC(),                                           \
                         [](const char* at, char** to) { return static_cast<NUMBER>(CALL); }); \
  }
TSOMON_NUMBER(int, atoi, strtol(at, to, 10))
TSOMON_NUMBER(long, atol, strtol(at, to, 10))
TSOMON_NUMBER(long long, atoll, strtoll(at, to, 10))
TSOMON_NUMBER(double, atof, strtod(at, to))
