#include "tso/order/lock_exclusion.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon {
namespace {

struct Held {
  uint32_t acquisition = 0;
  uint32_t times = 0;
  uint64_t waited = 0;  // times before
};

}  // namespace

bool locks_exclude(const Relation& relation) {
  const RelationOptions& options = relation.options();
  return relation.trace().complete && options.lock_order &&
         options.semantics == Semantics::kExact && !relation.acquisitions().empty();
}

LockExclusion::LockExclusion(const Relation& relation, bool locks,
                             const std::vector<ValueSection>& words)
    : relation_(relation), in_threads_(relation.threads()) {
  if (locks) {
    add_locks();
  }
  for (const ValueSection& section : words) {
    in_threads_[section.thread].sections.push_back(
        {section.word, section.acquisition, section.release, section.given_back});
  }
  for (auto& [sections, last] : in_threads_) {
    std::sort(sections.begin(), sections.end(), [&](const Section& a, const Section& b) {
      return relation.position(a.acquisition) < relation.position(b.acquisition);
    });
    for (const Section& section : sections) {
      sections_.try_emplace(section.acquisition, section);
      if (section.given_back) {
        sections_.try_emplace(section.release, section);
      }
      last.push_back(std::max(last.empty() ? 0 : last.back(), relation.position(section.release)));
    }
  }
}

void LockExclusion::add_locks() {
  const auto& events = relation_.trace().events;
  FlatMap<LocationId, bool> given_away;  // released by a thread that did not hold them
  FlatMap<LocationId, Held> held;
  for (ThreadId thread = 0; thread < relation_.threads(); ++thread) {
    held.clear();
    uint64_t waited = 0;
    for (const uint32_t e : relation_.of_thread(thread)) {
      if (events[e].kind() == EventKind::kWait) {
        ++waited;
      }
      if (!is(events[e], kinds::kLocks)) {
        continue;
      }
      const LocationId lock = relation_.locations().of_event(e);
      Held& now = held[lock];
      if (is(events[e], kinds::kAcquisitions)) {
        if (now.times++ == 0) {
          now.acquisition = e;
          now.waited = waited;
        }
      } else if (now.times == 0) {
        if (e < relation_.trace().pending_prefix) {
          continue;  // acquired before
        }
        given_away.try_emplace(lock, true);
      } else if (--now.times == 0 && now.waited == waited) {
        in_threads_[thread].sections.push_back({lock, now.acquisition, e});
      }
    }
  }
  for (auto& [sections, last] : in_threads_) {
    std::erase_if(sections, [&](const Section& one) { return given_away.contains(one.lock); });
  }
}

bool LockExclusion::exclude(const Section& a, const Section& b) const {
  return a.lock == b.lock &&
         !(relation_.only_reads(a.acquisition) && relation_.only_reads(b.acquisition));
}

Inference LockExclusion::infer(std::span<const Edge> open, const Reachability& order) const {
  Inference result;
  const auto add = [&](uint32_t from, uint32_t to) {
    if (!order.reaches(from, to)) {
      result.directed.push_back({from, to});
    }
  };
  spend(2 * open.size());
  for (const Edge& edge : open) {
    if (!is_acquisition(edge.from) && !is_acquisition(edge.to)) {
      continue;
    }
    const Section* const a = sections_.find(edge.from);
    const Section* const b = sections_.find(edge.to);
    if (a == nullptr || b == nullptr || !exclude(*a, *b)) {
      continue;
    }
    const bool a_first = order.reaches(a->acquisition, b->release);
    const bool b_first = order.reaches(b->acquisition, a->release);
    if (a_first) {
      add(a->release, b->acquisition);
    }
    if (b_first) {
      add(b->release, a->acquisition);
    }
    // Once for each pair of sections.
    if (!a_first && !b_first && edge.from == a->acquisition && edge.to == b->acquisition) {
      result.rules.push_back({a->release, a->acquisition, b->acquisition});
      result.rules.push_back({b->release, b->acquisition, a->acquisition});
    }
  }
  return result;
}

// Calls function(section) for those around e until it gives true.
template <typename Function>
void LockExclusion::for_each_around(uint32_t e, const Function& function) const {
  const auto& [sections, last] = in_threads_[relation_.trace().events[e].thread];
  const uint32_t at = relation_.position(e);
  auto i = static_cast<size_t>(
      std::partition_point(
          sections.begin(), sections.end(),
          [&](const Section& section) { return relation_.position(section.acquisition) <= at; }) -
      sections.begin());
  for (; i > 0 && last[i - 1] >= at; --i) {
    spend(1);
    if (relation_.position(sections[i - 1].release) >= at && function(sections[i - 1])) {
      return;
    }
  }
}

std::optional<std::pair<LockExclusion::Section, LockExclusion::Section>> LockExclusion::common_lock(
    uint32_t e, uint32_t f) const {
  std::optional<std::pair<Section, Section>> result;
  for_each_around(e, [&](const Section& a) {
    for_each_around(f, [&](const Section& b) {
      if (exclude(a, b)) {
        result.emplace(a, b);
      }
      return result.has_value();
    });
    return result.has_value();
  });
  return result;
}

}  // namespace tsomon
