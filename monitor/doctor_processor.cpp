// Cores, the time stamp counter and the store buffer.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include <cpuid.h>
#include <fmt/format.h>
#include <sched.h>
#include <x86intrin.h>

#include "monitor/doctor_parts.h"
#include "monitor/probe/clock.h"
#include "monitor/probe/stamp.h"

namespace tsomon::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// A waiting thread gives way after so many looks: there may be fewer processors than threads.
template <typename Condition>
void wait_until(const Condition& condition) {
  for (int looks = 1; !condition(); ++looks) {
    _mm_pause();
    if (looks % 2000 == 0) {
      sched_yield();
    }
  }
}

bool cpuid_bit_edx(uint32_t leaf, int bit) {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  return __get_cpuid(leaf, &eax, &ebx, &ecx, &edx) != 0 && ((edx >> bit) & 1U) != 0;
}

using probe::stamp;

// Cycles a second against the monotonic clock; the interval makes an error below 0.1 %.
double measure_frequency() {
  const auto start = Clock::now();
  const uint64_t first = stamp();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const uint64_t last = stamp();
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  return static_cast<double>(last - first) / elapsed.count();
}

struct OneWay {
  int64_t there = std::numeric_limits<int64_t>::max();
  int64_t back = std::numeric_limits<int64_t>::max();
};

// Passes stamps to and fro between two processors. A stamp that was taken before its arrival was
// must not be larger: the shortest way in each direction is never negative where the counters
// agree, and half the difference of the two bounds how far they are apart.
OneWay measure_one_way(int here, int there) {
  constexpr int kRounds = 2000;
  constexpr uint64_t kNothing = 0;
  alignas(64) std::atomic<uint64_t> sent{kNothing};
  alignas(64) std::atomic<uint64_t> answered{kNothing};
  OneWay shortest;
  std::thread other([&] {
    pin_to(there);
    for (int round = 0; round < kRounds; ++round) {
      uint64_t their = kNothing;
      wait_until([&] { return (their = sent.exchange(kNothing)) != kNothing; });
      const uint64_t mine = stamp();
      shortest.there = std::min(shortest.there, static_cast<int64_t>(mine - their));
      answered.store(stamp());
    }
  });
  std::thread self([&] {
    pin_to(here);
    for (int round = 0; round < kRounds; ++round) {
      sent.store(stamp());
      uint64_t their = kNothing;
      wait_until([&] { return (their = answered.exchange(kNothing)) != kNothing; });
      const uint64_t mine = stamp();
      shortest.back = std::min(shortest.back, static_cast<int64_t>(mine - their));
    }
  });
  other.join();
  self.join();
  return shortest;
}

MachineFinding examine_synchronisation(const std::vector<int>& processors) {
  const std::string needed_by = "record: time stamps of different threads are compared";
  const std::string remedy =
      "run on a machine, or a virtual machine, whose kernel uses the clock source tsc, or pin the "
      "program to processors whose counters agree (taskset)";
  if (processors.size() < 2) {
    return finding("tsc_synchronised", true, true, "only one processor", needed_by, remedy);
  }
  int64_t apart = 0;
  for (size_t i = 1; i < processors.size(); ++i) {
    const OneWay way = measure_one_way(processors[0], processors[i]);
    if (way.there < 0 || way.back < 0) {
      return finding("tsc_synchronised", false, true,
                     fmt::format("processors {} and {}: a stamp arrived {} cycles before it was "
                                 "taken",
                                 processors[0], processors[i], -std::min(way.there, way.back)),
                     needed_by, remedy);
    }
    apart = std::max(apart, std::abs(way.there - way.back) / 2);
  }
  return finding("tsc_synchronised", true, true,
                 fmt::format("{} processors measured, never out of order, at most {} cycles apart",
                             processors.size(), apart),
                 needed_by, remedy);
}

// Store buffering: both threads store, then load what the other stored.
struct Reordering {
  int rounds = 0;
  int seen = 0;
};

