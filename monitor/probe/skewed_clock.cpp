#include "monitor/probe/skewed_clock.h"

#include <cstdlib>

#include <sched.h>

#include "monitor/probe/stamp.h"

namespace tsomon::probe {

bool clock_is_skewed = false;

namespace {

constexpr int kMost = 64;  // processors

struct Skew {
  int64_t offset = 0;
  int64_t drift = 0;
  int64_t step = 0;
  int64_t after = 0;  // million cycles
};
Skew skews[kMost];
uint64_t begin = 0;

// Reads a list into `out`, if there is one.
bool parse(const char* text, Skew* out) {
  for (int processor = 0; processor < kMost; ++processor) {
    int64_t numbers[4] = {};
    int count = 0;
    while (*text != ',' && *text != '\0') {
      char* end = nullptr;
      const int64_t number = std::strtoll(text, &end, 10);
      if (end == text || count == 4 || (*end != '/' && *end != ',' && *end != '\0')) {
        return false;
      }
      numbers[count++] = number;
      text = *end == '/' ? end + 1 : end;
      if (*end == '/' && (*text == '\0' || *text == ',')) {
        return false;
      }
    }
    if (out != nullptr) {
      out[processor] = {numbers[0], numbers[1], numbers[2], numbers[3]};
    }
    if (*text == '\0') {
      return true;
    }
    ++text;
  }
  return false;
}

}  // namespace

bool is_skew(const char* text) { return parse(text, nullptr); }

void skew_clock(const char* text) {
  if (text != nullptr && parse(text, skews)) {
    begin = raw_stamp();
    clock_is_skewed = true;
  }
}

uint64_t skewed_stamp() {
  for (;;) {
    const int processor = sched_getcpu();
    const uint64_t now = raw_stamp();
    // Else the thread was moved in between.
    if (processor != sched_getcpu()) {
      continue;
    }
    if (processor < 0 || processor >= kMost) {
      return now;
    }
    const Skew& skew = skews[processor];
    const auto passed = static_cast<int64_t>(now - begin) / 1'000'000;
    const int64_t step = passed >= skew.after ? skew.step : 0;
    return now + static_cast<uint64_t>(skew.offset + skew.drift * passed + step);
  }
}

}  // namespace tsomon::probe
