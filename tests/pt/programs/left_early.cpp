// Functions that are left by longjmp and by exceptions, and stretches between markers.
#include <csetjmp>
#include <stdexcept>

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define MARKER(name) DTRACE_PROBE(left_early, name)
#else
#define MARKER(name)
#endif

#include "traced.h"

static std::jmp_buf before_trace;
static std::jmp_buf in_trace;
static volatile long shared;
static volatile long after;
static volatile long marked;

static constexpr unsigned long kBegin = 0x7457a00000000001;
static constexpr unsigned long kEnd = 0x7457a00000000002;

__attribute__((noinline)) static void deeper(int how) {
  shared = shared + 1;
  if (how == 1) {
    std::longjmp(before_trace, 1);
  }
  if (how == 2) {
    std::longjmp(in_trace, 1);
  }
  if (how == 3) {
    throw std::runtime_error("left");
  }
  shared = shared + 2;
}

extern "C" __attribute__((noinline)) void unit_of_work(int how) {
  shared = shared + 3;
  deeper(how);
  shared = shared + 4;
}

__attribute__((noinline)) static void outside() { after = after + 1; }

__attribute__((noinline)) static void catches(int how) {
  try {
    unit_of_work(how);
  } catch (const std::exception&) {
    outside();
  }
  outside();
}

__attribute__((noinline)) static void jumps() {
  if (setjmp(in_trace) == 0) {
    unit_of_work(2);
  }
  after = after + 2;
  outside();
}

int main() {  // NOLINT(bugprone-exception-escape): only within catches()
  volatile int round = 0;
  catches(3);  // finds what the unwinder needs for the first time
  if (setjmp(before_trace) == 0) {
    begin_trace();
  }
  outside();
  while (round < 60) {
    round = round + 1;
    after = after + 3;
    TRACE_VALUE(kBegin);
    MARKER(begin);
    marked = marked + round;
    MARKER(end);
    TRACE_VALUE(kEnd);
    if (round % 5 == 1) {
      jumps();
    } else if (round % 5 == 2) {
      unit_of_work(1);
    } else if (round == 58) {
      catches(3);
    } else {
      catches(0);
    }
  }
  end_trace();
  return 0;
}
