#include "tso/order/values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tso/model/lifetimes.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

uint64_t low_bytes(uint64_t value, uint32_t size) {
  return size == 0 || size >= 8 ? value : value & ((uint64_t{1} << (size * 8)) - 1);
}

bool only_this_range_is_written(const Relation& relation, const AccessIndex& accesses,
                                LocationId location) {
  spend(relation.locations().overlapping(location).size());
  for (const LocationId other : relation.locations().overlapping(location)) {
    if (other == location) {
      continue;
    }
    for (const ThreadAccesses& list : accesses.at(other)) {
      if (!list.writes.empty()) {
        return false;
      }
    }
  }
  return true;
}

// Splits the stores of one thread around a load: [0, before) come before it, [after, end) after.
struct Split {
  size_t before = 0;
  size_t after = 0;
};
// `before` of two events: the first comes before the second.
template <typename Before>
Split split(std::span<const uint32_t> writes, uint32_t load, const Before& before) {
  const auto open = std::partition_point(writes.begin(), writes.end(),
                                         [&](uint32_t w) { return w != load && before(w, load); });
  const auto after = std::partition_point(
      open, writes.end(), [&](uint32_t w) { return w == load || !before(load, w); });
  return {static_cast<size_t>(open - writes.begin()), static_cast<size_t>(after - writes.begin())};
}

// Whether a load of `value` may have read the store, when `last_before` are stores before the load.
template <typename Before>
bool may_provide(const RecordedValues& values, uint32_t store, uint64_t value,
                 const std::vector<uint32_t>& last_before, const Before& before) {
  const auto written = values.written(store);
  return (!written || *written == value) &&
         std::none_of(last_before.begin(), last_before.end(),
                      [&](uint32_t newer) { return newer != store && before(store, newer); });
}

class LoadExplainer {
 public:
  LoadExplainer(const Relation& relation, const AccessIndex& accesses, const RecordedValues& values,
                const Reachability& order)
      : relation_(relation), accesses_(accesses), values_(values), order_(order) {}

  Inference run() {
    for (LocationId location = 0; location < relation_.locations().size(); ++location) {
      if (!values_.usable(location)) {
        continue;
      }
      for (const ThreadAccesses& list : accesses_.at(location)) {
        for (const auto* events : {&list.reads, &list.writes}) {
          for (const uint32_t e : *events) {
            if (values_.read(e)) {
              explain(location, e);
            }
          }
        }
      }
    }
    return std::move(result_);
  }

