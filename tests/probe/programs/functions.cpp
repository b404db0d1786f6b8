// Units from function names.
#include <csetjmp>
#include <stdexcept>

#ifndef __clang__
#pragma GCC optimize("O2")  // the exit hook is called by a jump
#endif

int sum;
jmp_buf back;

int last;
__attribute__((noinline)) void helper(int n) { last = n; }

namespace Pool {
__attribute__((noinline)) void with_helper() {
  helper(1);
  last = 2;
}
__attribute__((noinline)) int take(int n) {
  sum += n;
  if (n == 3) {
    throw std::runtime_error("left by an exception");
  }
  if (n == 5) {
    longjmp(back, 1);
  }
  return sum;
}
__attribute__((noinline)) int outer(int n) {
  const int taken = take(n);
  return taken + sum;
}
}  // namespace Pool

namespace {
__attribute__((noinline)) int hidden(int n) { return last = n; }
}  // namespace

int main() {
  static int i;  // keeps its value across longjmp
  hidden(hidden(1) + 1);
  for (i = 0; i < 8; ++i) {
    if (setjmp(back) != 0) {
      continue;
    }
    try {
      Pool::outer(i);
    } catch (const std::exception&) {
    }
  }
  Pool::with_helper();
  return sum == 28 && last == 2 ? 0 : 1;
}
