#include "offline/explain/lock_advice.h"

#include <algorithm>
#include <map>
#include <set>

#include "offline/explain/code.h"
#include "tso/model/location_table.h"
#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

constexpr uint32_t kAcquires = kinds::kAcquisitions;
constexpr uint32_t kReleases =
    kind_mask(EventKind::kRelease) | kind_mask(EventKind::kReleaseShared);
constexpr uint32_t kData = kinds::kAccesses & ~kinds::kLocks;

struct Seen {
  uint32_t acquisition = 0;
  uint64_t with = 0;
};

// Calls visit(event, locks that its thread holds) for every access to data.
template <typename Visit>
void with_held_locks(const Trace& trace, const Visit& visit) {
  std::map<ThreadId, std::vector<std::pair<uint64_t, uint32_t>>> held;  // lock, acquisition
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    spend(4);
    const Event& event = trace.events[e];
    auto& mine = held[event.thread];
    if (is(event, kAcquires)) {
      mine.emplace_back(event.address, e);
    } else if (is(event, kReleases)) {
      const auto last = std::find_if(mine.rbegin(), mine.rend(),
                                     [&](const auto& lock) { return lock.first == event.address; });
      if (last != mine.rend()) {
        mine.erase(std::next(last).base());
      }
    } else if (is(event, kData)) {
      visit(e, mine);
    }
  }
}

}  // namespace

std::optional<LockAdvice> lock_for(const Trace& trace, const std::vector<uint32_t>& block) {
  const LocationTable locations(trace);
  std::vector<bool> wanted(locations.size(), false);
  std::set<std::string> inside;
  for (const uint32_t e : block) {
    if (!is(trace.events[e], kData)) {
      continue;
    }
    for (const LocationId location : locations.overlapping(locations.of_event(e))) {
      wanted[location] = true;
    }
    inside.insert(location_of(trace, e));
  }
  std::map<uint64_t, Seen> locks;
  with_held_locks(trace, [&](uint32_t e, const auto& held) {
    if (wanted[locations.of_event(e)]) {
      for (const auto& [lock, acquisition] : held) {
        Seen& seen = locks.try_emplace(lock, Seen{acquisition, 0}).first->second;
        ++seen.with;
      }
    }
  });
  const auto best = std::max_element(locks.begin(), locks.end(), [](const auto& a, const auto& b) {
    return a.second.with < b.second.with;
  });
  if (best == locks.end()) {
    return std::nullopt;
  }
  LockAdvice advice;
  advice.acquisition = best->second.acquisition;
  advice.with = best->second.with;
  std::set<std::string> uncovered;
  with_held_locks(trace, [&](uint32_t e, const auto& held) {
    const bool is_held = std::any_of(held.begin(), held.end(),
                                     [&](const auto& lock) { return lock.first == best->first; });
    if (!wanted[locations.of_event(e)] || is_held) {
      return;
    }
    std::string place = location_of(trace, e);
    if (inside.count(place) == 0) {
      ++advice.without;
      if (uncovered.size() < LockAdvice::kMaxPlaces) {
        uncovered.insert(std::move(place));
      }
    }
  });
  advice.uncovered.assign(uncovered.begin(), uncovered.end());
  return advice;
}

}  // namespace tsomon::explain