  // `order` is the one that is asked.
  std::optional<Inference> run_one_by_one(bool backwards, Reachability* order) {
    const auto n = static_cast<uint32_t>(relation_.trace().events.size());
    size_t inserted = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t e = backwards ? n - 1 - i : i;
      const LocationId location = relation_.locations().of_event(e);
      if (location == LocationTable::kNone || !values_.usable(location) || !values_.read(e)) {
        continue;
      }
      explain(location, e);
      for (; inserted < result_.directed.size(); ++inserted) {
        if (!order->insert(result_.directed[inserted])) {
          return std::nullopt;
        }
      }
    }
    return std::move(result_);
  }

 private:
  // Every store that the load may have read lies between `first` and `last` of some thread, or is
  // the initial value.
  struct Candidates {
    std::vector<uint32_t> first;  // of each thread that has any
    std::vector<uint32_t> last;
    bool initial = false;
  };

  void explain(LocationId location, uint32_t load) {
    const auto lists = accesses_.at(location);
    const uint64_t value = *values_.read(load);
    spend(8 + 16 * lists.size());
    const auto before = [this](uint32_t e, uint32_t f) { return order_.reaches(e, f); };
    std::vector<Split> splits;
    std::vector<uint32_t> last_before;  // per thread, the newest store that comes before the load
    for (const ThreadAccesses& list : lists) {
      splits.push_back(split(list.writes, load, before));
      if (splits.back().before > 0) {
        last_before.push_back(list.writes[splits.back().before - 1]);
      }
    }
    const auto possible = [&](uint32_t w) {
      return w != load && may_provide(values_, w, value, last_before, before);
    };
    Candidates candidates;
    candidates.initial = values_.may_be_initial(location, load, last_before);
    for (size_t i = 0; i < lists.size(); ++i) {
      const size_t begin = splits[i].before > 0 ? splits[i].before - 1 : 0;
      if (splits[i].after - begin > kMaxCandidates) {
        return;
      }
      const auto writes = lists[i].writes.subspan(begin, splits[i].after - begin);
      spend(2 * writes.size() * (1 + last_before.size()));
      const auto first = std::find_if(writes.begin(), writes.end(), possible);
      if (first != writes.end()) {
        candidates.first.push_back(*first);
        candidates.last.push_back(*std::find_if(writes.rbegin(), writes.rend(), possible));
      }
    }
    order_around(load, candidates, lists, splits);
  }

  void order(uint32_t from, uint32_t to) {
    if (!order_.reaches(from, to)) {
      result_.directed.push_back({from, to});
    }
  }
  bool not_after(uint32_t w, uint32_t other) const {
    return w == other || order_.reaches(w, other);
  }

  // What is so whichever candidate the load has read.
  void order_around(uint32_t load, const Candidates& candidates,
                    std::span<const ThreadAccesses> lists, const std::vector<Split>& splits) {
    const std::vector<uint32_t>& first = candidates.first;
    const std::vector<uint32_t>& last = candidates.last;
    const bool initial = candidates.initial;
    if (first.empty() && !initial) {
      return;  // a value from nowhere
    }
    const auto all = [](const std::vector<uint32_t>& stores, const auto& predicate) {
      return std::all_of(stores.begin(), stores.end(), predicate);
    };
    // One that no candidate comes before, and one that none comes after.
    spend(first.size() * first.size());
    const auto oldest = std::find_if(first.begin(), first.end(), [&](uint32_t w) {
      return all(first, [&](uint32_t other) { return not_after(w, other); });
    });
    const auto newest = std::find_if(last.begin(), last.end(), [&](uint32_t w) {
      return all(last, [&](uint32_t other) { return not_after(other, w); });
    });
    if (!initial && oldest != first.end()) {
      order(*oldest, load);
    }
    for (size_t i = 0; i < lists.size(); ++i) {
      const auto& writes = lists[i].writes;
      // A store that comes before the load comes before what was read.
      if (!initial && newest != last.end() && splits[i].before > 0 &&
          writes[splits[i].before - 1] != *newest) {
        order(writes[splits[i].before - 1], *newest);
      }
      for (size_t at = splits[i].before; at < splits[i].after; ++at) {
        spend(1 + last.size());
        const uint32_t other = writes[at];
        if (other == load || (initial && !values_.after_initial(other))) {
          continue;
        }
        // A store that comes after what was read comes after the load.
        if (all(last, [&](uint32_t w) { return order_.reaches(w, other); })) {
          order(load, other);
          break;  // the later ones follow
        }
        if (newest != last.end() && other != *newest && !order_.reaches(other, *newest)) {
          result_.rules.push_back({load, *newest, other});
        }
      }
    }
  }

  const Relation& relation_;
  const AccessIndex& accesses_;
  const RecordedValues& values_;
  const Reachability& order_;
  Inference result_;
};

}  // namespace

RecordedValues::RecordedValues(const Relation& relation, const AccessIndex& accesses)
    : trace_(&relation.trace()), locations_(relation.locations().size()) {
  if (std::none_of(trace_->events.begin(), trace_->events.end(),
                   [](const Event& event) { return event.has_read_value != 0; })) {
    return;  // no location is usable
  }
  declare_initial_values(relation.locations());
  for (LocationId id = 0; id < relation.locations().size(); ++id) {
    locations_[id] = examine(relation, accesses, id);
  }
}

