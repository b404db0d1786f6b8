#include "tests/dormant/library.h"

long library_word = 0;

namespace {
__attribute__((noinline)) long helper(long n) {
  library_word += n;
  return library_word;
}
}  // namespace

long in_library(long n) { return helper(n) + helper(1) + library_counted(); }

// It keeps addresses of labels in static data.
long interprets_in_library(long n) {
  static const void* const kOperations[] = {&&more, &&done};
  goto* kOperations[n > 3 ? 1 : 0];
more:
  ++library_word;
done:
  return library_word;
}

bool in_library_by(void (*function)(long)) {
  function(2);
  return function != nullptr;
}
