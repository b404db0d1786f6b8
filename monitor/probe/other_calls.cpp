// Functions of the C library that write their results to the program's memory, or read and write
// what they are given (library_calls.h): streams, sorting, time, numbers, wide characters.
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cwchar>

#include <sys/time.h>
#include <time.h>

#include "monitor/probe/library_calls.h"
#include "monitor/probe/streams.h"

using namespace tsomon::probe;
namespace explore = tsomon::explore;

extern "C" {
ssize_t __getdelim(char** line, size_t* room, int end, FILE* stream);
size_t __fread_chk(void* to, size_t room, size_t size, size_t count, FILE* stream);
char* __fgets_chk(char* to, size_t room, int size, FILE* stream);
wchar_t* __wmemcpy_chk(wchar_t* to, const wchar_t* from, size_t size, size_t room);
wchar_t* __wmemmove_chk(wchar_t* to, const wchar_t* from, size_t size, size_t room);
wchar_t* __wmemset_chk(wchar_t* to, wchar_t value, size_t size, size_t room);
wchar_t* __wcscpy_chk(wchar_t* to, const wchar_t* from, size_t room);
wchar_t* __wcsncpy_chk(wchar_t* to, const wchar_t* from, size_t most, size_t room);
wchar_t* __wcscat_chk(wchar_t* to, const wchar_t* from, size_t room);
}

// The call, then what it accessed: a statement that uses `accesses` and `result`.
#define TSOMON_WRAP_BY(HOW, RESULT, NAME, PARAMETERS, ARGUMENTS, NOTE) \
  TSOMON_WRAP(RESULT, NAME, PARAMETERS) {                              \
    if (!is_seen()) {                                                  \
      return NAME ARGUMENTS;                                           \
    }                                                                  \
    const uint64_t pc = TSOMON_PC();                                   \
    const auto call = [&] { return NAME ARGUMENTS; };                  \
    const auto note = [&](Accesses& accesses, RESULT result) {         \
      (void)result;                                                    \
      NOTE;                                                            \
    };                                                                 \
    return HOW;                                                        \
  }
#define TSOMON_WRAP_CALL(RESULT, NAME, PARAMETERS, ARGUMENTS, NOTE) \
  TSOMON_WRAP_BY(seen_call(pc, call, note), RESULT, NAME, PARAMETERS, ARGUMENTS, NOTE)
// One that writes to a stream, or reads from it.
#define TSOMON_WRAP_OUTPUT(RESULT, NAME, PARAMETERS, ARGUMENTS, STREAM, NOTE) \
  TSOMON_WRAP_BY(writes_stream(STREAM, pc, call, note), RESULT, NAME, PARAMETERS, ARGUMENTS, NOTE)
#define TSOMON_WRAP_INPUT(RESULT, NAME, PARAMETERS, ARGUMENTS, NOTE) \
  TSOMON_WRAP_BY(reads_stream(stream, pc, call, note), RESULT, NAME, PARAMETERS, ARGUMENTS, NOTE)

// Streams.
TSOMON_WRAP_INPUT(size_t, fread, (void* to, size_t size, size_t count, FILE* stream),
                  (to, size, count, stream), accesses.store(to, size* result))
TSOMON_WRAP_CALL(size_t, fread_unlocked, (void* to, size_t size, size_t count, FILE* stream),
                 (to, size, count, stream), accesses.store(to, size* result))
TSOMON_WRAP_INPUT(size_t, __fread_chk,
                  (void* to, size_t room, size_t size, size_t count, FILE* stream),
                  (to, room, size, count, stream), accesses.store(to, size* result))
TSOMON_WRAP_OUTPUT(size_t, fwrite, (const void* from, size_t size, size_t count, FILE* stream),
                   (from, size, count, stream), stream, accesses.load(from, size* count))
TSOMON_WRAP_CALL(size_t, fwrite_unlocked,
                 (const void* from, size_t size, size_t count, FILE* stream),
                 (from, size, count, stream), accesses.load(from, size* count))
TSOMON_WRAP_OUTPUT(int, puts, (const char* text), (text), stdout, accesses.load_text(text))
TSOMON_WRAP_OUTPUT(int, fputs, (const char* text, FILE* stream), (text, stream), stream,
                   accesses.load_text(text))
TSOMON_WRAP_CALL(int, fputs_unlocked, (const char* text, FILE* stream), (text, stream),
                 accesses.load_text(text))
TSOMON_WRAP(void, perror, (const char* text)) {
  perror(text);
  if (is_seen() && text != nullptr) {
    const int error = errno;
    Accesses(TSOMON_PC()).load_text(text);
    errno = error;
  }
}
TSOMON_WRAP_INPUT(char*, fgets, (char* to, int size, FILE* stream), (to, size, stream),
                  if (result != nullptr) accesses.store(to, strlen(to) + 1))
