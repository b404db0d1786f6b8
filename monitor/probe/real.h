// The functions that the runtime stands in front of: real_NAME calls the next definition.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

namespace tsomon::probe {

// The symbol's next definition after the executable; ends the program when there is none.
void* next_definition(const char* name, const char* version);

}  // namespace tsomon::probe

// VERSION: of glibc's symbol where it has an old one of another meaning, else nullptr. next_NAME()
// looks it up, once.
#define TSOMON_REAL_VERSION(NAME, VERSION)                                             \
  namespace tsomon::probe {                                                            \
  inline decltype(&::NAME) next_##NAME() {                                             \
    static decltype(&::NAME) function = nullptr;                                       \
    if (__builtin_expect(function == nullptr, 0)) {                                    \
      function = reinterpret_cast<decltype(&::NAME)>(next_definition(#NAME, VERSION)); \
    }                                                                                  \
    return function;                                                                   \
  }                                                                                    \
  template <typename... Arguments>                                                     \
  inline auto real_##NAME(Arguments... arguments) {                                    \
    return next_##NAME()(arguments...);                                                \
  }                                                                                    \
  }
#define TSOMON_REAL(NAME) TSOMON_REAL_VERSION(NAME, nullptr)

// Programs that bring a function of their own call what stands in front of the library's by this name,
// which ThreadSanitizer gives it. After its definition.
#if defined(__has_attribute) && __has_attribute(copy)
#define TSOMON_ATTRIBUTES_OF(NAME) __attribute__((copy(NAME)))
#else
#define TSOMON_ATTRIBUTES_OF(NAME)
#endif
#define TSOMON_INTERCEPTOR(NAME)                        \
  extern "C" TSOMON_ATTRIBUTES_OF(NAME) __attribute__(( \
      alias(#NAME), weak, used, visibility("default"))) decltype(::NAME) __interceptor_##NAME;

TSOMON_REAL(pthread_create)
TSOMON_REAL(pthread_join)
TSOMON_REAL(pthread_sigmask)
