#include "decoders/std/generator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tso/support/none.h"

namespace tsomon {
namespace {

constexpr size_t kPart = size_t{64} << 10;  // of the text, at a time
constexpr size_t kMaxLine = 128;
constexpr uint32_t kOwnLocations = 16;     // of each thread
constexpr uint32_t kRacingLocations = 64;  // `buffered`
constexpr uint32_t kSites = 1000;          // different source locations of shared accesses
constexpr uint32_t kLabels = 16;
constexpr uint32_t kTwoLocks = 4;  // every so many-th unit under a lock holds two

// Source locations of lines without one of their own.
constexpr uint32_t kSiteOwn = 1;
constexpr uint32_t kSiteLock = 2;
constexpr uint32_t kSiteRacing = 3;
constexpr uint32_t kSiteThread = 4;
constexpr uint32_t kSiteShared = 100;  // and above

// A share as a bound on 32 random bits.
uint64_t threshold(double share) { return static_cast<uint64_t>(share * 4294967296.0); }

enum class Phase : uint8_t { kIdle, kBefore, kAcquire, kInside, kRelease, kGap, kAfter, kLong };

struct Thread {
  Phase phase = Phase::kIdle;
  uint32_t before = 0;  // accesses left before the critical section, in it, after it
  uint32_t inside = 0;
  uint32_t after = 0;
  std::array<uint32_t, 2> lock = {kNone, kNone};
  uint32_t wanted = 0;  // locks
  uint32_t held = 0;
  uint32_t target = kNone;  // location of the next shared access
  bool violating = false;
  bool second = false;  // critical section of a violating unit
  bool intruder = false;
  bool waits = false;  // before its first critical section
};

// Of the violating unit that an intruder is still missing for.
struct Gap {
  uint32_t thread = kNone;
  uint32_t location = kNone;  // that the intruder has to write
  bool open = false;          // it has read the location, and no intruder has been chosen yet
};

}  // namespace

class StdGenerator::Impl {
 public:
  explicit Impl(const StdGeneratorOptions& options)
      : options_(options),
        random_(options.seed),
        threads_(options.threads),
        owner_(options.locks, kNone),
        locked_(threshold(options.locked)),
        violations_(threshold(options.violations)),
        cancelled_(threshold(options.cancelled)),
        rmw_(threshold(options.rmw)),
        fences_(threshold(options.fences)),
        buffered_(threshold(options.buffered)),
        waits_(threshold(options.waits)) {
    for (uint32_t thread = 0; thread < options.threads; ++thread) {
      prefixes_.push_back(fmt::format("T{}|", thread));
    }
  }

  static uint64_t closing_events(const StdGeneratorOptions& options) {
    return uint64_t{4} * options.threads;  // two releases, an end and a join
  }
  static uint64_t opening_events(const StdGeneratorOptions& options) {
    const uint64_t touched = options.long_unit == LongUnit::kShared ? options.locks : 0;
    return options.threads + 3 * touched;
  }

  bool next(std::string& text) {
    if (written_ == options_.events) {
      return false;
    }
    text.resize(kPart);
    at_ = text.data();
    const char* const full = text.data() + kPart - kMaxLine;
    while (at_ < full && written_ < options_.events) {
      if (opening()) {
        continue;
      }
      if (options_.events - written_ > closing_events(options_)) {
        work();
      } else {
        close();
      }
    }
    text.resize(static_cast<size_t>(at_ - text.data()));
    return true;
  }

  uint64_t units() const { return units_; }
  uint64_t violating() const { return violating_; }

