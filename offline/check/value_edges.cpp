#include "offline/check/value_edges.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "tso/order/values.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

struct Writer {
  uint32_t store = 0;
  const ThreadAccesses* list = nullptr;
  bool only = true;
};

// The values of one location.
class LocationValues {
 public:
  LocationValues(const Relation& relation, const AccessIndex& accesses,
                 const RecordedValues& values, LocationId location, std::vector<Edge>* edges)
      : relation_(relation),
        values_(values),
        lists_(accesses.at(location)),
        initial_(values.initial(location)),
        edges_(edges) {
    for (const ThreadAccesses& list : lists_) {
      for (const uint32_t store : list.writes) {
        spend(4);
        if (const auto value = values.written(store)) {
          const auto [at, is_new] = writers_.try_emplace(*value, Writer{store, &list, true});
          at->second.only = at->second.only && is_new;
        } else {
          unknown_ = true;  // it may have written any
        }
      }
    }
  }

  bool explain(uint32_t load, ThreadId thread) {
    const auto value = values_.read(load);
    if (!value || unknown_ || relation_.source(load) != Relation::kNever) {
      return value.has_value();
    }
    const auto writer = writers_.find(*value);
    if (writer == writers_.end()) {
      if (initial_ == value && relation_.trace().in_front == 0) {
        for (const ThreadAccesses& list : lists_) {
          link_to_first(load, thread, list);
        }
      }
    } else if (writer->second.only && initial_ != value && writer->second.store != load) {
      const Writer& only = writer->second;
      if (only.list->thread != thread) {
        edges_->push_back({only.store, load});
        const auto next = std::upper_bound(
            only.list->writes.begin(), only.list->writes.end(), only.store,
            [&](uint32_t a, uint32_t b) { return relation_.position(a) < relation_.position(b); });
        if (next != only.list->writes.end()) {
          edges_->push_back({load, *next});
        }
      }
    }
    return true;
  }

 private:
  void link_to_first(uint32_t load, ThreadId thread, const ThreadAccesses& list) {
    if (list.thread != thread && !list.writes.empty()) {
      edges_->push_back({load, list.writes.front()});
    }
  }

  const Relation& relation_;
  const RecordedValues& values_;
  std::span<const ThreadAccesses> lists_;
  std::optional<uint64_t> initial_;
  std::vector<Edge>* edges_;
  std::unordered_map<uint64_t, Writer> writers_;
  bool unknown_ = false;
};

}  // namespace

bool add_value_edges(const Relation& relation, const AccessIndex& accesses,
                     std::vector<Edge>* edges) {
  if (!relation.trace().has_read_values()) {
    return false;
  }
  const RecordedValues values(relation, accesses);
  bool any = false;
  for (LocationId location = 0; location < relation.locations().size(); ++location) {
    if (!values.usable(location)) {
      any = any || !accesses.at(location).empty();
      continue;
    }
    LocationValues here(relation, accesses, values, location, edges);
    for (const ThreadAccesses& list : accesses.at(location)) {
      for (const auto& events : {list.reads, list.writes}) {
        for (const uint32_t e : events) {
          spend(8);
          any = here.explain(e, list.thread) || any;
        }
      }
    }
  }
  return any;
}

}  // namespace tsomon
