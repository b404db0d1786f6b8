#include "monitor/probe/clock_meter.h"

#include <cerrno>

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "monitor/probe/futex.h"

namespace tsomon::probe {
namespace {

constexpr uint64_t kStop = 1;       // no stamp
constexpr uint32_t kLooks = 20000;  // for a message, in a burst; twice as many in the next one, ...
constexpr uint32_t kMostLooks = 64 * kLooks;
constexpr uint32_t kFewest = 16;           // exchanges that say something
constexpr uint64_t kImprove = 20'000'000;  // nanoseconds, for a margin that is as narrow as wanted
constexpr uint64_t kPause = 20'000'000;    // nanoseconds, before what was slow is tried again
constexpr uint64_t kPairs = 4;             // that are all given the whole patience
constexpr uint32_t kUnpinned = ~0U;
constexpr const char* kTooBusy =
    "a processor was too busy to compare its time-stamp counter with the others";
constexpr const char* kContradiction =
    "a time-stamp counter is not steady: messages between processors contradict one another";
constexpr const char* kNotPinned =
    "time-stamp counters cannot be compared: threads cannot be moved to a processor";
constexpr int64_t kFar = INT64_MAX / 4;

// As large as the kernel may want it.
struct ProcessorSet {
  static constexpr size_t kWords = ClockMeter::kMaxProcessors / 64;
  unsigned long words[kWords];

