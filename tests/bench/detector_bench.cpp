// What the detector costs beside merely parsing the same text trace, in one run:
//   detector_bench [--policy sc|tso|sets] [--history EVENTS] [--retained UNITS] [--rounds N]
//   FILE...
// For each file: parse only and parse + detector, interleaved, the best of the rounds; events per
// second of processor time, their ratio, and the resident memory after the last event.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/std/reader.h"
#include "online/detector/detector.h"

namespace {

// Of this process: other programs on the machine count less.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double resident_megabytes() {
  std::ifstream status("/proc/self/statm");
  double total = 0;
  double resident = 0;
  status >> total >> resident;
  return resident * 4096 / 1e6;
}

struct Measured {
  double seconds = 0;
  uint64_t events = 0;
  double megabytes = 0;
  tsomon::DetectorStatistics statistics;
};

Measured read(const char* file, const tsomon::DetectorOptions* options) {
  auto reader = tsomon::StdReader::open(file);
  if (!reader) {
    std::fprintf(stderr, "%s\n", reader.error().to_string().c_str());
    std::exit(2);
  }
  Measured result;
  const double start = cpu_seconds();
  uint64_t windows = 0;
  tsomon::DetectorCallbacks callbacks;
  callbacks.on_candidate = [&](tsomon::DetectedCandidate&&) { ++windows; };
  callbacks.wants_events = [&](const tsomon::DetectedCandidate&) { return windows < 16; };
  tsomon::Detector detector(reader->symbols(),
                            options != nullptr ? *options : tsomon::DetectorOptions(), callbacks);
  tsomon::EventBlock block;
  while (reader->next(block).value_or(false)) {
    if (options != nullptr) {
      detector.add(block, result.events);
    }
    result.events += block.events.size();
  }
  result.megabytes = resident_megabytes();
  if (options != nullptr) {
    detector.finish();
    result.statistics = detector.statistics();
  }
  result.seconds = cpu_seconds() - start;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  tsomon::DetectorOptions options;
  int rounds = 3;
  std::vector<const char*> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--policy" && i + 1 < argc) {
      const std::string_view name = argv[++i];
      options.policy = name == "sc"     ? tsomon::DetectorPolicy::kSc
                       : name == "sets" ? tsomon::DetectorPolicy::kAtomicSets
                                        : tsomon::DetectorPolicy::kTso;
    } else if (word == "--history" && i + 1 < argc) {
      options.history_events = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--retained" && i + 1 < argc) {
      options.tuning.max_retained = static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    } else if (word == "--rounds" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else {
      files.push_back(argv[i]);
    }
  }
  std::printf("%12s %14s %14s %8s %8s  %s\n", "events", "parsed/s", "detected/s", "ratio", "MB",
              "cycles, candidates, evicted, file");
  for (const char* file : files) {
    Measured parsed;
    Measured detected;
    for (int i = 0; i < rounds; ++i) {
      const Measured p = read(file, nullptr);
      const Measured d = read(file, &options);
      parsed = i == 0 || p.seconds < parsed.seconds ? p : parsed;
      detected = i == 0 || d.seconds < detected.seconds ? d : detected;
    }
    const auto events = static_cast<double>(parsed.events);
    std::printf("%12.0f %14.0f %14.0f %8.2f %8.1f  %lu, %lu, %lu, %s\n", events,
                events / parsed.seconds, events / detected.seconds,
                detected.seconds / parsed.seconds, detected.megabytes,
                static_cast<unsigned long>(detected.statistics.cycles),
                static_cast<unsigned long>(detected.statistics.candidates),
                static_cast<unsigned long>(detected.statistics.evicted), file);
  }
  return 0;
}