Reordering measure_reordering(int first, int second) {
  constexpr int kRounds = 20000;
  constexpr int kCheckEvery = 256;
  struct alignas(128) Line {
    std::atomic<int> value{0};
  };
  struct Side {
    int processor;
    Line location;
    Line arrived;
    std::vector<int> loaded = std::vector<int>(kRounds);
  };
  Side sides[2] = {{first, {}, {}}, {second, {}, {}}};
  std::atomic<int> last_round{kRounds};
  const auto end = Clock::now() + std::chrono::milliseconds(100);
  const auto run = [&](Side& mine, Side& other, bool leader) {
    pin_to(mine.processor);
    for (int round = 0; round < last_round.load(); ++round) {
      if (leader && round % kCheckEvery == 0 && Clock::now() > end) {
        last_round = round + 1;
      }
      mine.arrived.value.store(round + 1);
      wait_until([&] {
        return other.arrived.value.load(std::memory_order_relaxed) > round ||
               round >= last_round.load();
      });
      mine.location.value.store(round + 1, std::memory_order_relaxed);
      mine.loaded[round] = other.location.value.load(std::memory_order_relaxed);
    }
  };
  std::thread thread([&] { run(sides[1], sides[0], false); });
  std::thread leader([&] { run(sides[0], sides[1], true); });
  thread.join();
  leader.join();
  Reordering result;
  result.rounds = last_round.load() - 1;
  for (int round = 0; round < result.rounds; ++round) {
    result.seen += sides[0].loaded[round] <= round && sides[1].loaded[round] <= round ? 1 : 0;
  }
  return result;
}

MachineFinding examine_reordering(const std::vector<int>& processors) {
  const std::string needed_by = "seeing late commits happen; checking works without";
  const std::string remedy = "run on at least two cores of their own";
  if (processors.size() < 2) {
    return finding("store_reordering", false, false, "only one processor", needed_by, remedy);
  }
  const Reordering result = measure_reordering(processors[0], processors[1]);
  return finding("store_reordering", result.seen > 0, false,
                 fmt::format("{} of {} rounds of store buffering had both loads before both stores",
                             result.seen, result.rounds),
                 needed_by, remedy);
}

}  // namespace

std::vector<int> usable_processors() {
  std::vector<int> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) {
        processors.push_back(i);
      }
    }
  }
  return processors;
}

void pin_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

std::vector<MachineFinding> examine_processor() {
  const std::vector<int> processors = usable_processors();
  std::vector<MachineFinding> findings;
  findings.push_back(finding("cores", processors.size() >= 2, false,
                             fmt::format("{} usable", processors.size()),
                             "violations between threads that run at the same time",
                             "use a machine, or a taskset, with at least two cores"));

  int smt = 0;
  std::ifstream("/sys/devices/system/cpu/smt/active") >> smt;
  findings.push_back(finding("smt", true, false, smt != 0 ? "active" : "not active",
                             "nothing; threads of one core share their caches", ""));

  const probe::ClockState clock = probe::examine_clock();
  const std::string orders = "record: order between threads (without: all of it stays open)";
  findings.push_back(
      finding("clock_source", clock.counters(), false,
              clock.source[0] != '\0' ? clock.source : "/sys does not say", orders,
              "let the kernel use the clock source tsc, or vouch for the counters (clock=trust)"));
  findings.push_back(finding("lfence", clock.lfence, false,
                             clock.lfence ? "orders time stamps" : "not known to order time stamps",
                             orders,
                             "let the virtual machine show CPUID 0x80000021, or clock=trust"));
  const bool invariant = cpuid_bit_edx(0x80000007, 8);
  findings.push_back(finding("tsc_invariant", invariant, false,
                             invariant ? "constant rate in all power states" : "not shown",
                             "nothing where the clock source is tsc",
                             "let the virtual machine show the processor's invariant TSC"));
  findings.push_back(finding("tsc_frequency", true, false,
                             fmt::format("{:.0f} MHz measured", measure_frequency() / 1e6),
                             "cycles as seconds in reports", ""));
  findings.push_back(examine_synchronisation(processors));
  findings.push_back(examine_reordering(processors));
  return findings;
}

}  // namespace tsomon::doctor
