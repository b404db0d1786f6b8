#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#if defined(__SANITIZE_THREAD__)
// The queue orders its cells by atomic_thread_fence, which ThreadSanitizer does not know.
extern "C" const char* __tsan_default_suppressions();   // NOLINT
extern "C" const char* __tsan_default_suppressions() {  // NOLINT
  return "race:moodycamel::ConcurrentQueue\n";
}
#endif