// What is said of the locations before they are looked at.
void RecordedValues::declare_initial_values(const LocationTable& locations) {
  const Symbols& symbols = trace_->symbols;
  if (symbols.initial_zero) {
    for (LocationId id = 0; id < locations.size(); ++id) {
      // What is given out again has some contents.
      if (!is_tagged(locations.key(id).address)) {
        locations_[id].initial = 0;
      }
    }
  }
  if (symbols.initial_values.empty()) {
    return;
  }
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> declared;  // the last one counts
  for (const InitialValue& value : symbols.initial_values) {
    declared[{value.location.address, value.location.size}] = value.value;
  }
  for (LocationId id = 0; id < locations.size(); ++id) {
    const LocationKey& key = locations.key(id);
    if (const auto at = declared.find({key.address, key.size}); at != declared.end()) {
      locations_[id].initial = low_bytes(at->second, key.size);
    }
  }
}

RecordedValues::Location RecordedValues::examine(const Relation& relation,
                                                 const AccessIndex& accesses, LocationId id) const {
  spend(accesses.at(id).size());
  std::unordered_set<uint64_t> loaded;
  std::unordered_set<uint64_t> stored;
  bool all_stores_known = true;
  std::vector<std::pair<ThreadId, uint32_t>> changed;
  for (const ThreadAccesses& list : accesses.at(id)) {
    std::optional<uint64_t> first;
    for (const uint32_t e : list.reads) {
      const auto value = after_initial(e) ? read(e) : std::nullopt;
      first = first ? first : value;
      if (value && value != first) {
        changed.emplace_back(trace_->events[e].thread, e);
        break;
      }
    }
    for (const auto* events : {&list.reads, &list.writes}) {
      spend(8 * events->size());
      for (const uint32_t e : *events) {
        if (const auto value = read(e)) {
          loaded.insert(*value);
        }
      }
    }
    for (const uint32_t e : list.writes) {
      const auto value = written(e);
      all_stores_known = all_stores_known && value.has_value();
      if (value) {
        stored.insert(*value);
      }
    }
  }
  Location result;
  if (loaded.empty() || !only_this_range_is_written(relation, accesses, id)) {
    return result;
  }
  result.initial = locations_[id].initial;
  if (!result.initial) {
    result.initial = read_before_all_stores(relation, accesses.at(id));
  }
  result.usable = true;
  result.changed = std::move(changed);
  if (all_stores_known) {
    // A value that nobody wrote was there before, whatever was declared.
    std::erase_if(loaded, [&](uint64_t value) { return stored.contains(value); });
    result.usable = loaded.size() <= 1;
    if (loaded.size() == 1) {
      result.initial = *loaded.begin();
    }
  }
  return result;
}

// Of the first accesses of the threads, one that comes before all stores to the location.
std::optional<uint64_t> RecordedValues::read_before_all_stores(
    const Relation& relation, std::span<const ThreadAccesses> lists) const {
  const auto first = [&](uint32_t e) {
    spend(lists.size());
    return std::all_of(lists.begin(), lists.end(), [&](const ThreadAccesses& list) {
      return list.writes.empty() || list.writes.front() == e ||
             relation.between(e, list.writes.front()) == Order::kBefore;
    });
  };
  for (const ThreadAccesses& list : lists) {
    for (const auto* events : {&list.reads, &list.writes}) {
      if (!events->empty() && read(events->front()) && first(events->front())) {
        return read(events->front());
      }
    }
  }
  return std::nullopt;
}

bool RecordedValues::may_be_initial(LocationId location, uint32_t load,
                                    const std::vector<uint32_t>& before) const {
  const auto& [usable, initial, changed] = locations_[location];
  return (!initial || *initial == read(load)) &&
         std::none_of(changed.begin(), changed.end(),
                      [&](const auto& change) {
                        return change.first == trace_->events[load].thread && change.second <= load;
                      }) &&
         std::none_of(before.begin(), before.end(), [&](uint32_t w) { return after_initial(w); });
}

Inference infer_from_values(const Relation& relation, const AccessIndex& accesses,
                            const RecordedValues& values, const Reachability& order) {
  return LoadExplainer(relation, accesses, values, order).run();
}

std::optional<Inference> infer_one_by_one(const Relation& relation, const AccessIndex& accesses,
                                          const RecordedValues& values, bool backwards,
                                          Reachability* order) {
  return LoadExplainer(relation, accesses, values, *order).run_one_by_one(backwards, order);
}

