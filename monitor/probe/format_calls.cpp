// printf, scanf and their relatives: strings that they print, text that they write or read, objects
// that they fill in (library_calls.h).
//
// Misses      Formats with numbered arguments (%1$s) and with conversions that the program registered:
//             only the format itself and what is written are recorded. What a stream keeps for itself.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "monitor/probe/library_calls.h"
#include "monitor/probe/streams.h"

using namespace tsomon::probe;
namespace explore = tsomon::explore;

extern "C" {
int __vsprintf_chk(char* to, int flag, size_t room, const char* format, va_list arguments);
int __vsnprintf_chk(char* to, size_t most, int flag, size_t room, const char* format,
                    va_list arguments);
int __vasprintf_chk(char** to, int flag, const char* format, va_list arguments);
int __vfprintf_chk(FILE* stream, int flag, const char* format, va_list arguments);
int __isoc99_vsscanf(const char* text, const char* format, va_list arguments);
int __isoc99_vfscanf(FILE* stream, const char* format, va_list arguments);
}

namespace {

// A conversion of a format: what is between % and its letter.
struct Conversion {
  char letter = 0;  // 0: none that is known
  int longs = 0;    // l, ll, L, j, z, t, q: at least 1; ll, L, q: 2
  int shorts = 0;
  bool wide_is_long_double = false;
  bool star_width = false;
  bool star_precision = false;
  bool has_precision = false;
  bool discards = false;   // scanf: '*'
  bool allocates = false;  // scanf: 'm'
  long width = -1;
  long precision = 0;
};

// Behind the '%'; returns the place behind the letter.
const char* read_conversion(const char* at, bool scans, Conversion* into) {
  if (scans && *at == '*') {
    into->discards = true;
    ++at;
  }
  while (!scans && *at != 0 && strchr("-+ #0'I", *at) != nullptr) {
    ++at;
  }
  if (!scans && *at == '*') {
    into->star_width = true;
    ++at;
  }
  char* end = nullptr;
  if (*at >= '0' && *at <= '9') {
    into->width = strtol(at, &end, 10);
    at = end;
  }
  if (*at == '.') {
    into->has_precision = true;
    ++at;
    if (*at == '*') {
      into->star_precision = true;
      ++at;
    } else {
      into->precision = strtol(at, &end, 10);
      at = end;
    }
  }
  for (;; ++at) {
    if (*at == 'l' || *at == 'j' || *at == 'z' || *at == 't') {
      ++into->longs;
    } else if (*at == 'L' || *at == 'q') {
      into->longs = 2;
      into->wide_is_long_double = true;
    } else if (*at == 'h') {
      ++into->shorts;
    } else if (*at == 'm' && scans) {
      into->allocates = true;
    } else {
      break;
    }
  }
  if (*at == 0 || *at == '$') {
    return nullptr;
  }
  into->letter = *at++;
  return at;
}

// What the conversions read, and %n writes.
void note_printed(Accesses& accesses, const char* format, va_list arguments) {
  accesses.load_text(format);
  for (const char* at = strchr(format, '%'); at != nullptr; at = strchr(at, '%')) {
    if (at[1] == '%') {
      at += 2;
      continue;
    }
    Conversion is;
    at = read_conversion(at + 1, false, &is);
    if (at == nullptr) {
      return;
    }
    if (is.star_width) {
      va_arg(arguments, int);
    }
    if (is.star_precision) {
      is.precision = va_arg(arguments, int);
      is.has_precision = is.precision >= 0;
    }
    switch (is.letter) {
      case 'd':
      case 'i':
      case 'o':
      case 'u':
      case 'x':
      case 'X':
        is.longs != 0 ? va_arg(arguments, long) : va_arg(arguments, int);
        break;
      case 'c':
      case 'C':
        va_arg(arguments, int);
        break;
      case 'a':
      case 'A':
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (is.wide_is_long_double) {
          va_arg(arguments, long double);
        } else {
          va_arg(arguments, double);
        }
        break;
      case 'p':
        va_arg(arguments, void*);
        break;
      case 's':
      case 'S':
        if (const auto* const text = va_arg(arguments, const char*); text != nullptr) {
          const size_t most = is.has_precision ? static_cast<size_t>(is.precision) : kNoBound;
          if (is.letter == 'S' || is.longs != 0) {
            accesses.load_text(reinterpret_cast<const wchar_t*>(text), most);
          } else {
            accesses.load_text(text, most);
          }
        }
        break;
      case 'n':
        accesses.store(va_arg(arguments, void*), is.longs != 0    ? 8
                                                 : is.shorts == 0 ? 4
                                                 : is.shorts == 1 ? 2
                                                                  : 1);
        break;
      case 'm':
        break;
      default:
        return;
    }
  }
}

// What `count` conversions wrote.
void note_scanned(Accesses& accesses, const char* format, int count, va_list arguments) {
  accesses.load_text(format);
  for (const char* at = strchr(format, '%'); at != nullptr && count > 0; at = strchr(at, '%')) {
    if (at[1] == '%') {
      at += 2;
      continue;
    }
    Conversion is;
    at = read_conversion(at + 1, true, &is);
    if (at == nullptr) {
      return;
    }
    if (is.letter == '[') {
      at = strchr(*at == '^' ? at + 2 : at + 1, ']');
      if (at == nullptr) {
        return;
      }
      ++at;
    }
    if (is.discards) {
      continue;
    }
    void* const to = va_arg(arguments, void*);
    const bool wide = is.longs != 0;
    switch (is.letter) {
      case 'd':
      case 'i':
      case 'o':
      case 'u':
      case 'x':
      case 'X':
      case 'n':
        accesses.store(to, wide ? 8 : is.shorts == 0 ? 4 : is.shorts == 1 ? 2 : 1);
        count -= is.letter == 'n' ? 0 : 1;
        break;
      case 'a':
      case 'e':
      case 'f':
      case 'g':
      case 'E':
      case 'G':
        accesses.store(to, is.wide_is_long_double ? sizeof(long double) : wide ? 8 : 4);
        --count;
        break;
      case 'p':
        accesses.store(to, sizeof(void*));
        --count;
        break;
      case 'c':
      case 's':
      case '[':
        if (is.allocates) {
          accesses.store(to, sizeof(void*));
        } else if (is.letter == 'c') {
          accesses.store(
              to, static_cast<size_t>(is.width < 0 ? 1 : is.width) * (wide ? sizeof(wchar_t) : 1));
        } else {
          accesses.store(to, wide ? (wcslen(static_cast<wchar_t*>(to)) + 1) * sizeof(wchar_t)
                                  : strlen(static_cast<char*>(to)) + 1);
        }
        --count;
        break;
      default:
        return;
    }
  }
}

// The call, then what it read and wrote. `to`: the text with its end, `room` at most.
template <typename Call>
int print(char* to, size_t room, const char* format, va_list arguments, uint64_t pc, Call call) {
  if (!is_seen()) {
    return call(to);
  }
  if (TSOMON_UNLIKELY(explore::active) && explore::is_concurrent() && to != nullptr && room != 0) {
    // What it prints is read in one step for each string, and written step by step.
    const size_t most = room < 65536 ? room : 65536;
    char small[1024];
    char* const own =
        most <= sizeof small ? small : static_cast<char*>(explore::allocate(most, 16));
    if (own != nullptr) {
      Accesses accesses(pc);
      note_printed(accesses, format, arguments);
      const int size = call(own);
      if (size >= 0) {
        const size_t written =
            static_cast<size_t>(size) < room ? static_cast<size_t>(size) + 1 : room;
        explored_store(to, own, written, pc);
      }
      return size;
    }
  }
  Accesses accesses(pc);
  const int size = call(to);
  note_printed(accesses, format, arguments);
  if (to != nullptr && size >= 0 && room != 0) {
    accesses.store(to, static_cast<size_t>(size) < room ? static_cast<size_t>(size) + 1 : room);
  }
  return size;
}
template <typename Call>
int print_allocated(char** to, const char* format, va_list arguments, uint64_t pc, Call call) {
  if (!is_seen()) {
    return call();
  }
  Accesses accesses(pc);
  const int size = call();
  note_printed(accesses, format, arguments);
  accesses.store(to, sizeof *to);
  if (size >= 0) {
    accesses.store(*to, static_cast<size_t>(size) + 1);
  }
  return size;
}
template <typename Call>
int print_to(FILE* stream, const char* format, va_list arguments, uint64_t pc, Call call) {
  if (!is_seen()) {
    return call();
  }
  return writes_stream(stream, pc, call,
                       [&](Accesses& accesses, int) { note_printed(accesses, format, arguments); });
}
template <typename Call>
int scan_from(FILE* stream, const char* format, va_list arguments, uint64_t pc, Call call) {
  if (!is_seen()) {
    return call();
  }
  return reads_stream(stream, pc, call, [&](Accesses& accesses, int count) {
    note_scanned(accesses, format, count, arguments);
  });
}
template <typename Call>
int scan(const char* text, const char* format, va_list arguments, uint64_t pc, Call call) {
  if (!is_seen()) {
    return call();
  }
  Accesses accesses(pc);
  const int count = call();
  accesses.load_text(text);
  note_scanned(accesses, format, count, arguments);
  return count;
}

}  // namespace

