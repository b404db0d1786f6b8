// What locations forget: accesses that a later one stands for, and those of units that are gone.
#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "online/tso_policy/order_locations.h"

namespace tsomon {
namespace {

constexpr size_t kManyRecords = 256;

}  // namespace

// Drops what a later visible access of the same thread stands for: a store for everything, a load
// for loads.
void OrderLocations::prune(Location& location) {
  auto& records = location.records;
  latest_visible_.resize(threads_.size());
  for (const Record& record : records) {
    latest_visible_[record.thread] = {};
  }
  for (const Record& record : records) {
    if (is_visible(record)) {
      LatestVisible& latest = latest_visible_[record.thread];
      latest.access = std::max(latest.access, record.index);
      latest.store = record.writes ? std::max(latest.store, record.index) : latest.store;
    }
  }
  records.erase_if([this](const Record& record) {
    const LatestVisible& latest = latest_visible_[record.thread];
    return record.index < (record.writes ? latest.store : latest.access);
  });
  size_t bound = options_.tuning.max_pending_stores + threads_.size();
  if (records.size() > std::min(kManyRecords, bound)) {
    drop_between(location);
  }
  if (records.size() > bound) {
    const auto open = static_cast<uint64_t>(
        std::count_if(records.begin(), records.end(), [this](const Record& record) {
          return record.hi >= threads_.now() && record.hi != kTimeMax;
        }));
    bound += std::min(open, kMaxOpen * options_.tuning.max_pending_stores);
  }
  if (records.size() > bound) {
    evict_pending(location);
  }
  location.prune_at =
      static_cast<uint32_t>(std::min<size_t>(std::max<size_t>(8, 2 * records.size()), bound + 1));
}

// A thread that spins on what it has stored itself: of loads that are over and wait for the same
// store, and for the same releases, only the first and the last make edges (conflicts_of_many()).
void OrderLocations::drop_between(Location& location) {
  struct Ends {
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
  };
  std::map<std::tuple<ThreadId, uint64_t, uint64_t>, Ends> waiting;
  const auto ends_of = [&](const Record& record) -> Ends* {
    if (record.kind != EventKind::kRead || record.store == 0 || record.hi >= threads_.now()) {
      return nullptr;
    }
    return &waiting[{record.thread, record.store, record.clock}];
  };
  for (const Record& record : location.records) {
    if (Ends* const ends = ends_of(record)) {
      ends->first = std::min(ends->first, record.index);
      ends->last = std::max(ends->last, record.index);
    }
  }
  location.records.erase_if([&](const Record& record) {
    const Ends* const ends = ends_of(record);
    if (ends == nullptr || record.index <= ends->first || ends->last <= record.index) {
      return false;
    }
    if (!gone(record)) {
      lost_accesses_.push_back(record.unit);
    }
    return true;
  });
}

// The older half of what is not visible.
void OrderLocations::evict_pending(Location& location) {
  std::vector<uint64_t> pending;
  for (const Record& record : location.records) {
    if (!is_visible(record)) {
      pending.push_back(record.index);
    }
  }
  if (pending.empty()) {
    return;
  }
  const auto middle = pending.begin() + static_cast<ptrdiff_t>(pending.size() / 2);
  std::nth_element(pending.begin(), middle, pending.end());
  const uint64_t last = *middle;
  graph_.statistics().evicted += location.records.erase_if(
      [&](const Record& record) { return record.index <= last && !is_visible(record); });
}

void OrderLocations::follow_units(uint64_t next) {
  oldest_ = next;
  for (const Node node : graph_.in_use()) {
    oldest_ = std::min(oldest_, graph_.unit(node).first);
  }
  if (pace_.due(index_.size(), graph_.merged())) {
    follow_locations();
    pace_.done(index_.size(), graph_.size());
  }
}

// The latest visible store of a merged unit stands for all of the unit's accesses before it: their
// edges would lead from the same node to the same events. For an event of the thread of that store
// its program order does.
void OrderLocations::drop_alike(Location& location) {
  auto& records = location.records;
  constexpr size_t kLookedAt = 64;  // what lies behind may stay
  const size_t size = std::min(records.size(), kLookedAt);
  uint64_t alike = 0;
  for (size_t i = 0; i < size; ++i) {
    const Record& record = records[i];
    const bool stands = (kind_mask(record.kind) & kinds::kLocks) == 0 &&
                        graph_.unit(record.unit).merged != 0 && is_visible(record);
    alike |= uint64_t{stands} << i;
  }
  uint64_t dropped = 0;
  for (uint64_t stores = alike; stores != 0; stores &= stores - 1) {
    const Record& store = records[static_cast<size_t>(std::countr_zero(stores))];
    for (uint64_t others = store.writes ? alike : 0; others != 0; others &= others - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(others));
      const bool earlier = records[i].unit == store.unit && records[i].index < store.index;
      dropped |= uint64_t{earlier} << i;
    }
  }
  if (dropped != 0) {
    size_t i = 0;
    records.erase_if([&](const Record&) { return i < size && ((dropped >> i++) & 1) != 0; });
  }
}

void OrderLocations::follow_locations() {
  index_.for_each([this](LocationId id) {
    Location& location = locations_[id];
    if (location.after <= oldest_) {
      location.records.truncate(0);
    } else {
      follow_records(location);
    }
    if (graph_.merged()) {
      location.records.shrink();
    }
    const LocationKey& key = index_.key(id);
    const bool named = key.size == 0 && key.address < LocationIndex::kMaxNamed;
    if (location.records.empty() && !named && index_.size() > PruneSchedule::kFewLocations) {
      location = Location();
      releases_[id].clear();
      index_.erase(id);
    }
  });
}

void OrderLocations::follow_records(Location& location) {
  location.records.erase_if([this](Record& record) {
    const Node unit = graph_.moved_to(record.unit);
    // Merging gives up the node, and with it the generation, in the same sweep.
    const bool moved = unit != record.unit;
    const auto then = static_cast<uint16_t>(graph_.generation(record.unit) - (moved ? 1 : 0));
    if (unit == kNone || record.generation != then) {
      return true;
    }
    record.unit = unit;
    record.generation = graph_.generation(unit);
    return false;
  });
  drop_alike(location);
}

}  // namespace tsomon
