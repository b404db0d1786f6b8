// Functions that are left in every way there is: plain_jumps ROUNDS
//
// By returns, recursively; by exceptions; by longjmp, out of two at once; by a jump into another
// function at their end. Leaves time to attach first.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#ifdef __clang__
#define UNIT __attribute__((noinline)) void
#else
#define UNIT __attribute__((noinline, noclone)) void
#endif

volatile long jumps_total = 0;
std::jmp_buf outside;

UNIT unit_recursive(int depth);
UNIT unit_last(int amount);
// Calls that the compiler does not look through.
void (*volatile recursive)(int) = unit_recursive;
void (*volatile last)(int) = unit_last;

UNIT unit_recursive(int depth) {
  jumps_total = jumps_total + 1;
  if (depth != 0) {
    recursive(depth - 1);
  }
  jumps_total = jumps_total + 1;
}

UNIT unit_throwing(int amount) {
  jumps_total = jumps_total + amount;
  throw amount;
}

UNIT unit_jumping(int amount) {
  jumps_total = jumps_total + amount;
  std::longjmp(outside, 1);
}

UNIT unit_around(int amount) {
  unit_jumping(amount);
  jumps_total = 0;  // is never done
}

UNIT unit_last(int amount) { jumps_total = jumps_total + amount; }

UNIT unit_before_last(int amount) {
  jumps_total = jumps_total + amount;
  last(amount);  // its last: a jump
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  usleep(2'000'000);
  for (int round = 0; round < rounds; ++round) {
    unit_recursive(2);
    try {
      unit_throwing(3);
    } catch (int) {
    }
    if (setjmp(outside) == 0) {
      unit_around(5);
    }
    unit_before_last(7);
  }
  std::printf("%ld\n", jumps_total);
  return 0;
}