TSOMON_WRAP_INPUT(char*, __fgets_chk, (char* to, size_t room, int size, FILE* stream),
                  (to, room, size, stream),
                  if (result != nullptr) accesses.store(to, strlen(to) + 1))
#define TSOMON_LINE(NAME, PARAMETERS, ARGUMENTS)              \
  TSOMON_WRAP_INPUT(ssize_t, NAME, PARAMETERS, ARGUMENTS, {   \
    accesses.load(line, sizeof *line);                        \
    accesses.load(room, sizeof *room);                        \
    accesses.store(line, sizeof *line);                       \
    accesses.store(room, sizeof *room);                       \
    if (result >= 0) {                                        \
      accesses.store(*line, static_cast<size_t>(result) + 1); \
    }                                                         \
  })
TSOMON_LINE(getline, (char** line, size_t* room, FILE* stream), (line, room, stream))
TSOMON_LINE(getdelim, (char** line, size_t* room, int end, FILE* stream), (line, room, end, stream))
TSOMON_LINE(__getdelim, (char** line, size_t* room, int end, FILE* stream),
            (line, room, end, stream))

// Sorting. What it reads comes before the calls of the comparison, what it writes behind them; in between
// it may do both. A program under control sorts its elements in memory of its own.
namespace {

template <typename Sort>
void sort(void* from, size_t count, size_t size, uint64_t pc, Sort real) {
  if (TSOMON_UNLIKELY(explore::active) && explore::is_concurrent()) {
    void* const own = explore::allocate(count * size + 1, 16);
    if (own != nullptr) {
      explore::load_copy(own, from, count * size, pc);
      real(own);
      explored_store(from, own, count * size, pc);
      return;
    }
  }
  if (local.thread != nullptr) {
    put_copy(from, from, count * size, pc);
  }
  real(from);
  if (local.thread != nullptr) {
    Accesses(pc).store(from, count * size);
  }
}

}  // namespace
TSOMON_WRAP(void, qsort, (void* from, size_t count, size_t size, __compar_fn_t compare)) {
  sort(from, count, size, TSOMON_PC(), [=](void* at) { qsort(at, count, size, compare); });
}
TSOMON_WRAP(void, qsort_r,
            (void* from, size_t count, size_t size, __compar_d_fn_t compare, void* context)) {
  sort(from, count, size, TSOMON_PC(),
       [=](void* at) { qsort_r(at, count, size, compare, context); });
}

// Time.
TSOMON_WRAP(int, gettimeofday, (timeval * time, void* zone)) {
  if (TSOMON_UNLIKELY(explore::active)) {
    const int64_t now = explore::virtual_time();
    const timeval own{now / 1'000'000'000, now % 1'000'000'000 / 1000};
    explored_store(time, &own, sizeof own, TSOMON_PC());
    return 0;
  }
  const int result = gettimeofday(time, zone);
  if (is_seen() && time != nullptr) {
    Accesses(TSOMON_PC()).store(time, sizeof *time);
  }
  return result;
}
TSOMON_WRAP(time_t, time, (time_t * to)) {
  const time_t result =
      TSOMON_UNLIKELY(explore::active) ? explore::virtual_time() / 1'000'000'000 : time(nullptr);
  if (to != nullptr) {
    if (is_seen()) {
      const uint64_t pc = TSOMON_PC();
      if (explore::active) {
        explored_store(to, &result, sizeof result, pc);
        return result;
      }
      put_range(RecordType::kWrite, to, sizeof *to, pc);
    }
    *to = result;
  }
  return result;
}
#define TSOMON_TIME(NAME)                                                 \
  TSOMON_WRAP_CALL(tm*, NAME, (const time_t* time, tm* to), (time, to), { \
    accesses.load(time, sizeof *time);                                    \
    accesses.store(to, sizeof *to);                                       \
  })
TSOMON_TIME(localtime_r)
TSOMON_TIME(gmtime_r)
#define TSOMON_MAKE_TIME(NAME)                          \
  TSOMON_WRAP_CALL(time_t, NAME, (tm * time), (time), { \
    accesses.load(time, sizeof *time);                  \
    accesses.store(time, sizeof *time);                 \
  })
TSOMON_MAKE_TIME(mktime)
TSOMON_MAKE_TIME(timegm)
TSOMON_WRAP_CALL(size_t, strftime, (char* to, size_t room, const char* format, const tm* time),
                 (to, room, format, time), {
                   accesses.load_text(format);
                   accesses.load(time, sizeof *time);
                   accesses.store(to, result == 0 ? 0 : result + 1);
                 })
