#include "monitor/probe/process_clock.h"

#include <time.h>

#include "monitor/probe/clock.h"
#include "monitor/probe/clock_meter.h"
#include "monitor/probe/last_stamps.h"
#include "monitor/probe/real.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/skewed_clock.h"

namespace tsomon::probe {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// For each processor. The program waits for the first measurement.
constexpr uint64_t kFirstPatience = kSecond;
constexpr uint64_t kPatience = kSecond / 50;
constexpr uint64_t kLastPatience = kSecond;  // what comes after the one before is not known else
constexpr uint64_t kLongestPause = 8 * kSecond;
constexpr uint64_t kShare = 1000;

constinit ClockMeter meter;
capture::ClockEntry entry;
bool measured = false;
uint64_t widest = 0;       // margin so far
uint64_t allowed = 0;      // for a later one
uint64_t pause = kSecond;  // nanoseconds between measurements
uint64_t next = 0;         // CLOCK_MONOTONIC

uint64_t nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
           void* argument) {
  return real_pthread_create(thread, attributes, routine, argument);
}
uint64_t take_stamp() { return stamp(); }
void begin_helper() { local.off = true; }

void keep(const ClockMeasurement& measurement) {
  entry = entry_of(measurement);
  entry.backwards = most_backwards();
  measured = true;
}

// nullptr, or why stamps of different threads cannot be compared.
const char* measure_first() {
  if (!lfence_waits()) {
    return "LFENCE does not order time stamps on this processor";
  }
  if (meter.start(create, take_stamp, begin_helper) != 0) {
    return "the processors' time-stamp counters cannot be compared: no thread for it";
  }
  const ClockMeasurement first = meter.measure(INT64_MAX, kFirstPatience);
  if (first.problem != nullptr) {
    return first.problem;
  }
  keep(first);
  widest = first.margin;
  allowed = capture::allowed_margin(first.margin);
  pause = kSecond;
  next = nanoseconds() + pause;
  return nullptr;
}

}  // namespace

void prepare_clock() {
  skew_clock(options.clock_test);
  measured = false;
  if (options.clock_trusted || options.clock_unused) {
    return;
  }
  if (const char* const problem = measure_first()) {
    options.clock_unused = true;
    warn("%s; verdicts claim no order between threads (clock=trust overrides)", problem);
  }
}

void prepare_clock_after_fork() {
  meter.forget_thread();
  prepare_clock();
}

uint32_t clock_threads() { return meter.started() ? 1 : 0; }
void end_clock() { meter.stop(); }
bool continue_clock() { return meter.start(create, take_stamp, begin_helper) == 0; }

const capture::ClockEntry* clock_entry() { return measured ? &entry : nullptr; }

long next_measurement() {
  if (!measured) {
    return -1;
  }
  const uint64_t now = nanoseconds();
  return now >= next ? 0 : static_cast<long>((next - now) / 1'000'000) + 1;
}

bool measure_clock(ClockLook look) {
  const uint64_t begin = nanoseconds();
  // Where counters do not move, one that is as narrow as those before says all.
  const uint64_t narrow = widest + widest / 8 + 16;
  const uint64_t wanted = narrow < allowed ? narrow : allowed;
  const ClockMeasurement again =
      look == ClockLook::kRuns
          ? meter.measure(wanted, kPatience)
          : meter.confirm(wanted, allowed,
                          look == ClockLook::kEnds ? kLastPatience : kLastPatience / 10);
  const uint64_t now = nanoseconds();
  const bool contradicts = again.problem != nullptr && again.is_contradiction;
  const bool useful = again.problem == nullptr || contradicts;
  pause = !useful ? kSecond : pause >= kLongestPause / 2 ? kLongestPause : 2 * pause;
  if (useful && again.margin > wanted) {
    pause = kSecond;
  }
  pause = pause < kShare * (now - begin) ? kShare * (now - begin) : pause;
  next = now + pause;
  if (useful) {
    keep(again);
    widest = again.margin != kNoMargin && again.margin > widest ? again.margin : widest;
  }
  return useful;
}

}  // namespace tsomon::probe
