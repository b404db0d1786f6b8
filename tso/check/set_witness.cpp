#include "tso/check/set_witness.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "tso/model/location_table.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using Edges = std::map<uint32_t, std::set<uint32_t>>;

// What has no edge that leads to it is taken away, as long as there is something.
bool has_cycle(Edges edges) {
  for (bool changed = true; changed;) {
    changed = false;
    spend(16 * edges.size());
    std::set<uint32_t> entered;
    for (const auto& [from, all] : edges) {
      entered.insert(all.begin(), all.end());
    }
    for (auto at = edges.begin(); at != edges.end();) {
      const bool keep = entered.contains(at->first);
      changed = changed || !keep;
      at = keep ? std::next(at) : edges.erase(at);
    }
  }
  return !edges.empty();
}

}  // namespace

std::string fault_of_set_witness(const Trace& trace, const std::vector<Step>& witness,
                                 const std::vector<uint32_t>& unit_of, const SetBytes* bytes) {
  const auto key = [&](uint32_t e) {
    return LocationKey{trace.events[e].address, trace.events[e].size};
  };
  std::vector<uint32_t> order;
  for (size_t at = 0; at < witness.size(); ++at) {
    const Step& step = witness[at];
    if (step.event >= trace.events.size() || !is(trace.events[step.event], kinds::kAccesses)) {
      return fmt::format("names event {}, which is no access", step.event);
    }
    const bool stores = is(trace.events[step.event], kinds::kStores);
    if (step.commit
            ? at == 0 || witness[at - 1] != Step{false, step.event} || !stores
            : stores && (at + 1 == witness.size() || witness[at + 1] != Step{true, step.event})) {
      return fmt::format("does not commit event {} at once", step.event);
    }
    if (!step.commit) {
      order.push_back(step.event);
    }
  }
  Edges edges;
  for (size_t i = 0; i < order.size(); ++i) {
    spend(8 * order.size());
    for (size_t j = i + 1; j < order.size(); ++j) {
      const Event& first = trace.events[order[i]];
      const Event& second = trace.events[order[j]];
      if (first.thread == second.thread ? order[i] >= order[j]
                                        : trace.hi(second) < trace.lo(first)) {
        return fmt::format("issues event {} after event {}", order[j], order[i]);
      }
      const bool conflict = first.kind() != EventKind::kRead || second.kind() != EventKind::kRead;
      if (conflict && unit_of[order[i]] != unit_of[order[j]] &&
          (bytes != nullptr ? bytes->meets_both(key(order[i]), key(order[j]))
                            : overlap(key(order[i]), key(order[j])))) {
        edges[unit_of[order[i]]].insert(unit_of[order[j]]);
      }
    }
  }
  return has_cycle(std::move(edges)) ? std::string() : "shows an execution without a cycle";
}

}  // namespace tsomon
