// Functions of the C library that copy strings (library_calls.h).
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "monitor/probe/library_calls.h"

using namespace tsomon::probe;
namespace explore = tsomon::explore;

extern "C" {
char* __strcpy_chk(char* to, const char* from, size_t room);
char* __stpcpy_chk(char* to, const char* from, size_t room);
char* __strncpy_chk(char* to, const char* from, size_t most, size_t room);
char* __stpncpy_chk(char* to, const char* from, size_t most, size_t room);
char* __strcat_chk(char* to, const char* from, size_t room);
char* __strncat_chk(char* to, const char* from, size_t most, size_t room);
char* __stpcpy(char* to, const char* from);
char* __strdup(const char* from);
char* __strtok_r(char* text, const char* ends, char** rest);
}

namespace {

// Copies the string, or `most` characters of it, with an end where `ends`; `fills`: zeros up to `most` behind it.
// Returns where the end is. In a program under control, too.
__attribute__((noinline)) char* copy_text(char* to, const char* from, size_t most, bool ends,
                                          bool fills, uint64_t pc) {
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own(from, most, true, pc);
    const size_t size = strnlen(own.at(), most);
    explored_store(to, own.at(), size, pc);
    const size_t zeros = fills ? most - size : (ends ? 1 : 0);
    if (zeros != 0 && !explore::fill(to + size, 0, zeros, pc)) {
      memset(to + size, 0, zeros);
    }
    return to + size;
  }
  const size_t size = strnlen(from, most);
  const size_t read = size + (size < most ? 1 : 0);
  const size_t written = fills ? most : size + (ends ? 1 : 0);
  if (read == written) {
    put_copy(to, from, read, pc);
  } else {
    put_range(RecordType::kRead, from, read, pc);
    put_range(RecordType::kWrite, to, written, pc);
  }
  memmove(to, from, size);
  memset(to + size, 0, written - size);
  return to + size;
}

char* append_text(char* to, const char* from, size_t most, uint64_t pc) {
  const Unrecorded reads;
  size_t before = 0;
  if (TSOMON_UNLIKELY(explore::active)) {
    before = strlen(Explored(const_cast<const char*>(to), kNoBound, true, pc).at());
  } else {
    before = strlen(to);
    put_range(RecordType::kRead, to, before + 1, pc);
  }
  copy_text(to + before, from, most, true, false, pc);
  return to;
}

char* duplicate(const char* from, size_t most, uint64_t pc) {
  size_t size = 0;
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own(from, most, true, pc);
    size = strnlen(own.at(), most);
    auto* const to = static_cast<char*>(malloc(size + 1));
    if (to != nullptr) {
      explored_store(to, own.at(), size, pc);
      explored_store(to + size, "", 1, pc);
    }
    return to;
  }
  const Unrecorded reads;
  size = strnlen(from, most);
  auto* const to = static_cast<char*>(malloc(size + 1));
  if (to != nullptr) {
    copy_text(to, from, size, true, false, pc);
    if (size < most) {
      put_range(RecordType::kRead, from + size, 1, pc);
    }
  }
  return to;
}

}  // namespace

#define TSOMON_UNLESS_SEEN(CALL) \
  if (!is_seen()) {              \
    return CALL;                 \
  }