 private:
  // Text.
  void put(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void put(char c) { *at_++ = c; }
  void put(uint32_t number) { at_ = std::to_chars(at_, at_ + 10, number).ptr; }
  void begin_line(uint32_t thread) { put(std::string_view(prefixes_[thread])); }
  void end_line(uint32_t site) {
    put(std::string_view(")|"));
    put(site);
    put('\n');
    ++written_;
  }

  uint32_t below(uint32_t bound, uint64_t bits32) const {
    return static_cast<uint32_t>((bits32 * bound) >> 32);
  }
  uint32_t below(uint32_t bound) { return below(bound, random_() >> 32); }

  // r, w or rmw by 32 random bits.
  void put_operation(uint64_t bits) {
    if (bits < rmw_) {
      put(std::string_view("rmw("));
    } else {
      put((bits & 1U) != 0 ? std::string_view("w(") : std::string_view("r("));
    }
  }

  void own_access(uint32_t thread) {
    const uint64_t bits = random_();
    begin_line(thread);
    if ((bits & 0xFFFFFFFFU) < buffered_) {
      const uint64_t more = random_();
      put((more & 1U) != 0 ? std::string_view("w(B") : std::string_view("r(B"));
      put(below(kRacingLocations, more >> 32));
      end_line(kSiteRacing);
      return;
    }
    put_operation(bits >> 32);
    put('P');
    put(thread);
    put('.');
    put(static_cast<uint32_t>(bits % kOwnLocations));
    end_line(kSiteOwn);
  }

  void shared_line(uint32_t thread, std::string_view operation, uint32_t location) {
    begin_line(thread);
    put(operation);
    put('V');
    put(location);
    end_line(kSiteShared + location % kSites);
  }

  // A location that belongs to the lock.
  uint32_t location_of(uint32_t lock, uint64_t bits32) const {
    const uint32_t count = (options_.locations - lock - 1) / options_.locks + 1;
    return lock + options_.locks * below(count, bits32);
  }

  void shared_access(uint32_t thread, Thread& state) {
    if (state.target != kNone) {
      const uint32_t location = state.target;
      state.target = kNone;
      const bool reads = state.violating && !state.second;
      shared_line(thread, reads ? "r(" : "w(", location);
      if (state.intruder) {
        state.intruder = false;
        threads_[gap_.thread].second = true;
        threads_[gap_.thread].target = location;
        gap_ = Gap();
        ++violating_;
      }
      return;
    }
    const uint64_t bits = random_();
    const uint32_t lock = state.lock[state.held == 2 ? bits & 1U : 0];
    const uint32_t location = location_of(lock, bits >> 32);
    begin_line(thread);
    put_operation(random_() >> 32);
    put('V');
    put(location);
    end_line(kSiteShared + location % kSites);
  }

  void lock_line(uint32_t thread, std::string_view operation, uint32_t lock) {
    begin_line(thread);
    put(operation);
    put('L');
    put(lock);
    end_line(kSiteLock);
  }

  void fork_or_join(uint32_t thread, std::string_view operation) {
    begin_line(0);
    put(operation);
    put('T');
    put(thread);
    end_line(kSiteThread);
  }

  void begin_unit(uint32_t thread) {
    Thread& state = threads_[thread];
    const uint64_t bits = random_();
    const uint32_t length = 1 + below(2 * options_.unit_length - 1, bits >> 32);
    // Rounded up or down at random: the share holds on average.
    const uint64_t exact = locked_ * length + (bits & 0xFFFFFFFFU);
    state = Thread();
    state.phase = Phase::kBefore;
    state.inside = std::min<uint32_t>(length, static_cast<uint32_t>(exact >> 32));
    state.before = below(length - state.inside + 1);
    state.after = length - state.inside - state.before;
    const uint64_t more = random_();
    state.lock[0] = below(options_.locks, more >> 32);
    state.wanted = 1;
    if (violations_ != 0 && (more & 0xFFFFFFFFU) < violations_) {
      ++owed_;
    }
    if (gap_.open) {
      gap_.open = false;
      state.intruder = true;
      state.target = gap_.location;
      state.lock[0] = gap_.location % options_.locks;
      state.inside = std::max(state.inside, 1U);
    } else if (owed_ > 0 && gap_.thread == kNone) {
      --owed_;
      state.violating = true;
      state.inside = 1;
      state.target = location_of(state.lock[0], random_() >> 32);
      gap_ = {thread, state.target, false};
    } else if (options_.locks > 1 && more % kTwoLocks == 0) {
      const uint32_t other = below(options_.locks - 1);
      state.lock[1] = other < state.lock[0] ? other : other + 1;
      if (state.lock[1] < state.lock[0]) {
        std::swap(state.lock[0], state.lock[1]);
      }
      state.wanted = 2;
    }
    state.waits = waits_ != 0 && random_() >> 32 < waits_;
    begin_line(thread);
    put(std::string_view("begin(u"));
    put(static_cast<uint32_t>(units_ % kLabels));
    end_line(static_cast<uint32_t>(10 + units_ % kLabels));
    ++units_;
  }

  void end_unit(uint32_t thread) {
    const Thread& state = threads_[thread];
    const bool cancelled =
        cancelled_ != 0 && state.violating && state.second && random_() >> 32 < cancelled_;
    violating_ -= cancelled ? 1 : 0;
    begin_line(thread);
    put(cancelled ? std::string_view("cancel|") : std::string_view("end|"));
    put(kSiteThread);
    put('\n');
    ++written_;
    threads_[thread].phase = Phase::kIdle;
  }

  bool fence_instead(uint32_t thread) {
    if (fences_ == 0 || random_() >> 32 >= fences_) {
      return false;
    }
    begin_line(thread);
    put(std::string_view("fence|"));
    put(kSiteOwn);
    put('\n');
    ++written_;
    return true;
  }

  // One event of the thread; false: it has to wait.
  bool step(uint32_t thread) {
    Thread& state = threads_[thread];
    switch (state.phase) {
      case Phase::kIdle:
        begin_unit(thread);
        return true;
      case Phase::kBefore:
        if (state.before > 0) {
          if (!fence_instead(thread)) {
            --state.before;
            own_access(thread);
          }
          return true;
        }
        if (std::exchange(state.waits, false)) {
          begin_line(thread);
          put(std::string_view("wait(C"));
          put(state.lock[0]);
          end_line(kSiteLock);
          return true;
        }
        state.phase = state.inside > 0 ? Phase::kAcquire : Phase::kAfter;
        return step(thread);
      case Phase::kAcquire: {
        uint32_t& owner = owner_[state.lock[state.held]];
        if (owner != kNone) {
          return false;
        }
        owner = thread;
        lock_line(thread, "acq(", state.lock[state.held++]);
        if (state.held == state.wanted) {
          state.phase = Phase::kInside;
        }
        return true;
      }
      case Phase::kInside:
        if (!fence_instead(thread)) {
          --state.inside;
          shared_access(thread, state);
          if (state.inside == 0) {
            state.phase = Phase::kRelease;
          }
        }
        return true;
      case Phase::kRelease:
        --state.held;
        owner_[state.lock[state.held]] = kNone;
        lock_line(thread, "rel(", state.lock[state.held]);
        if (state.held == 0) {
          const bool gap = state.violating && !state.second;
          state.phase = gap ? Phase::kGap : Phase::kAfter;
          gap_.open = gap || gap_.open;
        }
        return true;
      case Phase::kGap:
        if (state.second) {
          state.phase = Phase::kAcquire;
          state.inside = 1;
          return step(thread);
        }
        if (state.after == 0) {
          return false;
        }
        --state.after;
        own_access(thread);
        return true;
      case Phase::kAfter:
        if (state.after > 0) {
          if (!fence_instead(thread)) {
            --state.after;
            own_access(thread);
          }
          return true;
        }
        end_unit(thread);
        return true;
      case Phase::kLong:
        if (!fence_instead(thread)) {
          own_access(thread);
        }
        return true;
    }
    return false;
  }

  void work() {
    uint32_t thread = below(options_.threads);
    // Some thread can always go on: locks are taken in one order, and at most one thread waits
    // for an intruder.
    while (!step(thread)) {
      thread = thread + 1 == options_.threads ? 0 : thread + 1;
    }
  }

  // The events before the work; false: there are no more.
  bool opening() {
    uint64_t step = open_step_;
    if (step + 1 < options_.threads) {
      ++open_step_;
      fork_or_join(static_cast<uint32_t>(step) + 1, "fork(");
      return true;
    }
    step -= options_.threads - 1;
    if (options_.long_unit == LongUnit::kNone) {
      return false;
    }
    if (step == 0) {
      ++open_step_;
      ++units_;
      threads_[0].phase = Phase::kLong;
      begin_line(0);
      put(std::string_view("begin(long"));
      end_line(kSiteThread);
      return true;
    }
    --step;
    if (options_.long_unit != LongUnit::kShared || step / 3 >= options_.locks) {
      return false;
    }
    ++open_step_;
    const auto lock = static_cast<uint32_t>(step / 3);
    switch (step % 3) {
      case 0:
        lock_line(0, "acq(", lock);
        break;
      case 1:
        shared_line(0, "w(", lock);
        break;
      default:
        lock_line(0, "rel(", lock);
        break;
    }
    return true;
  }

  // One of the last events: every thread gives back what it holds and ends its unit, then the
  // first one joins the others; own accesses fill up what is left.
  void close() {
    for (; closing_ < options_.threads; ++closing_) {
      Thread& state = threads_[closing_];
      if (state.held > 0) {
        --state.held;
        lock_line(closing_, "rel(", state.lock[state.held]);
        return;
      }
      if (state.phase != Phase::kIdle) {
        end_unit(closing_);
        return;
      }
    }
    if (joined_ + 1 < options_.threads) {
      fork_or_join(++joined_, "join(");
      return;
    }
    own_access(0);
  }

  const StdGeneratorOptions options_;
  std::mt19937_64 random_;
  std::vector<Thread> threads_;
  std::vector<uint32_t> owner_;  // of each lock
  std::vector<std::string> prefixes_;
  const uint64_t locked_;
  const uint64_t violations_;
  const uint64_t cancelled_;
  const uint64_t rmw_;
  const uint64_t fences_;
  const uint64_t buffered_;
  const uint64_t waits_;
  uint64_t written_ = 0;
  uint64_t units_ = 0;
  uint64_t violating_ = 0;
  uint64_t owed_ = 0;  // violating units not begun yet
  Gap gap_;
  uint64_t open_step_ = 0;
  uint32_t closing_ = 0;
  uint32_t joined_ = 0;
  char* at_ = nullptr;
};

Result<StdGenerator> StdGenerator::create(const StdGeneratorOptions& options) {
  const auto refuse = [](std::string message) {
    return fail(ErrorKind::kUsage, std::move(message));
  };
  constexpr uint32_t kMost = 10'000'000;
  for (const auto& [name, value] :
       {std::pair("threads", options.threads), std::pair("locks", options.locks),
        std::pair("locations", options.locations), std::pair("unit length", options.unit_length)}) {
    if (value == 0 || value > kMost) {
      return refuse(fmt::format("{}: from 1 to {}, not {}", name, kMost, value));
    }
  }
  for (const auto& [name, share] :
       {std::pair("locked", options.locked), std::pair("violations", options.violations),
        std::pair("rmw", options.rmw), std::pair("buffered", options.buffered),
        std::pair("cancelled", options.cancelled), std::pair("waits", options.waits)}) {
    if (!(share >= 0 && share <= 1)) {
      return refuse(fmt::format("{}: a share from 0 to 1, not {}", name, share));
    }
  }
  if (!(options.fences >= 0 && options.fences < 1)) {
    return refuse(fmt::format("fences: a share from 0 to below 1, not {}", options.fences));
  }
  if (options.locations < options.locks) {
    return refuse(fmt::format("every lock guards a location: at least {} locations, not {}",
                              options.locks, options.locations));
  }
  const uint32_t workers = options.threads - (options.long_unit == LongUnit::kNone ? 0 : 1);
  if (options.violations > 0 && workers < 2) {
    return refuse("a violation takes two threads, the one of the long unit not counted");
  }
  const uint64_t least = Impl::opening_events(options) + Impl::closing_events(options);
  if (options.events < least) {
    return refuse(fmt::format("at least {} events to start and end the threads, not {}", least,
                              options.events));
  }
  return StdGenerator(std::make_unique<Impl>(options));
}

StdGenerator::StdGenerator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StdGenerator::StdGenerator(StdGenerator&&) noexcept = default;
StdGenerator& StdGenerator::operator=(StdGenerator&&) noexcept = default;
StdGenerator::~StdGenerator() = default;

bool StdGenerator::next(std::string& text) { return impl_->next(text); }
uint64_t StdGenerator::units() const { return impl_->units(); }
uint64_t StdGenerator::violating() const { return impl_->violating(); }

}  // namespace tsomon