// A function with a va_list and one with the arguments themselves.
#define TSOMON_FORMAT(NAME, VNAME, PARAMETERS, LAST, LOOK)                \
  TSOMON_WRAP(int, VNAME, (TSOMON_STRIP PARAMETERS, va_list arguments)) { \
    va_list more;                                                         \
    va_copy(more, arguments);                                             \
    const int result = LOOK;                                              \
    va_end(more);                                                         \
    return result;                                                        \
  }                                                                       \
  TSOMON_WRAP(int, NAME, (TSOMON_STRIP PARAMETERS, ...)) {                \
    va_list arguments;                                                    \
    va_start(arguments, LAST);                                            \
    va_list more;                                                         \
    va_start(more, LAST);                                                 \
    const int result = LOOK;                                              \
    va_end(more);                                                         \
    va_end(arguments);                                                    \
    return result;                                                        \
  }
#define TSOMON_STRIP(...) __VA_ARGS__
#define TSOMON_PRINT(TO, ROOM, CALL)                          \
  print(TO, ROOM, format, more, TSOMON_PC(), [&](char* own) { \
    (void)own;                                                \
    return CALL;                                              \
  })

TSOMON_FORMAT(sprintf, vsprintf, (char* to, const char* format), format,
              TSOMON_PRINT(to, kNoBound, vsprintf(own, format, arguments)))
