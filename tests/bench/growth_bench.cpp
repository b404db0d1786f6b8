// How the time per event of the exact check grows with the trace: growth_bench [MOST EVENTS]
//
// Traces   Units of 2 to 6 accesses by 2, 4 or 8 threads to 4 or 16 locations, made here: a unit
//          begins when the one before it has ended, or (one in twenty) while it runs; most units
//          end drained, as those under a lock do, one in fifty leaves its stores in the buffer. A
//          plain access is known to lie between its own stamp and the next one of its thread, the
//          end of its unit, as in a recording.
// Checks   stream: what `tsomon check` does, the detector first and the search on what it flags;
//          whole: the analysis of all of the trace, as for `--order thread` and robustness, here
//          with the question of robustness and that of serializability.
// Printed  For every size the nanoseconds of processor time per event, the best of several rounds
//          that take turns over the sizes, and how far the dearest size lies above the cheapest
//          one. Of short traces as many are judged as have the events of the longest one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "monitor/judge/check.h"
#include "monitor/judge/stream_check.h"
#include "offline/check/orientation_search.h"

using namespace tsomon;

namespace {

constexpr size_t kBlock = 4096;
constexpr int kRounds = 3;

class Maker {
 public:
  Maker(uint32_t threads, uint32_t locations, uint64_t seed)
      : threads_(threads), locations_(locations), random_(seed) {
    for (uint32_t t = 0; t < threads; ++t) {
      trace_.symbols.threads.intern(fmt::format("T{}", t));
    }
    for (uint32_t l = 0; l < locations; ++l) {
      trace_.symbols.names.intern(fmt::format("v{}", l));
    }
    trace_.symbols.labels.intern("unit");
  }

  Trace make(size_t events) {
    while (trace_.events.size() < events) {
      const uint32_t thread = below(threads_);
      std::vector<Event> one = unit(thread);
      if (below(20) == 0) {
        uint32_t other = below(threads_ - 1);
        other += other >= thread ? 1 : 0;
        run({std::move(one), unit(other)});
      } else {
        run({std::move(one)});
      }
    }
    return std::move(trace_);
  }

 private:
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  static Event event(EventKind kind, uint32_t thread, uint64_t address = 0) {
    Event made;
    made.set_kind(kind);
    made.thread = thread;
    made.address = address;
    return made;
  }

  std::vector<Event> unit(uint32_t thread) {
    std::vector<Event> events{event(EventKind::kUnitBegin, thread)};
    for (uint32_t left = 2 + below(5); left > 0; --left) {
      events.push_back(
          event(below(3) == 0 ? EventKind::kWrite : EventKind::kRead, thread, below(locations_)));
    }
    events.push_back(event(EventKind::kUnitEnd, thread));
    if (below(50) != 0) {
      events.insert(events.end() - 1, event(EventKind::kFence, thread));
    }
    return events;
  }

  // Units that run at the same time, event by event; then the ends of their intervals are known.
  void run(const std::vector<std::vector<Event>>& units) {
    std::vector<Event> mixed;
    std::vector<size_t> next(units.size(), 0);
    std::vector<size_t> last(threads_, 0);
    for (bool more = true; more;) {
      more = false;
      for (size_t u = 0; u < units.size(); ++u) {
        if (next[u] < units[u].size()) {
          mixed.push_back(units[u][next[u]++]);
          last[mixed.back().thread] = mixed.size() - 1;
          more = true;
        }
      }
    }
    for (size_t i = 0; i < mixed.size(); ++i) {
      const bool plain = is(mixed[i], kinds::kAccesses);
      const auto lo = static_cast<int64_t>(time_ + i);
      trace_.add(mixed[i], lo, plain ? static_cast<int64_t>(time_ + last[mixed[i].thread]) : lo);
    }
    time_ += mixed.size();
  }

  uint32_t threads_;
  uint32_t locations_;
  std::mt19937_64 random_;
  uint64_t time_ = 0;
  Trace trace_;
};

struct Judged {
  double seconds = 0;
  std::string verdict;
  uint64_t parts = 0;
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

enum class Way { kStream, kWhole, kRobustness };

Judged judge(const Trace& trace, Way way) {
  CheckOptions options;
  options.jobs = 1;
  if (way == Way::kRobustness) {
    options.property = CheckProperty::kRobustness;
  }
  const double start = processor_seconds();
  Result<CheckReport> report;
  if (way == Way::kStream) {
    StreamCheck check(trace.symbols, options);
    EventBlock block;
    for (size_t first = 0; first < trace.events.size(); first += kBlock) {
      block.clear();
      block.append(trace, first, std::min(first + kBlock, trace.events.size()));
      check.add(block);
    }
    report = check.finish(true, 0);
  } else {
    report = check_trace(trace, options);
  }
  Judged judged;
  judged.seconds = processor_seconds() - start;
  judged.verdict =
      report ? fmt::format("{}{}", verdict_name(*report), report->complete() ? "" : ", incomplete")
             : report.error().to_string();
  judged.parts = report ? report->parts : 0;
  return judged;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  std::vector<size_t> sizes;
  for (const size_t size : {10'000U, 30'000U, 100'000U, 300'000U, 1'000'000U}) {
    if (size <= most) {
      sizes.push_back(size);
    }
  }
  fmt::print("{:<12} {:>7} {:>9} ", "check", "threads", "locations");
  for (const size_t size : sizes) {
    fmt::print("{:>9}", size);
  }
  fmt::print("  dearest/cheapest  parts, verdict of the longest\n");
  for (const uint32_t threads : {2U, 4U, 8U}) {
    for (const uint32_t locations : {4U, 16U}) {
      // As many events of each size: short traces are many, and all different.
      std::vector<std::vector<Trace>> traces(sizes.size());
      for (size_t i = 0; i < sizes.size(); ++i) {
        for (size_t made = 0; made < sizes.back(); made += sizes[i]) {
          traces[i].push_back(Maker(threads, locations, made).make(sizes[i]));
        }
      }
      for (const Way way : {Way::kStream, Way::kWhole, Way::kRobustness}) {
        std::vector<double> best(sizes.size(), 1e9);
        Judged last;
        for (int round = 0; round < kRounds; ++round) {
          for (size_t i = 0; i < sizes.size(); ++i) {
            double seconds = 0;
            size_t events = 0;
            for (const Trace& trace : traces[i]) {
              last = judge(trace, way);
              seconds += last.seconds;
              events += trace.events.size();
            }
            best[i] = std::min(best[i], seconds * 1e9 / static_cast<double>(events));
          }
        }
        const char* const name = way == Way::kStream  ? "stream"
                                 : way == Way::kWhole ? "whole"
                                                      : "robustness";
        fmt::print("{:<12} {:>7} {:>9} ", name, threads, locations);
        for (const double nanoseconds : best) {
          fmt::print("{:>9.0f}", nanoseconds);
        }
        fmt::print("  {:>16.2f}  {}, {}\n",
                   *std::max_element(best.begin(), best.end()) /
                       *std::min_element(best.begin(), best.end()),
                   last.parts, last.verdict);
        std::fflush(stdout);
      }
    }
  }
  return 0;
}
