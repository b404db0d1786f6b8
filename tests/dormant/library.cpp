#include "tests/dormant/library.h"

long library_word = 0;

namespace {
__attribute__((noinline)) long helper(long n) {
  library_word += n;
  return library_word;
}
}  // namespace

long in_library(long n) { return helper(n) + helper(1) + library_counted(); }

bool in_library_by(void (*function)(long)) {
  function(2);
  return function != nullptr;
}
