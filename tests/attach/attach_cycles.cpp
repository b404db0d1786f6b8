// Attaches to a process and detaches again, many times: attach_cycles PID UNIT TIMES
//
// Exit status 0 when this process has no more descriptors and mappings than after the first times
// and hardly more memory, 1 when it has, 4 when attaching is not possible here.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <malloc.h>
#include <sys/types.h>

#include "monitor/attach/attach.h"
#include "monitor/attach/proved_watch_points.h"

namespace {

struct Held {
  size_t descriptors = 0;
  size_t mappings = 0;
  size_t pages = 0;
  size_t bytes = 0;  // allocated and not freed
};

Held held() {
  Held now;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++now.descriptors;
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    ++now.mappings;
  }
  std::ifstream sizes("/proc/self/statm");
  size_t all = 0;
  sizes >> all >> now.pages;
  now.bytes = mallinfo2().uordblks;
  return now;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    return 2;
  }
  const auto pid = static_cast<pid_t>(std::atoi(argv[1]));
  const int times = std::atoi(argv[3]);
  constexpr int kWarm = 3;  // what is allocated once is there after these
  const bool breakpoints = tsomon::attach::prove_watch_points({{"a location", 0, 8}}).has_value();
  Held before;
  uint64_t hits = 0;
  for (int i = 0; i < times + kWarm; ++i) {
    if (i == kWarm) {
      before = held();
    }
    tsomon::attach::AttachOptions options;
    options.plan.units = {argv[2]};
    if (breakpoints) {
      options.plan.watch = {"fees"};
    }
    options.duration = 0.02;
    const auto summary = tsomon::attach::attach_to(
        pid, options, [](const tsomon::ReportedFinding& found) { (void)found; });
    if (!summary) {
      std::fprintf(stderr, "time %d: %s\n", i, summary.error().to_string().c_str());
      return summary.error().kind == tsomon::ErrorKind::kEnvironment ? 4 : 1;
    }
    hits += summary->hits;
  }
  const Held after = held();
  std::printf(
      "%d times, %llu hits: descriptors %zu -> %zu, mappings %zu -> %zu, pages %zu -> %zu, bytes "
      "%zu -> %zu\n",
      times, static_cast<unsigned long long>(hits), before.descriptors, after.descriptors,
      before.mappings, after.mappings, before.pages, after.pages, before.bytes, after.bytes);
  // What is cached by the libraries may grow a little, and the allocator keeps pieces; a thing
  // forgotten each time would be more than this.
  constexpr size_t kMoreMappings = 8;
  constexpr size_t kMoreBytes = 4096;
  const size_t more_pages = 512 + static_cast<size_t>(times);
  return after.descriptors <= before.descriptors &&
                 after.mappings <= before.mappings + kMoreMappings &&
                 after.bytes <= before.bytes + kMoreBytes &&
                 after.pages <= before.pages + more_pages && hits != 0
             ? 0
             : 1;
}
