#include "tso/order/issue_order.h"

#include <algorithm>

#include "tso/order/refinement.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// The bytes of the load in what the store has written. Requires that the load lies inside.
uint64_t part_of(uint64_t written, const Event& store, const Event& load) {
  if (store.size == 0) {
    return written;
  }
  const uint64_t shift = 8 * (load.address - store.address);
  const uint64_t rest = shift < 64 ? written >> shift : 0;
  return load.size >= 8 ? rest : rest & ((uint64_t{1} << (8 * load.size)) - 1);
}

constexpr size_t kMaxToDrain = 64;

// The event by which the store has certainly left its buffer: looked for among the next few of its
// thread. (Of a relation of MemoryModel::kSc, visible_by() says that each makes itself visible.)
uint32_t drained_by(const Relation& issues, uint32_t store) {
  const auto events = issues.of_thread(issues.trace().events[store].thread);
  const size_t end = std::min<size_t>(events.size(), issues.position(store) + kMaxToDrain);
  for (size_t at = issues.position(store); at < end; ++at) {
    if (issues.drains(events[at])) {
      return events[at];
    }
  }
  return Relation::kNever;
}

// Two locked operations, `first` before `load`: the memory was changed in between by one of these,
// that came after `first` and before `load`. Both take effect where they are issued.
LoadSources sources_between(const Relation& issues, const AccessIndex& accesses,
                            const RecordedValues& values, const Reachability& order, uint32_t first,
                            uint32_t load) {
  const uint64_t value = *values.read(load);
  LoadSources found{load, {}, first};
  const auto committed_before_first = [&](uint32_t w) {
    const uint32_t by = drained_by(issues, w);
    return by == first || (by != Relation::kNever &&
                           (issues.certainly_before(by, first) || order.reaches(by, first)));
  };
  for (const ThreadAccesses& list : accesses.at(issues.locations().of_event(load))) {
    spend(1 + 4 * list.writes.size());
    for (const uint32_t w : list.writes) {
      const auto written = values.written(w);
      if (w != first && w != load && (!written || *written == value) && !order.reaches(load, w) &&
          !committed_before_first(w)) {
        found.stores.push_back(w);
        if (found.stores.size() > kMaxCandidates) {
          return found;
        }
      }
    }
  }
  return found;
}

}  // namespace

bool has_values(const Trace& trace) { return trace.complete && trace.has_read_values(); }

bool reads_memory(const Relation& effects, uint32_t load, bool values) {
  const uint32_t source = effects.source(load);
  if (source == Relation::kNever) {
    return true;
  }
  const Trace& trace = effects.trace();
  const auto read = trace.read_value(trace.events[load]);
  const auto written = trace.write_value(trace.events[source]);
  return values && read && written &&
         part_of(*written, trace.events[source], trace.events[load]) != *read;
}

std::optional<std::vector<Edge>> issue_order_from_values(const Relation& issues,
                                                         const AccessIndex& accesses,
                                                         uint64_t max_undirected) {
  RelationOptions options = issues.options();
  options.model = MemoryModel::kTso;
  const Relation effects(issues.trace(), issues.locations(), options);
  const auto refined = refine(effects, AccessIndex(effects), {true, max_undirected, {}});
  if (!refined || refined->values_contradict) {
    return std::nullopt;
  }
  std::vector<Edge> known;
  const auto shows = [&](uint32_t e, uint32_t f) {
    return !effects.is_store(f) && refined->order.reaches(e, f) && reads_memory(effects, f, true);
  };
  for (const Edge& edge : build_event_graph(issues, accesses, max_undirected).undirected) {
    spend(4);
    if (shows(edge.from, edge.to)) {
      known.push_back(edge);
    } else if (shows(edge.to, edge.from)) {
      known.push_back({edge.to, edge.from});
    }
  }
  return known;
}

std::vector<LoadSources> foreign_sources(const Relation& issues, const AccessIndex& accesses,
                                         const RecordedValues& values, const Reachability& order,
                                         const std::vector<uint32_t>& loads) {
  std::vector<LoadSources> result;
  const Trace& trace = issues.trace();
  for (const uint32_t load : loads) {
    const LocationId location = issues.locations().of_event(load);
    if (location == LocationTable::kNone || !values.usable(location) || !values.read(load)) {
      continue;
    }
    const uint64_t value = *values.read(load);
    const auto may_be = [&](uint32_t w) {
      const auto written = values.written(w);
      return !written || *written == value;
    };
    LoadSources found{load, {}, Relation::kNever};
    std::vector<uint32_t> own;  // the newest store of its own thread
    for (const ThreadAccesses& list : accesses.at(location)) {
      spend(1 + 4 * list.writes.size());
      for (const uint32_t w : list.writes) {
        const bool mine = trace.events[w].thread == trace.events[load].thread;
        if (!mine && issues.drains(w) && issues.drains(load) && !may_be(w) &&
            !order.reaches(w, load) && !order.reaches(load, w)) {
          LoadSources between = sources_between(issues, accesses, values, order, w, load);
          if (between.stores.size() <= kMaxCandidates) {
            result.push_back(std::move(between));
          }
        }
        if (mine && issues.position(w) < issues.position(load)) {
          own.assign(1, w);
        } else if (!mine && may_be(w) && found.stores.size() <= kMaxCandidates) {
          found.stores.push_back(w);
        }
      }
    }
    const bool others =
        own.empty() ? values.may_be_initial(location, load, own) : may_be(own.front());
    if (!others && !found.stores.empty() && found.stores.size() <= kMaxCandidates) {
      result.push_back(std::move(found));
    }
  }
  return result;
}

bool sources_come_first(const Relation& issues, const std::vector<LoadSources>& loads,
                        const OrientationOracle& before) {
  return std::all_of(loads.begin(), loads.end(), [&](const LoadSources& each) {
    if (each.overwritten_by != Relation::kNever &&
        !comes_before(issues, before, each.overwritten_by, each.load)) {
      return true;
    }
    spend(each.stores.size());
    return !std::all_of(each.stores.begin(), each.stores.end(),
                        [&](uint32_t w) { return comes_before(issues, before, each.load, w); });
  });
}

}  // namespace tsomon
