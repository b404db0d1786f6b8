// How the time per event of the exact check grows with the trace: growth_bench [MOST EVENTS]
// [fenced | plain] [KIND OF PLAIN TRACE [THREADS [LOCATIONS]]]
//
// Traces   Units of 2 to 6 accesses by 2, 4 or 8 threads to 4 or 16 locations, made here: a unit
//          begins when the one before it has ended, or (one in twenty) while it runs; most units
//          end drained, as those under a lock do, one in fifty leaves its stores in the buffer. A
//          plain access is known to lie between its own stamp and the next one of its thread, the
//          end of its unit, as in a recording.
//          plain: without any fence. random: units of 2 to 4 loads and stores; rmw: a load and a
//          store of one location; queue: pairs of threads with a ring between two indices, with
//          values, and consumers that spin; clean: each thread on data of its own, with a load of
//          the first thread's data in a hundredth of the units; planted: the same, and one pair of
//          units in the middle that store and then load what the other one stores.
// Checks   stream: what `tsomon check` does, the detector first and the search on what it flags;
//          whole: the analysis of all of the trace, as for `--order thread` and robustness, here
//          with the question of robustness and that of serializability.
// Printed  For every size the nanoseconds of processor time per event, the best of several rounds
//          that take turns over the sizes, and how far the dearest size lies above the cheapest
//          one. Of short traces as many are judged as have the events of the longest one. And the
//          most memory that the longest one took at once, beside the trace: bytes per event and
//          thread.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>

#include "monitor/judge/check.h"
#include "monitor/judge/stream_check.h"
#include "offline/check/orientation_search.h"

using namespace tsomon;

namespace {

constexpr size_t kBlock = 4096;
constexpr int kRounds = 3;
constexpr size_t kShortTraces = 100'000;  // events, of plain traces of a size

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

enum class Plain { kRandom, kReadWrite, kQueue, kClean, kPlanted };
constexpr std::array<const char*, 5> kPlainNames = {"random", "rmw", "queue", "clean", "planted"};

// Threads that take turns, at random, without any fence.
class PlainMaker {
 public:
  PlainMaker(Plain kind, uint32_t threads, uint32_t locations, uint64_t seed)
      : kind_(kind), threads_(threads), locations_(locations), random_(seed), waiting_(threads) {
    for (uint32_t t = 0; t < threads; ++t) {
      trace_.symbols.threads.intern(fmt::format("T{}", t));
    }
    trace_.symbols.labels.intern("unit");
    done_.assign(threads, 0);
  }

  Trace make(size_t events) {
    bool planted = kind_ != Plain::kPlanted;
    while (trace_.events.size() < events) {
      if (!planted && trace_.events.size() > events / 2) {
        plant();
        planted = true;
      }
      const uint32_t thread = below(threads_);
      if (waiting_[thread].empty()) {
        plan(thread);
      }
      if (!waiting_[thread].empty()) {
        add(thread, waiting_[thread].front());
        waiting_[thread].pop_front();
      }
    }
    return std::move(trace_);
  }

 private:
  struct Step {
    EventKind kind;
    uint64_t address = 0;
    uint64_t value = 0;  // 0: not known
  };

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  void add(uint32_t thread, const Step& step) {
    Event event;
    event.set_kind(step.kind);
    event.thread = thread;
    event.address = step.address;
    const auto time = static_cast<int64_t>(trace_.events.size());
    const bool load = step.kind == EventKind::kRead;
    if (!load && step.value != 0) {
      memory_[step.address] = step.value;
    }
    const auto known = step.value != 0 ? std::optional(step.value) : std::nullopt;
    trace_.add(event, time, time, load ? known : std::nullopt, load ? std::nullopt : known);
  }

