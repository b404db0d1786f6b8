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
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "offline/consistency/consistency.h"
#include "tests/offline/simulated_run.h"

using namespace tsomon;
using tsomon::testing::simulated_run;

namespace {

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
    write_axe(simulated_run({static_cast<uint32_t>(std::atoi(argv[3])),
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
          const Trace trace = simulated_run({threads, locations, operations}, 1);
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
