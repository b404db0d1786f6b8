// Units from function names.
#include <csetjmp>
#include <stdexcept>

int sum;
jmp_buf back;

namespace Pool {
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

int main() {
  static int i;  // keeps its value across longjmp
  for (i = 0; i < 8; ++i) {
    if (setjmp(back) != 0) {
      continue;
    }
    try {
      Pool::outer(i);
    } catch (const std::exception&) {
    }
  }
  return sum == 28 ? 0 : 1;
}