  void plan(uint32_t thread) {
    std::deque<Step>& steps = waiting_[thread];
    if (kind_ == Plain::kQueue) {
      plan_queue(thread);
      return;
    }
    steps.push_back({EventKind::kUnitBegin});
    if (kind_ == Plain::kRandom) {
      for (uint32_t left = 2 + below(3); left > 0; --left) {
        steps.push_back({below(2) == 0 ? EventKind::kWrite : EventKind::kRead, below(locations_)});
      }
    } else if (kind_ == Plain::kReadWrite) {
      const uint64_t at = below(locations_);
      steps.push_back({EventKind::kRead, at});
      steps.push_back({EventKind::kWrite, at});
    } else {
      steps.push_back({EventKind::kRead, own(thread)});
      steps.push_back({EventKind::kWrite, own(thread)});
      if (thread != 0 && below(100) == 0) {
        steps.push_back({EventKind::kRead, own(0)});
      }
    }
    steps.push_back({EventKind::kUnitEnd});
  }
  uint64_t own(uint32_t thread) { return 1000 * (thread + 1) + below(locations_); }

  // Even threads hand over to the next one: a slot, then the tail; what is handed over is taken in
  // a unit, then the head tells. Every store commits at once.
  void plan_queue(uint32_t thread) {
    std::deque<Step>& steps = waiting_[thread];
    const uint64_t ring = 10'000 * (thread / 2 + 1);
    const uint64_t tail = ring + 8000;
    const uint64_t head = ring + 9000;
    const bool produces = thread % 2 == 0;
    if ((thread ^ 1U) >= threads_) {
      steps.push_back({EventKind::kRead, 5});
      return;
    }
    const uint64_t seen = std::max<uint64_t>(memory_[produces ? head : tail], 1);
    add(thread, {EventKind::kRead, produces ? head : tail, seen});
    uint64_t& done = done_[thread];
    if (produces && done + 1 - seen < locations_) {
      ++done;
      steps = {{EventKind::kUnitBegin},
               {EventKind::kWrite, ring + done % locations_},
               {EventKind::kWrite, tail, 1 + done},
               {EventKind::kUnitEnd}};
    } else if (!produces && seen > done + 1) {
      ++done;
      steps = {{EventKind::kUnitBegin},
               {EventKind::kRead, ring + done % locations_},
               {EventKind::kUnitEnd},
               {EventKind::kWrite, head, 1 + done}};
    }
  }

  void plant() {
    for (uint32_t thread : {0U, 1U}) {
      while (!waiting_[thread].empty()) {
        add(thread, waiting_[thread].front());
        waiting_[thread].pop_front();
      }
      add(thread, {EventKind::kUnitBegin});
      add(thread, {EventKind::kWrite, 1 + thread});
    }
    for (uint32_t thread : {0U, 1U}) {
      add(thread, {EventKind::kRead, 2 - thread});
      add(thread, {EventKind::kUnitEnd});
    }
  }

  Plain kind_;
  uint32_t threads_;
  uint32_t locations_;
  std::mt19937_64 random_;
  std::vector<std::deque<Step>> waiting_;
  std::vector<uint64_t> done_;                     // handed over, or taken
  std::unordered_map<uint64_t, uint64_t> memory_;  // of the queues
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

// Of /proc/self/status, in bytes; 0: there is none.
uint64_t memory_of(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field) && line.size() > field.size() && line[field.size()] == ':') {
      return std::strtoull(line.c_str() + field.size() + 1, nullptr, 10) << 10;
    }
  }
  return 0;
}

// What is in use now; from here on the system counts the most anew.
uint64_t start_counting_memory() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << '5';
  return memory_of("VmRSS");
}

enum class Way { kStream, kWhole, kRobustness, kThreadOrder };

