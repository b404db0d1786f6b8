#include "monitor/attach/cost.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <unistd.h>

#include "monitor/attach/bpf_uprobes.h"
#include "monitor/attach/perf_rings.h"
#include "monitor/attach/target.h"

namespace tsomon::attach {
namespace {

constexpr int kSeries = 5;
constexpr int kHits = 200;

alignas(8) volatile uint64_t accessed = 0;

// Its first instruction is a load.
__attribute__((noinline)) void probed_for_cost() {
  asm volatile("movq %0, %%rax" : : "m"(accessed) : "rax", "memory");
}
void watched_for_cost() { accessed = 1; }

// Of one call, in nanoseconds.
template <typename Body>
double best_time(const Body& body) {
  double best = 1e18;
  for (int series = 0; series < kSeries; ++series) {
    const int64_t begin = hit_clock();
    for (int i = 0; i < kHits; ++i) {
      body();
    }
    best = std::min(best, static_cast<double>(hit_clock() - begin) / kHits);
  }
  return best;
}

}  // namespace

Result<double> uprobe_hit_cost() {
  auto probes = BpfUprobes::create(size_t{1} << 20);
  if (!probes) {
    return tl::unexpected<Error>(probes.error());
  }
  const auto mappings = read_mappings(::getpid());
  if (!mappings) {
    return tl::unexpected<Error>(mappings.error());
  }
  const auto address = reinterpret_cast<uint64_t>(&probed_for_cost);
  for (const Mapping& mapping : *mappings) {
    if (address < mapping.begin || address >= mapping.end) {
      continue;
    }
    const double without = best_time(probed_for_cost);
    const auto link = (*probes)->attach(::getpid(), "/proc/self/exe",
                                        {{address - mapping.begin + mapping.offset, 0, 0}});
    if (!link) {
      return tl::unexpected<Error>(link.error());
    }
    const double with = best_time(probed_for_cost);
    std::vector<Hit> hits;
    (*probes)->read(hits);
    if (hits.size() == static_cast<size_t>(kSeries) * kHits) {
      return std::max(with - without, 0.0);
    }
  }
  return fail(ErrorKind::kEnvironment, "a uprobe of this process was not hit as often as expected");
}

Result<double> breakpoint_hit_cost() {
  auto rings = PerfRings::create();
  if (!rings) {
    return tl::unexpected<Error>(rings.error());
  }
  const double without = best_time(watched_for_cost);
  WatchPoint watch;
  watch.name = "a location of this process";
  watch.address = reinterpret_cast<uint64_t>(&accessed);
  watch.size = 8;
  auto attached = (*rings)->attach(
      ::getpid(), [] { return std::vector<pid_t>{static_cast<pid_t>(::gettid())}; }, {watch});
  if (!attached) {
    return tl::unexpected<Error>(attached.error());
  }
  const double with = best_time(watched_for_cost);
  (*rings)->detach();
  std::vector<Hit> hits;
  (*rings)->read(hits);
  if (std::none_of(hits.begin(), hits.end(),
                   [](const Hit& hit) { return hit.kind == Hit::Kind::kWatch; })) {
    return fail(ErrorKind::kEnvironment,
                "a watched store was not told; let the virtual machine pass debug registers on");
  }
  return std::max(with - without, 0.0);
}

}  // namespace tsomon::attach