  bool has(uint32_t processor) const {
    return (words[processor / 64] >> (processor % 64) & 1) != 0;
  }
  void fill(unsigned long word) {
    for (unsigned long& each : words) {
      each = word;
    }
  }
};

// The calls of the C library may be the program's.
bool get_processors(ProcessorSet* set) {
  set->fill(0);
  return syscall(SYS_sched_getaffinity, 0, sizeof set->words, set->words) > 0;
}
bool set_processors(const ProcessorSet& set) {
  return syscall(SYS_sched_setaffinity, 0, sizeof set.words, set.words) == 0;
}
bool pin(uint32_t processor) {
  ProcessorSet set;
  set.fill(0);
  set.words[processor / 64] = 1UL << (processor % 64);
  return set_processors(set);
}

constexpr uint64_t kForever = ~uint64_t{0};

uint64_t nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Until the word has another value, or the time; true: it has.
bool sleep_while(std::atomic<uint32_t>* word, uint32_t value, uint64_t until) {
  while (word->load(std::memory_order_acquire) == value) {
    const uint64_t now = nanoseconds();
    if (now >= until) {
      return false;
    }
    const uint64_t left = until - now;
    const timespec time{static_cast<time_t>(left / 1'000'000'000),
                        static_cast<long>(left % 1'000'000'000)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, until == kForever ? nullptr : &time,
            nullptr, 0);
  }
  return true;
}

int64_t distance(uint64_t from, uint64_t to) { return static_cast<int64_t>(to - from); }

// Where the kernel allows it, the calling thread runs before all ordinary ones from here on, so
// that both run at once; a burst is short.
bool set_urgent(bool urgent) {
  const sched_param parameters{urgent ? 1 : 0};
  return syscall(SYS_sched_setscheduler, 0, urgent ? SCHED_FIFO : SCHED_OTHER, &parameters) == 0;
}

// What the line holds when it is not `last` any more; 0: nobody has answered.
uint64_t receive(const std::atomic<uint64_t>& line, uint64_t last, uint32_t looks) {
  for (uint32_t look = 0; look < looks; ++look) {
    const uint64_t now = line.load(std::memory_order_acquire);
    if (now != last) {
      return now;
    }
  }
  return 0;
}

}  // namespace

uint64_t ClockMeter::margin_of(const Offset* offsets, uint32_t count) {
  int64_t margin = 0;
  for (uint32_t i = 1; i < count; ++i) {
    const Offset& one = offsets[i];
    if (one.low > one.high) {
      return kNoMargin;
    }
    margin = one.high > margin ? one.high : margin;
    margin = -one.low > margin ? -one.low : margin;
  }
  // Of two others: the largest high and the lowest low that are not of one processor.
  for (uint32_t i = 1; i < count; ++i) {
    for (uint32_t j = 1; j < count; ++j) {
      const int64_t apart = offsets[i].high - offsets[j].low;
      margin = i != j && apart > margin ? apart : margin;
    }
  }
  return static_cast<uint64_t>(margin);
}

int ClockMeter::start(Create create, Stamp stamp, void (*begin)()) {
  create_ = create;
  stamp_ = stamp;
  begin_ = begin;
  ends_ = false;
  request_.store(0, std::memory_order_relaxed);
  ready_.store(0, std::memory_order_relaxed);
  answer_.store(0, std::memory_order_relaxed);
  const uint64_t all = ~uint64_t{0};
  uint64_t old = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof old);
  const int failed = create(&thread_, nullptr, thread_main, this);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, nullptr, sizeof old);
  started_ = failed == 0;
  return failed;
}

void ClockMeter::stop() {
  if (started_) {
    ends_ = true;
    wake();
    pthread_join(thread_, nullptr);
    started_ = false;
  }
}

void ClockMeter::wake() {
  request_.fetch_add(1, std::memory_order_release);
  futex_wake(&request_);
}

void* ClockMeter::thread_main(void* meter) {
  auto* const self = static_cast<ClockMeter*>(meter);
  if (self->begin_ != nullptr) {
    self->begin_();
  }
  self->serve();
  return nullptr;
}

// The second thread: a burst for each request.
void ClockMeter::serve() {
  set_urgent(true);
  uint32_t pinned_to = kUnpinned;
  for (uint32_t done = 0;; ++done) {
    sleep_while(&request_, done, kForever);
    if (ends_) {
      return;
    }
    if (pinned_to != processor_) {
      pinned_ = pin(processor_);
      pinned_to = pinned_ ? processor_ : kUnpinned;
    }
    high_ = kFar;
    ready_.store(done + 1, std::memory_order_release);
    futex_wake(&ready_);
    if (pinned_) {
      answer_burst();
    }
    answer_.store(done + 1, std::memory_order_release);
    futex_wake(&answer_);
  }
}

void ClockMeter::answer_burst() {
  uint64_t last = 0;
  while ((last = receive(ping_.word, last, looks_)) > kStop) {
    const uint64_t here = stamp_();
    const int64_t ahead = distance(last, here);
    high_ = ahead < high_ ? ahead : high_;
    pong_.word.store(stamp_(), std::memory_order_release);
  }
}

// False: the second thread did nothing until then. The offset becomes the intersection of what was
// known and what was seen.
bool ClockMeter::burst(Offset* offset, uint64_t wanted, uint64_t until) {
  // The second thread may not have run since the last time.
  if (const uint32_t done = answer_.load(std::memory_order_acquire);
      done != request_.load(std::memory_order_relaxed) && !sleep_while(&answer_, done, until)) {
    return false;
  }
  ping_.word.store(0, std::memory_order_relaxed);
  pong_.word.store(0, std::memory_order_relaxed);
  const uint32_t before = request_.load(std::memory_order_relaxed);
  wake();
  if (!sleep_while(&ready_, before, until)) {
    return false;
  }
  uint64_t last = 0;
  while (pinned_) {
    ping_.word.store(stamp_(), std::memory_order_release);
    last = receive(pong_.word, last, looks_);
    if (last == 0) {
      break;
    }
    const int64_t ahead = distance(stamp_(), last);
    offset->low = ahead > offset->low ? ahead : offset->low;
    ++offset->exchanges;
    if (offset->exchanges % kExchanges == 0 ||
        (offset->exchanges >= kExchanges && -offset->low <= static_cast<int64_t>(wanted))) {
      break;
    }
  }
  ping_.word.store(kStop, std::memory_order_release);
  if (!sleep_while(&answer_, before, until)) {
    return false;
  }
  offset->high = high_ < offset->high ? high_ : offset->high;
  return true;
}

// What kept it from an answer; nullptr: nothing.
const char* ClockMeter::measure_pair(Offset* offset, uint64_t wanted, uint64_t patience) {
  const uint64_t begin = nanoseconds();
  const uint64_t until = begin + patience;
  processor_ = offset->processor;
  offset->low = -kFar;
  offset->high = kFar;
  for (looks_ = kLooks;; looks_ = looks_ < kMostLooks ? 2 * looks_ : looks_) {
    if (!burst(offset, wanted, until)) {
      break;
    }
    if (!pinned_) {
      return kNotPinned;
    }
    if (offset->low > offset->high) {
      return kContradiction;
    }
    const bool enough = offset->exchanges >= kExchanges &&
                        -offset->low <= static_cast<int64_t>(wanted) &&
                        offset->high <= static_cast<int64_t>(wanted);
    const uint64_t now = nanoseconds();
    if (enough || now >= until || (offset->exchanges >= kExchanges && now - begin > kImprove)) {
      break;
    }
  }
  return offset->exchanges >= kFewest && offset->high != kFar ? nullptr : kTooBusy;
}

ClockMeasurement ClockMeter::measure(uint64_t wanted, uint64_t patience) {
  ClockMeasurement result;
  result.since = stamp_();
  result.until = result.since;
  ProcessorSet before;
  const int policy = static_cast<int>(syscall(SYS_sched_getscheduler, 0));
  ProcessorSet all;
  all.fill(~0UL);
  if (!started_) {
    result.problem = "time-stamp counters cannot be compared: there is no thread for it";
    return result;
  }
  if (!get_processors(&before)) {
    result.problem = kNotPinned;
    return result;
  }
  if (!set_processors(all) || !get_processors(&all)) {
    result.problem = kNotPinned;
    set_processors(before);
    return result;
  }
  const uint64_t end = nanoseconds() + kPairs * patience;
  const bool urgent = policy == SCHED_OTHER && set_urgent(true);
  processors_ = 0;
  result.exchanges = ~0U;
  for (uint32_t processor = 0; processor < kMaxProcessors && result.problem == nullptr;
       ++processor) {
    if (!all.has(processor)) {
      continue;
    }
    Offset& offset = offsets_[processors_];
    offset = {};
    offset.processor = processor;
    if (processors_++ == 0) {
      if (!pin(processor)) {
        result.problem = kNotPinned;
      }
      continue;
    }
    const uint64_t now = nanoseconds();
    const uint64_t left = now < end ? end - now : 0;
    result.problem = measure_pair(&offset, wanted, left < patience ? left : patience);
    result.is_contradiction = result.problem == kContradiction;
    const int64_t early = offset.low > -offset.high ? offset.low : -offset.high;
    if (result.problem == nullptr && early > static_cast<int64_t>(result.early)) {
      result.early = static_cast<uint64_t>(early);
    }
    result.processor = processor;
    result.exchanges = offset.exchanges < result.exchanges ? offset.exchanges : result.exchanges;
  }
  if (urgent) {
    set_urgent(false);
  }
  set_processors(before);
  result.processors = processors_;
  if (processors_ <= 1) {
    result.exchanges = 0;
  }
  result.until = stamp_();
  if (result.problem == nullptr) {
    result.margin = margin_of(offsets_, processors_);
  }
  return result;
}

ClockMeasurement ClockMeter::confirm(uint64_t wanted, uint64_t allowed, uint64_t patience) {
  const uint64_t end = nanoseconds() + patience / 2;
  ClockMeasurement best = measure(wanted, patience);
  while (best.problem == nullptr && best.margin > allowed && best.early <= allowed) {
    const timespec time{0, kPause};
    syscall(SYS_nanosleep, &time, nullptr);
    const uint64_t now = nanoseconds();
    if (now >= end) {
      break;
    }
    const ClockMeasurement again = measure(wanted, end - now);
    if (again.is_contradiction || (again.problem == nullptr && again.margin < best.margin)) {
      best = again;
    }
  }
  return best;
}

}  // namespace tsomon::probe
