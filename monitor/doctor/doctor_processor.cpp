// Cores, the time stamp counter and the store buffer.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <cpuid.h>
#include <fmt/format.h>
#include <sched.h>
#include <x86intrin.h>

#include "monitor/doctor/doctor_parts.h"
#include "monitor/probe/clock.h"
#include "monitor/probe/clock_meter.h"
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

// All processors that this process may be pinned to, each against the first.
MachineFinding examine_synchronisation() {
  const std::string needed_by = "record: order between threads (without: all of it stays open)";
  const std::string remedy =
      "let processors be free for some milliseconds, and threads be pinned to them; clock=none "
      "records without an order between threads";
  auto meter = std::make_unique<probe::ClockMeter>();
  if (meter->start(
          pthread_create, [] { return stamp(); }, nullptr) != 0) {
    return finding("tsc_synchronised", false, false, "no thread for it", needed_by, remedy);
  }
  const probe::ClockMeasurement measured = meter->measure(INT64_MAX, 1'000'000'000);
  std::string detail;
  if (measured.problem != nullptr) {
    detail = fmt::format("processor {}: {}", measured.processor, measured.problem);
  } else if (measured.processors == 1) {
    detail = "only one processor";
  } else {
    detail = fmt::format("{} processors within {} cycles of one another", measured.processors,
                         measured.margin);
    constexpr uint32_t kShown = 8;
    for (uint32_t i = 1; i < std::min(meter->processors(), kShown); ++i) {
      const probe::ClockMeter::Offset& offset = meter->offsets()[i];
      detail +=
          fmt::format("{} {} to {}: {}..{}", i == 1 ? ";" : ",", meter->offsets()[0].processor,
                      offset.processor, offset.low, offset.high);
    }
    detail += meter->processors() > kShown ? ", ..." : "";
  }
  meter->stop();
  return finding("tsc_synchronised", measured.problem == nullptr, false, detail, needed_by, remedy);
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

  const std::string orders = "record: order between threads (without: all of it stays open)";
  const std::string source = probe::clock_source().text;
  findings.push_back(finding("clock_source", true, false,
                             source.empty() ? "/sys does not say" : source,
                             "nothing: the counters are measured", ""));
  const bool waits = probe::lfence_waits();
  findings.push_back(finding("lfence", waits, false,
                             waits ? "orders time stamps" : "does not order time stamps", orders,
                             "clock=none records without an order between threads"));
  const bool invariant = cpuid_bit_edx(0x80000007, 8);
  findings.push_back(finding("tsc_invariant", invariant, false,
                             invariant ? "constant rate in all power states" : "not shown",
                             "nothing: the counters are measured",
                             "let the virtual machine show the processor's invariant TSC"));
  findings.push_back(finding("tsc_frequency", true, false,
                             fmt::format("{:.0f} MHz measured", measure_frequency() / 1e6),
                             "cycles as seconds in reports", ""));
  findings.push_back(examine_synchronisation());
  findings.push_back(examine_reordering(processors));
  return findings;
}

}  // namespace tsomon::doctor