TSOMON_WRAP(char*, strcpy, (char* to, const char* from)) {
  TSOMON_UNLESS_SEEN(strcpy(to, from))
  copy_text(to, from, kNoBound, true, false, TSOMON_PC());
  return to;
}
TSOMON_WRAP(char*, stpcpy, (char* to, const char* from)) {
  TSOMON_UNLESS_SEEN(stpcpy(to, from))
  return copy_text(to, from, kNoBound, true, false, TSOMON_PC());
}
TSOMON_WRAP(char*, __stpcpy, (char* to, const char* from)) {
  TSOMON_UNLESS_SEEN(stpcpy(to, from))
  return copy_text(to, from, kNoBound, true, false, TSOMON_PC());
}
TSOMON_WRAP(char*, strncpy, (char* to, const char* from, size_t most)) {
  TSOMON_UNLESS_SEEN(strncpy(to, from, most))
  copy_text(to, from, most, false, true, TSOMON_PC());
  return to;
}
TSOMON_WRAP(char*, stpncpy, (char* to, const char* from, size_t most)) {
  TSOMON_UNLESS_SEEN(stpncpy(to, from, most))
  return copy_text(to, from, most, false, true, TSOMON_PC());
}
TSOMON_WRAP(char*, strcat, (char* to, const char* from)) {
  TSOMON_UNLESS_SEEN(strcat(to, from))
  return append_text(to, from, kNoBound, TSOMON_PC());
}
TSOMON_WRAP(char*, strncat, (char* to, const char* from, size_t most)) {
  TSOMON_UNLESS_SEEN(strncat(to, from, most))
  return append_text(to, from, most, TSOMON_PC());
}
// What does not fit is the library's to report.
TSOMON_WRAP(char*, __strcpy_chk, (char* to, const char* from, size_t room)) {
  if (!is_seen() || strlen(from) >= room) {
    return __strcpy_chk(to, from, room);
  }
  copy_text(to, from, kNoBound, true, false, TSOMON_PC());
  return to;
}
TSOMON_WRAP(char*, __stpcpy_chk, (char* to, const char* from, size_t room)) {
  if (!is_seen() || strlen(from) >= room) {
    return __stpcpy_chk(to, from, room);
  }
  return copy_text(to, from, kNoBound, true, false, TSOMON_PC());
}
TSOMON_WRAP(char*, __strncpy_chk, (char* to, const char* from, size_t most, size_t room)) {
  if (!is_seen() || most > room) {
    return __strncpy_chk(to, from, most, room);
  }
  copy_text(to, from, most, false, true, TSOMON_PC());
  return to;
}
TSOMON_WRAP(char*, __stpncpy_chk, (char* to, const char* from, size_t most, size_t room)) {
  if (!is_seen() || most > room) {
    return __stpncpy_chk(to, from, most, room);
  }
  return copy_text(to, from, most, false, true, TSOMON_PC());
}
TSOMON_WRAP(char*, __strcat_chk, (char* to, const char* from, size_t room)) {
  if (!is_seen() || strlen(to) + strlen(from) >= room) {
    return __strcat_chk(to, from, room);
  }
  return append_text(to, from, kNoBound, TSOMON_PC());
}
TSOMON_WRAP(char*, __strncat_chk, (char* to, const char* from, size_t most, size_t room)) {
  if (!is_seen() || strlen(to) + strnlen(from, most) >= room) {
    return __strncat_chk(to, from, most, room);
  }
  return append_text(to, from, most, TSOMON_PC());
}

TSOMON_WRAP(char*, strdup, (const char* from)) {
  TSOMON_UNLESS_SEEN(strdup(from))
  return duplicate(from, kNoBound, TSOMON_PC());
}
TSOMON_WRAP(char*, __strdup, (const char* from)) {
  TSOMON_UNLESS_SEEN(strdup(from))
  return duplicate(from, kNoBound, TSOMON_PC());
}
TSOMON_WRAP(char*, strndup, (const char* from, size_t most)) {
  TSOMON_UNLESS_SEEN(strndup(from, most))
  return duplicate(from, most, TSOMON_PC());
}

TSOMON_WRAP(size_t, strxfrm, (char* to, const char* from, size_t room)) {
  TSOMON_UNLESS_SEEN(strxfrm(to, from, room))
  Accesses accesses(TSOMON_PC());
  const size_t size = strxfrm(to, from, room);
  accesses.load_text(from);
  accesses.store(to, size < room ? size + 1 : 0);
  return size;
}

