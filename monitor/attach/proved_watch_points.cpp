#include "monitor/attach/proved_watch_points.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "monitor/attach/perf_rings.h"

namespace tsomon::attach {
namespace {

constexpr uint32_t kAccesses = 2;  // of a location on each processor

// One of each debugging register: the watch points of a processor.
alignas(8) std::array<uint64_t, kMaxWatchPoints> locations{};

template <typename T>
void load_and_store(uint64_t address) {
  auto* const location = reinterpret_cast<volatile T*>(address);
  const T value = *location;
  *location = value;
}

void access(const WatchPoint& own) {
  switch (own.size) {
    case 1:
      return load_and_store<uint8_t>(own.address);
    case 2:
      return load_and_store<uint16_t>(own.address);
    case 4:
      return load_and_store<uint32_t>(own.address);
    default:
      return load_and_store<uint64_t>(own.address);
  }
}

}  // namespace

Result<bool> prove_watch_points(const std::vector<WatchPoint>& watch) {
  if (watch.empty()) {
    return true;
  }
  std::vector<WatchPoint> own = watch;
  for (size_t i = 0; i < own.size(); ++i) {
    own[i].address = reinterpret_cast<uint64_t>(&locations[i]) + watch[i].address % 8;
  }
  auto rings = PerfRings::create();
  if (!rings) {
    return tl::unexpected<Error>(rings.error());
  }
  const pid_t thread = ::gettid();
  if (auto set = (*rings)->attach(
          ::getpid(), [thread] { return std::vector<pid_t>{thread}; }, own);
      !set) {
    return set;
  }
  std::vector<Hit> hits;
  std::vector<uint32_t> seen(own.size(), 0);
  uint32_t expected = 0;
  const auto access_all = [&] {
    std::for_each(own.begin(), own.end(), access);
    expected += kAccesses;
    hits.clear();
    (*rings)->read(hits);
    for (const Hit& hit : hits) {
      seen[hit.source] += hit.kind == Hit::Kind::kWatch ? 1 : 0;
    }
  };
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  for (int processor = 0; known && processor < CPU_SETSIZE; ++processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (CPU_ISSET(processor, &allowed) && ::sched_setaffinity(0, sizeof one, &one) == 0) {
      access_all();
    }
  }
  if (known) {
    ::sched_setaffinity(0, sizeof allowed, &allowed);
  }
  if (expected == 0) {
    access_all();  // where it may not be moved
  }
  for (size_t i = 0; i < own.size(); ++i) {
    if (seen[i] != expected) {
      return fail(
          ErrorKind::kEnvironment,
          fmt::format("{}: cannot be watched: this machine accepts hardware breakpoints but {} ({} "
                      "of {} accesses to a location of this process were reported); watch "
                      "functions with --unit and --accesses instead of --watch, or use a machine "
                      "that passes debug registers on",
                      watch[i].name, seen[i] == 0 ? "never reports them" : "does not report all",
                      seen[i], expected));
    }
  }
  return true;
}

}  // namespace tsomon::attach