Judged judge(const Trace& trace, Way way) {
  CheckOptions options;
  options.jobs = 1;
  if (way == Way::kRobustness) {
    options.property = Property::kRobustness;
  }
  if (way == Way::kThreadOrder) {
    options.analysis.relation.order = TraceOrder::kThread;
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
      report ? fmt::format("{}{}", report->verdict_name(), report->complete() ? "" : ", incomplete")
             : report.error().to_string();
  judged.parts = report ? report->components : 0;
  return judged;
}

const char* name_of(Way way) {
  switch (way) {
    case Way::kStream:
      return "stream";
    case Way::kWhole:
      return "whole";
    case Way::kRobustness:
      return "robustness";
    default:
      return "thread order";
  }
}

// Nanoseconds per event for each size, the best of `rounds`.
void print_row(const std::string& name, const std::vector<std::vector<Trace>>& traces, Way way,
               int rounds) {
  std::vector<double> best(traces.size(), 1e18);
  Judged last;
  uint64_t most_bytes = 0;
  uint64_t threads = 1;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < traces.size(); ++i) {
      double seconds = 0;
      size_t events = 0;
      for (const Trace& trace : traces[i]) {
        const uint64_t in_use = i + 1 == traces.size() ? start_counting_memory() : 0;
        last = judge(trace, way);
        if (i + 1 == traces.size()) {
          const uint64_t most = memory_of("VmHWM");
          most_bytes = std::max(most_bytes, (most - std::min(most, in_use)) / trace.events.size());
          threads = trace.symbols.threads.size();
        }
        seconds += last.seconds;
        events += trace.events.size();
      }
      best[i] = std::min(best[i], seconds * 1e9 / static_cast<double>(events));
    }
  }
  fmt::print("{} ", name);
  for (const double nanoseconds : best) {
    fmt::print("{:>9.0f}", nanoseconds);
  }
  fmt::print(
      "  {:>16.2f}  {:>12}  {}, {}\n",
      *std::max_element(best.begin(), best.end()) / *std::min_element(best.begin(), best.end()),
      most_bytes / threads, last.parts, last.verdict);
  std::fflush(stdout);
}

void print_fenced(const std::vector<size_t>& sizes, uint32_t threads, uint32_t locations) {
  // As many events of each size: short traces are many, and all different.
  std::vector<std::vector<Trace>> traces(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t made = 0; made < sizes.back(); made += sizes[i]) {
      traces[i].push_back(Maker(threads, locations, made).make(sizes[i]));
    }
  }
  for (const Way way : {Way::kStream, Way::kWhole, Way::kRobustness}) {
    print_row(fmt::format("{:<22} {:>7} {:>9}", name_of(way), threads, locations), traces, way,
              kRounds);
  }
}

void print_plain(const std::vector<size_t>& sizes, uint32_t threads, uint32_t locations,
                 std::string_view wanted) {
  for (size_t kind = 0; kind < kPlainNames.size(); ++kind) {
    if (!wanted.empty() && wanted != kPlainNames[kind]) {
      continue;
    }
    // Short traces differ much: some of them, all different.
    std::vector<std::vector<Trace>> traces(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (uint32_t made = 0; made == 0 || made * sizes[i] < kShortTraces; ++made) {
        traces[i].push_back(
            PlainMaker(static_cast<Plain>(kind), threads, locations, i + 5 * made).make(sizes[i]));
      }
    }
    for (const Way way : {Way::kStream, Way::kThreadOrder}) {
      print_row(fmt::format("{:<8} {:<13} {:>7} {:>9}", kPlainNames[kind], name_of(way), threads,
                            locations),
                traces, way, 1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const size_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const std::string which = argc > 2 ? argv[2] : "";
  std::vector<size_t> sizes;
  for (const size_t size : {10'000U, 30'000U, 100'000U, 300'000U, 1'000'000U}) {
    if (size <= most) {
      sizes.push_back(size);
    }
  }
  fmt::print("{:<22} {:>7} {:>9} ", "check", "threads", "locations");
  for (const size_t size : sizes) {
    fmt::print("{:>9}", size);
  }
  fmt::print("  dearest/cheapest  bytes/thread  parts, verdict of the longest\n");
  const auto wanted = [&](int place, uint32_t number) {
    return argc <= place || std::strtoul(argv[place], nullptr, 10) == number;
  };
  for (const uint32_t threads : {2U, 4U, 8U}) {
    for (const uint32_t locations : {4U, 16U}) {
      if (!wanted(4, threads) || !wanted(5, locations)) {
        continue;
      }
      if (which != "plain") {
        print_fenced(sizes, threads, locations);
      }
      if (which != "fenced") {
        print_plain(sizes, threads, locations, argc > 3 ? argv[3] : "");
      }
    }
  }
  return 0;
}