std::optional<ReadChoice> read_choice(const Relation& relation, const AccessIndex& accesses,
                                      const RecordedValues& values, uint32_t load,
                                      const std::function<int32_t(uint32_t, uint32_t)>& order) {
  const LocationId location = relation.locations().of_event(load);
  const uint64_t value = *values.read(load);
  const auto before = [&](uint32_t e, uint32_t f) { return order(e, f) == ReadChoice::kBefore; };
  std::vector<uint32_t> last_before;
  std::vector<uint32_t> elements{load};
  std::vector<uint32_t> others;
  spend(16 * accesses.at(location).size());
  for (const ThreadAccesses& list : accesses.at(location)) {
    Split around = split(list.writes, load, before);
    if (around.before > 0) {
      last_before.push_back(list.writes[--around.before]);
    }
    if (around.after - around.before > kMaxElements) {
      return std::nullopt;
    }
    const auto open = list.writes.subspan(around.before, around.after - around.before);
    std::copy_if(open.begin(), open.end(), std::back_inserter(others),
                 [&](uint32_t w) { return w != load; });
  }
  if (others.size() >= kMaxElements || !std::all_of(others.begin(), others.end(), [&](uint32_t w) {
        return values.after_initial(w);
      })) {
    return std::nullopt;
  }
  const auto impossible = std::stable_partition(others.begin(), others.end(), [&](uint32_t w) {
    return may_provide(values, w, value, last_before, before);
  });
  ReadChoice choice;
  choice.sources = static_cast<uint32_t>(impossible - others.begin());
  choice.initial = values.may_be_initial(location, load, last_before);
  elements.insert(elements.end(), others.begin(), others.end());
  choice.elements = static_cast<uint32_t>(elements.size());
  for (const uint32_t e : elements) {
    for (const uint32_t f : elements) {
      choice.order.push_back(e == f ? ReadChoice::kNone : order(e, f));
    }
  }
  return choice;
}

bool values_agree(const Relation& relation, const AccessIndex& accesses,
                  const RecordedValues& values, const std::vector<uint32_t>& events,
                  const OrientationOracle& before) {
  const auto earlier = [&](uint32_t e, uint32_t f) { return comes_before(relation, before, e, f); };
  std::vector<uint32_t> last_before;  // per thread, the newest store that comes before the load
  std::vector<std::span<const uint32_t>::iterator> open_from;  // ... and what follows it
  std::unordered_map<LocationId, uint64_t> initial;            // that loads must have read
  for (const uint32_t load : events) {
    const LocationId location = relation.locations().of_event(load);
    if (location == LocationTable::kNone || !values.usable(location) || !values.read(load)) {
      continue;
    }
    const uint64_t value = *values.read(load);
    const auto lists = accesses.at(location);
    last_before.clear();
    open_from.clear();
    spend(16 * lists.size());
    for (const ThreadAccesses& list : lists) {
      const auto end =
          std::partition_point(list.writes.begin(), list.writes.end(),
                               [&](uint32_t w) { return w != load && earlier(w, load); });
      if (end != list.writes.begin()) {
        last_before.push_back(*(end - 1));
      }
      open_from.push_back(end);
    }
    const auto provides = [&](uint32_t w) {
      return may_provide(values, w, value, last_before, earlier);
    };
    bool agrees = std::any_of(last_before.begin(), last_before.end(), provides);
    for (size_t i = 0; i < lists.size() && !agrees; ++i) {
      const auto after = std::partition_point(open_from[i], lists[i].writes.end(), [&](uint32_t w) {
        return w == load || !earlier(load, w);
      });
      spend(static_cast<uint64_t>(after - open_from[i]) * (1 + last_before.size()));
      agrees =
          std::any_of(open_from[i], after, [&](uint32_t w) { return w != load && provides(w); });
    }
    if (!agrees && (!values.may_be_initial(location, load, last_before) ||
                    initial.try_emplace(location, value).first->second != value)) {
      return false;
    }
  }
  return true;
}

}  // namespace tsomon