// strtok and its relatives: a word ends where the first character of `ends` was, which becomes 0.
namespace {

// Begins where it is told; keeps where it goes on (nullptr: at an end).
__attribute__((noinline)) char* next_word(char* text, const char* ends, bool skips, char** rest,
                                          uint64_t pc) {
  if (text == nullptr) {
    *rest = nullptr;
    return nullptr;
  }
  const Explored own(const_cast<const char*>(text), kNoBound, true, pc);
  const Explored own_ends(ends, kNoBound, true, pc);
  const size_t before = skips ? strspn(own.at(), own_ends.at()) : 0;
  const size_t size = strcspn(own.at() + before, own_ends.at());
  char* const word = text + before;
  if (TSOMON_LIKELY(!explore::active)) {
    Accesses accesses(pc);
    accesses.load(text, before + size + 1);
    accesses.load_text(ends);
  }
  if (skips && size == 0) {
    *rest = word;
    return nullptr;
  }
  if (own.at()[before + size] == 0) {
    *rest = skips ? word + size : nullptr;
  } else {
    if (TSOMON_LIKELY(!explore::active)) {
      put_range(RecordType::kWrite, word + size, 1, pc);
      word[size] = 0;
    } else {
      explored_store(word + size, "", 1, pc);
    }
    *rest = word + size + 1;
  }
  return word;
}

// `rest` is the program's.
char* next_word_of(char* text, const char* ends, bool skips, char** rest, uint64_t pc) {
  char* now = text;
  if (now == nullptr || !skips) {
    if (TSOMON_UNLIKELY(explore::active)) {
      if (explore::is_concurrent()) {
        explore::load_copy(&now, rest, sizeof now, pc);
      } else {
        now = *rest;
      }
    } else {
      put_range(RecordType::kRead, rest, sizeof *rest, pc);
      now = *rest;
    }
  }
  char* next = nullptr;
  char* const word = next_word(now, ends, skips, &next, pc);
  if (TSOMON_UNLIKELY(explore::active)) {
    explored_store(rest, &next, sizeof next, pc);
  } else {
    put_range(RecordType::kWrite, rest, sizeof *rest, pc);
    *rest = next;
  }
  return word;
}

// Where strtok goes on: one for all threads, as in the library.
char* strtok_rest = nullptr;

}  // namespace

TSOMON_WRAP(char*, strtok, (char* text, const char* ends)) {
  if (!is_seen()) {
    return strtok_r(text, ends, &strtok_rest);
  }
  return next_word_of(text, ends, true, &strtok_rest, TSOMON_PC());
}
TSOMON_WRAP(char*, strtok_r, (char* text, const char* ends, char** rest)) {
  TSOMON_UNLESS_SEEN(strtok_r(text, ends, rest))
  return next_word_of(text, ends, true, rest, TSOMON_PC());
}
TSOMON_WRAP(char*, __strtok_r, (char* text, const char* ends, char** rest)) {
  TSOMON_UNLESS_SEEN(strtok_r(text, ends, rest))
  return next_word_of(text, ends, true, rest, TSOMON_PC());
}
TSOMON_WRAP(char*, strsep, (char** rest, const char* ends)) {
  TSOMON_UNLESS_SEEN(strsep(rest, ends))
  return next_word_of(nullptr, ends, false, rest, TSOMON_PC());
}

TSOMON_WRAP(void*, memccpy, (void* to, const void* from, int end, size_t size)) {
  TSOMON_UNLESS_SEEN(memccpy(to, from, end, size))
  const uint64_t pc = TSOMON_PC();
  if (TSOMON_UNLIKELY(explore::active)) {
    const Explored own(static_cast<const char*>(from), size, false, pc);
    const void* const found = memchr(own.at(), end, size);
    const size_t copied = found == nullptr
                              ? size
                              : static_cast<size_t>(static_cast<const char*>(found) - own.at()) + 1;
    explored_store(to, own.at(), copied, pc);
    return found == nullptr ? nullptr : static_cast<char*>(to) + copied;
  }
  const auto* const found = static_cast<const char*>(memchr(from, end, size));
  const size_t copied =
      found == nullptr ? size : static_cast<size_t>(found - static_cast<const char*>(from)) + 1;
  put_copy(to, from, copied, pc);
  memmove(to, from, copied);
  return found == nullptr ? nullptr : static_cast<char*>(to) + copied;
}
TSOMON_WRAP(void, swab, (const void* from, void* to, ssize_t size)) {
  if (is_seen() && size > 1) {
    put_copy(to, from, static_cast<size_t>(size) / 2 * 2, TSOMON_PC());
  }
  swab(from, to, size);
}
