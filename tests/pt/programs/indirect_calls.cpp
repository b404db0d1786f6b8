// Virtual functions, function pointers and a jump table.
#include <memory>

#include "traced.h"

static uint64_t totals[4];

struct Shape {
  virtual ~Shape() = default;
  virtual uint64_t area(uint64_t a) const = 0;
};
struct Square : Shape {
  uint64_t area(uint64_t a) const override { return a * a; }
};
struct Line : Shape {
  uint64_t area(uint64_t) const override { return ++totals[3]; }
};

static uint64_t twice(uint64_t a) { return 2 * a; }
static uint64_t half(uint64_t a) { return a / 2; }
static uint64_t (*const volatile functions[2])(uint64_t) = {twice, half};

__attribute__((noinline)) static void choose(uint64_t a) {
  switch (a % 7) {
    case 0:
      totals[0] += 3;
      break;
    case 1:
      totals[1] += 5;
      break;
    case 2:
      totals[2] += a;
      break;
    case 3:
      totals[1] ^= a;
      break;
    case 4:
      totals[0] -= a;
      break;
    case 5:
      ++totals[2];
      break;
    default:
      break;
  }
}

int main() {
  const std::unique_ptr<Shape> shapes[2] = {std::make_unique<Square>(), std::make_unique<Line>()};
  begin_trace();
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 800; ++i) {
    sum += shapes[(i * 5 + i / 3) % 2]->area(i);
    sum += functions[i * i % 3 % 2](i);
    choose(i * 3 + sum % 2);
    TRACE_VALUE(sum);
  }
  end_trace();
  return sum == 0;
}