TSOMON_WRAP_CALL(char*, asctime_r, (const tm* time, char* to), (time, to), {
  accesses.load(time, sizeof *time);
  accesses.store(to, result == nullptr ? 0 : strlen(to) + 1);
})
TSOMON_WRAP_CALL(char*, ctime_r, (const time_t* time, char* to), (time, to), {
  accesses.load(time, sizeof *time);
  accesses.store(to, result == nullptr ? 0 : strlen(to) + 1);
})

// Numbers in two parts.
#define TSOMON_TWO_PARTS(FLOAT, NAME, PART)                                  \
  TSOMON_WRAP_CALL(FLOAT, NAME, (FLOAT number, PART * part), (number, part), \
                   accesses.store(part, sizeof *part))
TSOMON_TWO_PARTS(double, frexp, int)
TSOMON_TWO_PARTS(float, frexpf, int)
TSOMON_TWO_PARTS(long double, frexpl, int)
TSOMON_TWO_PARTS(double, modf, double)
TSOMON_TWO_PARTS(float, modff, float)
TSOMON_TWO_PARTS(long double, modfl, long double)
#define TSOMON_REMQUO(FLOAT, NAME)                                          \
  TSOMON_WRAP_CALL(FLOAT, NAME, (FLOAT number, FLOAT other, int* quotient), \
                   (number, other, quotient), accesses.store(quotient, sizeof *quotient))
TSOMON_REMQUO(double, remquo)
TSOMON_REMQUO(float, remquof)
TSOMON_REMQUO(long double, remquol)
#define TSOMON_SINCOS(FLOAT, NAME)                                        \
  TSOMON_WRAP(void, NAME, (FLOAT number, FLOAT * sine, FLOAT * cosine)) { \
    NAME(number, sine, cosine);                                           \
    if (is_seen()) {                                                      \
      Accesses accesses(TSOMON_PC());                                     \
      accesses.store(sine, sizeof *sine);                                 \
      accesses.store(cosine, sizeof *cosine);                             \
    }                                                                     \
  }
TSOMON_SINCOS(double, sincos)
TSOMON_SINCOS(float, sincosf)
TSOMON_SINCOS(long double, sincosl)

// Wide characters.
#define TSOMON_WIDE_COPY(NAME, LENGTH)                                               \
  TSOMON_WRAP_CALL(wchar_t*, NAME, (wchar_t * to, const wchar_t* from, size_t size), \
                   (to, from, size), {                                               \
                     accesses.load(from, (LENGTH) * sizeof *from);                   \
                     accesses.store(to, size * sizeof *to);                          \
                   })
TSOMON_WIDE_COPY(wmemcpy, size)
TSOMON_WIDE_COPY(wmemmove, size)
TSOMON_WIDE_COPY(wmempcpy, size)
TSOMON_WIDE_COPY(wcsncpy, wcsnlen(from, size) < size ? wcsnlen(from, size) + 1 : size)
#define TSOMON_WIDE_COPY_CHECKED(NAME, LENGTH)                                                    \
  TSOMON_WRAP_CALL(wchar_t*, NAME, (wchar_t * to, const wchar_t* from, size_t size, size_t room), \
                   (to, from, size, room), {                                                      \
                     accesses.load(from, (LENGTH) * sizeof *from);                                \
                     accesses.store(to, size * sizeof *to);                                       \
                   })
TSOMON_WIDE_COPY_CHECKED(__wmemcpy_chk, size)
TSOMON_WIDE_COPY_CHECKED(__wmemmove_chk, size)
TSOMON_WIDE_COPY_CHECKED(__wcsncpy_chk, wcsnlen(from, size) < size ? wcsnlen(from, size) + 1 : size)
TSOMON_WRAP_CALL(wchar_t*, wmemset, (wchar_t * to, wchar_t value, size_t size), (to, value, size),
                 accesses.store(to, size * sizeof *to))
TSOMON_WRAP_CALL(wchar_t*, __wmemset_chk, (wchar_t * to, wchar_t value, size_t size, size_t room),
                 (to, value, size, room), accesses.store(to, size * sizeof *to))
#define TSOMON_WIDE_TEXT(NAME, PARAMETERS, ARGUMENTS, FIRST) \
  TSOMON_WRAP(wchar_t*, NAME, PARAMETERS) {                  \
    if (!is_seen()) {                                        \
      return NAME ARGUMENTS;                                 \
    }                                                        \
    Accesses accesses(TSOMON_PC());                          \
    const size_t before = FIRST;                             \
    const size_t size = wcslen(from) + 1;                    \
    wchar_t* const result = NAME ARGUMENTS;                  \
    accesses.load(from, size * sizeof *from);                \
    accesses.store(to + before, size * sizeof *to);          \
    if (before != 0) {                                       \
      accesses.load(to, (before + 1) * sizeof *to);          \
    }                                                        \
    return result;                                           \
  }
