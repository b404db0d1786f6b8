// What a function does with a lock, by its name (options lock= and --lock).
//
// Rules       `unlock` or `release` in the name: it releases. Else it acquires; with `try` as a word
//             (at the beginning, behind what is no letter, or as Try behind a small letter) where
//             it returns non-zero. With `shared`, it does so as one reader of several.
//             What follows the last :: outside of template arguments counts, in any case.
// Thread-safety: pure functions; no allocation.
#pragma once

#include <cstring>

namespace tsomon::probe {

struct LockName {
  bool releases = false;
  bool tries = false;
  bool shared = false;
};

namespace lock_names {

inline bool is_small(char c) { return c >= 'a' && c <= 'z'; }
inline char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline const char* find(const char* text, const char* word) {
  const size_t length = std::strlen(word);
  for (; *text != '\0'; ++text) {
    size_t same = 0;
    while (same < length && small(text[same]) == word[same]) {
      ++same;
    }
    if (same == length) {
      return text;
    }
  }
  return nullptr;
}

inline bool tries(const char* name) {
  for (const char* at = name; (at = find(at, "try")) != nullptr; ++at) {
    if (at == name || !is_small(small(at[-1])) || (*at == 'T' && is_small(at[-1]))) {
      return true;
    }
  }
  return false;
}

inline const char* last_part(const char* name) {
  const char* last = name;
  int open = 0;
  for (const char* at = name; *at != '\0'; ++at) {
    open += *at == '<' ? 1 : *at == '>' ? -1 : 0;
    if (open == 0 && at[0] == ':' && at[1] == ':') {
      last = at + 2;
    }
  }
  return last;
}

}  // namespace lock_names

// `name`: demangled, without parameters.
inline LockName lock_name(const char* name) {
  const char* const last = lock_names::last_part(name);
  LockName result;
  result.releases =
      lock_names::find(last, "unlock") != nullptr || lock_names::find(last, "release") != nullptr;
  result.tries =
      !result.releases && (lock_names::tries(last) || lock_names::find(last, "trylock") != nullptr);
  result.shared = lock_names::find(last, "shared") != nullptr;
  return result;
}

}  // namespace tsomon::probe