TSOMON_FORMAT(snprintf, vsnprintf, (char* to, size_t most, const char* format), format,
              TSOMON_PRINT(to, most, vsnprintf(own, most, format, arguments)))
TSOMON_FORMAT(__sprintf_chk, __vsprintf_chk, (char* to, int flag, size_t room, const char* format),
              format, TSOMON_PRINT(to, room, __vsprintf_chk(own, flag, room, format, arguments)))
TSOMON_FORMAT(__snprintf_chk, __vsnprintf_chk,
              (char* to, size_t most, int flag, size_t room, const char* format), format,
              TSOMON_PRINT(to, most, __vsnprintf_chk(own, most, flag, room, format, arguments)))
#define TSOMON_PRINT_TO(STREAM, CALL) \
  print_to(STREAM, format, more, TSOMON_PC(), [&] { return CALL; })
TSOMON_FORMAT(printf, vprintf, (const char* format), format,
              TSOMON_PRINT_TO(stdout, vprintf(format, arguments)))
TSOMON_FORMAT(fprintf, vfprintf, (FILE * stream, const char* format), format,
              TSOMON_PRINT_TO(stream, vfprintf(stream, format, arguments)))
TSOMON_FORMAT(__printf_chk, __vprintf_chk, (int flag, const char* format), format,
              TSOMON_PRINT_TO(stdout, __vfprintf_chk(stdout, flag, format, arguments)))
TSOMON_FORMAT(__fprintf_chk, __vfprintf_chk, (FILE * stream, int flag, const char* format), format,
              TSOMON_PRINT_TO(stream, __vfprintf_chk(stream, flag, format, arguments)))

#define TSOMON_ALLOCATED(CALL) print_allocated(to, format, more, TSOMON_PC(), [&] { return CALL; })
TSOMON_FORMAT(asprintf, vasprintf, (char** to, const char* format), format,
              TSOMON_ALLOCATED(vasprintf(to, format, arguments)))
TSOMON_FORMAT(__asprintf_chk, __vasprintf_chk, (char** to, int flag, const char* format), format,
              TSOMON_ALLOCATED(__vasprintf_chk(to, flag, format, arguments)))

#define TSOMON_SCAN(CALL) scan(text, format, more, TSOMON_PC(), [&] { return CALL; })
TSOMON_FORMAT(sscanf, vsscanf, (const char* text, const char* format), format,
              TSOMON_SCAN(vsscanf(text, format, arguments)))
TSOMON_FORMAT(__isoc99_sscanf, __isoc99_vsscanf, (const char* text, const char* format), format,
              TSOMON_SCAN(__isoc99_vsscanf(text, format, arguments)))
#define TSOMON_SCAN_FROM(STREAM, CALL) \
  scan_from(STREAM, format, more, TSOMON_PC(), [&] { return CALL; })
TSOMON_FORMAT(scanf, vscanf, (const char* format), format,
              TSOMON_SCAN_FROM(stdin, vscanf(format, arguments)))
TSOMON_FORMAT(__isoc99_scanf, __isoc99_vscanf, (const char* format), format,
              TSOMON_SCAN_FROM(stdin, __isoc99_vfscanf(stdin, format, arguments)))
TSOMON_FORMAT(fscanf, vfscanf, (FILE * stream, const char* format), format,
              TSOMON_SCAN_FROM(stream, vfscanf(stream, format, arguments)))
TSOMON_FORMAT(__isoc99_fscanf, __isoc99_vfscanf, (FILE * stream, const char* format), format,
              TSOMON_SCAN_FROM(stream, __isoc99_vfscanf(stream, format, arguments)))