TSOMON_WIDE_TEXT(wcscpy, (wchar_t * to, const wchar_t* from), (to, from), 0)
TSOMON_WIDE_TEXT(wcpcpy, (wchar_t * to, const wchar_t* from), (to, from), 0)
TSOMON_WIDE_TEXT(__wcscpy_chk, (wchar_t * to, const wchar_t* from, size_t room), (to, from, room),
                 0)
TSOMON_WIDE_TEXT(wcscat, (wchar_t * to, const wchar_t* from), (to, from), wcslen(to))
TSOMON_WIDE_TEXT(__wcscat_chk, (wchar_t * to, const wchar_t* from, size_t room), (to, from, room),
                 wcslen(to))
TSOMON_WRAP(wchar_t*, wcsncat, (wchar_t * to, const wchar_t* from, size_t most)) {
  if (!is_seen()) {
    return wcsncat(to, from, most);
  }
  Accesses accesses(TSOMON_PC());
  const size_t before = wcslen(to);
  const size_t size = wcsnlen(from, most);
  wchar_t* const result = wcsncat(to, from, most);
  accesses.load(from, (size + (size < most ? 1 : 0)) * sizeof *from);
  accesses.load(to, (before + 1) * sizeof *to);
  accesses.store(to + before, (size + 1) * sizeof *to);
  return result;
}
TSOMON_WRAP_CALL(size_t, wcslen, (const wchar_t* text), (text),
                 accesses.load(text, (result + 1) * sizeof *text))
TSOMON_WRAP_CALL(size_t, wcsnlen, (const wchar_t* text, size_t most), (text, most),
                 accesses.load_text(text, most))
TSOMON_WRAP_CALL(int, wmemcmp, (const wchar_t* a, const wchar_t* b, size_t size), (a, b, size), {
  accesses.load(a, size * sizeof *a);
  accesses.load(b, size * sizeof *b);
})
#define TSOMON_WIDE_COMPARE(NAME, PARAMETERS, ARGUMENTS, MOST)    \
  TSOMON_WRAP_CALL(int, NAME, PARAMETERS, ARGUMENTS, {            \
    size_t size = 0;                                              \
    while (size < (MOST) && a[size] == b[size] && a[size] != 0) { \
      ++size;                                                     \
    }                                                             \
    size += size < (MOST) ? 1 : 0;                                \
    accesses.load(a, size * sizeof *a);                           \
    accesses.load(b, size * sizeof *b);                           \
  })
TSOMON_WIDE_COMPARE(wcscmp, (const wchar_t* a, const wchar_t* b), (a, b), kNoBound)
TSOMON_WIDE_COMPARE(wcsncmp, (const wchar_t* a, const wchar_t* b, size_t most), (a, b, most), most)
#define TSOMON_WIDE_FIND(NAME, PARAMETERS, ARGUMENTS, SIZE) \
  TSOMON_WRAP(wchar_t*, NAME, PARAMETERS) {                 \
    if (!is_seen()) {                                       \
      return const_cast<wchar_t*>(NAME ARGUMENTS);          \
    }                                                       \
    Accesses accesses(TSOMON_PC());                         \
    const wchar_t* const result = NAME ARGUMENTS;           \
    accesses.load(text, (SIZE) * sizeof *text);             \
    return const_cast<wchar_t*>(result);                    \
  }
TSOMON_WIDE_FIND(wcschr, (const wchar_t* text, wchar_t what), (text, what),
                 result != nullptr ? static_cast<size_t>(result - text) + 1 : wcslen(text) + 1)
TSOMON_WIDE_FIND(wcsrchr, (const wchar_t* text, wchar_t what), (text, what), wcslen(text) + 1)
TSOMON_WIDE_FIND(wmemchr, (const wchar_t* text, wchar_t what, size_t size), (text, what, size),
                 result != nullptr ? static_cast<size_t>(result - text) + 1 : size)
TSOMON_WRAP(wchar_t*, wcsstr, (const wchar_t* text, const wchar_t* what)) {
  if (!is_seen()) {
    return const_cast<wchar_t*>(wcsstr(text, what));
  }
  Accesses accesses(TSOMON_PC());
  const wchar_t* const result = wcsstr(text, what);
  accesses.load_text(text);
  accesses.load_text(what);
  return const_cast<wchar_t*>(result);
}
