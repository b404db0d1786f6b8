#include "monitor/attach/cost.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <unistd.h>

#include "monitor/attach/choose_uprobes.h"
#include "monitor/process/target.h"

namespace tsomon::attach {
namespace {

constexpr int kSeries = 5;
constexpr int kHits = 200;

alignas(8) uint64_t accessed = 0;

// Its first instruction is a load.
__attribute__((noinline)) void probed_for_cost() {
  asm volatile("movq %0, %%rax" : : "m"(accessed) : "rax", "memory");
}

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

Result<double> uprobe_hit_cost(Uprobes& probes) {
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
    const auto link = probes.attach(::getpid(), "/proc/self/exe",
                                    {{address - mapping.begin + mapping.offset, 0, 0, {}}});
    if (!link) {
      return tl::unexpected<Error>(link.error());
    }
    const double with = best_time(probed_for_cost);
    std::vector<Hit> hits;
    probes.read(hits);
    if (hits.size() == static_cast<size_t>(kSeries) * kHits) {
      return std::max(with - without, 0.0);
    }
  }
  return fail(ErrorKind::kEnvironment, "a uprobe of this process was not hit as often as expected");
}

Result<double> uprobe_hit_cost() {
  auto chosen = choose_uprobes(::getpid());
  if (!chosen) {
    return tl::unexpected<Error>(chosen.error());
  }
  return uprobe_hit_cost(*chosen->probes);
}

}  // namespace tsomon::attach
