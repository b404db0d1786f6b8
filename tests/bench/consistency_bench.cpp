// What the consistency check costs on simulated TSO runs: consistency_bench [OPERATIONS [ROUNDS]]
//
// Every store writes a value of its own, loads and stores are equally frequent, one operation in
// fifty is a fence or a locked operation; threads and commits are scheduled at random. Prints the
// median of the rounds per model. The trace itself is written with --axe FILE THREADS LOCATIONS.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "offline/consistency.h"

using namespace tsomon;

namespace {

struct Shape {
  uint32_t threads = 4;
  uint32_t locations = 4;
  uint32_t operations = 20'000;
};

Trace simulate(const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  Trace trace;
  std::vector<uint64_t> memory(shape.locations, 0);
  std::vector<std::deque<std::pair<uint32_t, uint64_t>>> buffers(shape.threads);
  for (uint32_t location = 0; location < shape.locations; ++location) {
    trace.symbols.names.intern(fmt::format("M[{}]", location));
  }
  for (uint32_t thread = 0; thread < shape.threads; ++thread) {
    trace.symbols.threads.intern(fmt::format("{}", thread));
  }
  uint64_t fresh = 1;
  const auto commit = [&](uint32_t thread) {
    memory[buffers[thread].front().first] = buffers[thread].front().second;
    buffers[thread].pop_front();
  };
  while (trace.events.size() < shape.operations) {
    const uint32_t thread = below(shape.threads);
    auto& buffer = buffers[thread];
    if (!buffer.empty() && (buffer.size() > 16 || below(2) == 0)) {
      commit(thread);
      continue;
    }
    Event event;
    event.thread = thread;
    event.address = below(shape.locations);
    const auto location = static_cast<uint32_t>(event.address);
    const auto place = static_cast<int64_t>(trace.events.size());
    const uint32_t choice = below(100);
    if (choice < 49) {
      event.set_kind(EventKind::kRead);
      uint64_t value = memory[location];
      for (const auto& [where, written] : buffer) {
        value = where == location ? written : value;
      }
      trace.add(event, place, place, value);
    } else if (choice < 98) {
      event.set_kind(EventKind::kWrite);
      buffer.emplace_back(location, fresh);
      trace.add(event, place, place, {}, fresh++);
    } else {
      while (!buffer.empty()) {
        commit(thread);
      }
      if (choice == 98) {
        event.set_kind(EventKind::kFence);
        event.address = 0;
        trace.add(event, place, place);
      } else {
        event.set_kind(EventKind::kReadModifyWrite);
        const uint64_t old = std::exchange(memory[location], fresh);
        trace.add(event, place, place, old, fresh++);
      }
    }
  }
  return trace;
}

void write_axe(const Trace& trace, const char* path) {
  std::ofstream file(path);
  for (const Event& event : trace.events) {
    file << event.thread << ": ";
    switch (event.kind()) {
      case EventKind::kRead:
        file << "M[" << event.address << "] == " << *trace.read_value(event) << '\n';
        break;
      case EventKind::kWrite:
        file << "M[" << event.address << "] := " << *trace.write_value(event) << '\n';
        break;
      case EventKind::kReadModifyWrite:
        file << "{ M[" << event.address << "] == " << *trace.read_value(event) << "; M["
             << event.address << "] := " << *trace.write_value(event) << " }\n";
        break;
      default:
        file << "sync\n";
    }
  }
  file << "check\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "--axe") == 0) {
    write_axe(simulate({static_cast<uint32_t>(std::atoi(argv[3])),
                        static_cast<uint32_t>(std::atoi(argv[4])), 20'000},
                       1),
              argv[2]);
    return 0;
  }
  const uint32_t operations = argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 20'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  fmt::print("{:>8} {:>10} {:>11} {:>6} {:>10} {:>13} {:>10}\n", "threads", "locations",
             "operations", "model", "decisions", "verdict", "seconds");
  for (const uint32_t threads : {4U, 16U}) {
    for (const uint32_t locations : {4U, 16U, 64U}) {
      for (const ConsistencyModel model : {ConsistencyModel::kTso, ConsistencyModel::kBoth}) {
        std::vector<double> seconds;
        ConsistencyReport report;
        for (int round = 0; round < rounds; ++round) {
          const Trace trace = simulate({threads, locations, operations}, 1);
          ConsistencyOptions options;
          options.model = model;
          const auto start = std::chrono::steady_clock::now();
          report = *check_consistency(trace, options);
          seconds.push_back(
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        }
        std::sort(seconds.begin(), seconds.end());
        fmt::print("{:>8} {:>10} {:>11} {:>6} {:>10} {:>13} {:>10.4f}\n", threads, locations,
                   operations, model == ConsistencyModel::kTso ? "tso" : "both", report.decisions,
                   static_cast<int>(report.verdict), seconds[seconds.size() / 2]);
      }
    }
  }
  return 0;
}
