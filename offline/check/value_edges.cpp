#include "offline/check/value_edges.h"

#include <algorithm>
#include <unordered_map>

#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr int kMostLater = 8;
constexpr uint32_t kMostBehind = 64;
constexpr int kMostRounds = 4;  // from front to back, from back to front, ...

}  // namespace

ValueReads::ValueReads(const Relation& relation, const AccessIndex& accesses)
    : relation_(relation), accesses_(accesses) {
  if (!relation.trace().has_read_values()) {
    return;
  }
  recorded_.emplace(relation, accesses);
  for (LocationId location = 0; location < relation.locations().size(); ++location) {
    if (recorded_->usable(location)) {
      collect(location);
    } else {
      any_ = any_ || !accesses.at(location).empty();
    }
  }
  std::sort(reads_.begin(), reads_.end(),
            [](const Read& a, const Read& b) { return a.load < b.load; });
  for (Read& read : reads_) {
    read.store = only_source(read);
  }
}

void ValueReads::collect(LocationId location) {
  const auto lists = accesses_.at(location);
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_value;  // in the order of lists
  bool known = true;
  for (const ThreadAccesses& list : lists) {
    for (const uint32_t store : list.writes) {
      spend(4);
      if (const auto value = recorded_->written(store)) {
        by_value[*value].push_back(store);
      } else {
        known = false;  // it may have written any
      }
    }
  }
  std::unordered_map<uint64_t, uint32_t> numbers;
  for (const ThreadAccesses& list : lists) {
    for (const auto& events : {list.reads, list.writes}) {
      for (const uint32_t e : events) {
        spend(8);
        const auto value = recorded_->read(e);
        any_ = any_ || value.has_value();
        if (!value || !known) {
          continue;
        }
        Read read{e, kOpen, kOpen};
        if (const auto stores = by_value.find(*value); stores != by_value.end()) {
          const auto [number, is_new] =
              numbers.try_emplace(*value, static_cast<uint32_t>(values_.size()));
          if (is_new) {
            values_.push_back({static_cast<uint32_t>(of_value_.size()), 0});
            for (const uint32_t store : stores->second) {
              const uint32_t in_list = accesses_.list_of(store);
              if (values_.back().begin == of_value_.size() || of_value_.back().list != in_list) {
                const auto at = static_cast<uint32_t>(stores_.size());
                of_value_.push_back({in_list, at, at});
              }
              stores_.push_back(store);
              of_value_.back().end = static_cast<uint32_t>(stores_.size());
            }
            values_.back().end = static_cast<uint32_t>(of_value_.size());
          }
          read.value = number->second;
        }
        reads_.push_back(read);
      }
    }
  }
}

std::span<const ValueReads::Stores> ValueReads::stores_of(const Read& read) const {
  if (read.value == kOpen) {
    return {};
  }
  const auto& [begin, end] = values_[read.value];
  return {of_value_.data() + begin, of_value_.data() + end};
}

std::span<const uint32_t> ValueReads::in(const Stores& stores) const {
  return {stores_.data() + stores.begin, stores_.data() + stores.end};
}

// The newest store of the load's thread before it.
uint32_t ValueReads::last_own(uint32_t load) const {
  const auto writes = accesses_.list(accesses_.list_of(load) & ~1U);
  const auto behind = std::partition_point(writes.begin(), writes.end(), [&](uint32_t w) {
    return relation_.position(w) < relation_.position(load);
  });
  return behind == writes.begin() ? kNone : *(behind - 1);
}

// Of a load before which its thread has stored nothing. Where the initial value is not known: not if
// the thread has read another one.
bool ValueReads::may_be_initial(uint32_t load) const {
  const auto value = recorded_->read(load);
  if (const auto initial = recorded_->initial(relation_.locations().of_event(load))) {
    return initial == value;
  }
  const auto reads = accesses_.list(accesses_.list_of(load) | 1U);
  if (reads.empty() || relation_.position(reads.front()) >= relation_.position(load)) {
    return true;
  }
  const auto before = recorded_->read(reads.front());
  return !before || before == value;
}

uint32_t ValueReads::only_source(const Read& read) const {
  const uint32_t newest = last_own(read.load);
  const bool own = newest != kNone && recorded_->written(newest) == recorded_->read(read.load);
  const bool after = newest != kNone && recorded_->after_initial(newest);
  if (read.value == kOpen) {
    // What nobody wrote was there before.
    return !after && may_be_initial(read.load) ? kInitial : kOpen;
  }
  if (!after && may_be_initial(read.load)) {
    return kOpen;
  }
  uint32_t only = own ? newest : kOpen;
  spend(stores_of(read).size());
  for (const Stores& stores : stores_of(read)) {
    if (stores.list / 2 != accesses_.list_of(read.load) / 2) {
      if (only != kOpen || stores.end != stores.begin + 1) {
        return kOpen;
      }
      only = stores_[stores.begin];
    }
  }
  return only;
}

// By list of the location, the last store of that thread that comes before the load.
void ValueReads::find_last(uint32_t load, const Reachability& order,
                           std::vector<uint32_t>* last) const {
  last->clear();
  for (const ThreadAccesses& list : accesses_.at(relation_.locations().of_event(load))) {
    spend(16);
    const auto behind = std::partition_point(
        list.writes.begin(), list.writes.end(),
        [&](uint32_t other) { return other != load && order.reaches(other, load); });
    last->push_back(behind == list.writes.begin() ? kNone : *(behind - 1));
  }
}

uint32_t ValueReads::only_source(const Read& read, const Reachability& order,
                                 std::span<const uint32_t> last) const {
  uint32_t only = kOpen;
  if (may_be_initial(read.load) && std::none_of(last.begin(), last.end(), [&](uint32_t w) {
        return w != kNone && recorded_->after_initial(w);
      })) {
    only = kInitial;
  }
  const uint32_t own = accesses_.list_of(read.load) / 2;
  const uint32_t first = accesses_.first_list(relation_.locations().of_event(read.load)) / 2;
  for (const Stores& stores : stores_of(read)) {
    const auto events = in(stores);
    const uint32_t mine = last[stores.list / 2 - first];
    spend(8 + 4 * last.size());
    const auto over = [&](uint32_t w) {
      return (mine != kNone && relation_.position(w) < relation_.position(mine)) ||
             std::any_of(last.begin(), last.end(), [&](uint32_t later) {
               return later != kNone && later != w && order.reaches(w, later);
             });
    };
    const auto begin = std::partition_point(events.begin(), events.end(), over);
    for (auto w = begin; w != events.end(); ++w) {
      if (*w == read.load || (stores.list / 2 == own && *w != mine) ||
          order.reaches(read.load, *w)) {
        break;
      }
      if (only != kOpen) {
        return kOpen;
      }
      only = *w;
    }
  }
  return only;
}

// What has been read comes before a load that may have been forwarded, and was not, and so before
// all that its thread loads later. Of the next few; a load from memory comes before the others.
void ValueReads::add_later_loads(const Read& read, std::vector<Edge>* edges) const {
  const auto& events = relation_.trace().events;
  if (relation_.source(read.load) == Relation::kNever ||
      events[read.store].thread == events[read.load].thread) {
    return;
  }
  const auto thread = relation_.of_thread(events[read.load].thread);
  const uint32_t begin = relation_.position(read.load) + 1;
  int loads = 0;
  for (size_t at = begin; at < std::min<size_t>(thread.size(), begin + kMostBehind); ++at) {
    const uint32_t e = thread[at];
    if (is(events[e], kinds::kNodes) && !relation_.is_store(e)) {
      edges->push_back({read.store, e});
      if (++loads == kMostLater || relation_.source(e) == Relation::kNever) {
        return;
      }
    }
  }
}

// add(from, to) for what the source alone says, until it is false.
template <typename Add>
bool ValueReads::link(const Read& read, const Add& add) const {
  const auto& events = relation_.trace().events;
  if (read.store == kOpen || (read.store == kInitial && relation_.trace().pending_prefix != 0)) {
    return true;
  }
  if (read.store == kInitial) {
    for (const ThreadAccesses& list : accesses_.at(relation_.locations().of_event(read.load))) {
      if (list.thread != events[read.load].thread && !list.writes.empty() &&
          !add(read.load, list.writes.front())) {
        return false;
      }
    }
    return true;
  }
  if (events[read.store].thread == events[read.load].thread) {
    return true;
  }
  if (const uint32_t newest = last_own(read.load);
      newest != kNone && recorded_->after_initial(newest) && !add(newest, read.store)) {
    return false;
  }
  const auto writes = accesses_.list(accesses_.list_of(read.store));
  const auto next = std::upper_bound(
      writes.begin(), writes.end(), read.store,
      [&](uint32_t a, uint32_t b) { return relation_.position(a) < relation_.position(b); });
  return add(read.store, read.load) && (next == writes.end() || add(read.load, *next));
}

void ValueReads::add_edges(std::vector<Edge>* edges) const {
  for (const Read& read : reads_) {
    spend(8);
    link(read, [&](uint32_t from, uint32_t to) {
      edges->push_back({from, to});
      return true;
    });
    if (read.store < kInitial) {
      add_later_loads(read, edges);
    }
  }
}

// A store that comes before the load comes before what was read; one that comes after that comes
// after the load.
template <typename Add>
bool ValueReads::draw_around(const Read& read, const Reachability& order,
                             std::span<const uint32_t> last, const Add& add) const {
  if (read.store >= kInitial) {
    return true;
  }
  const auto& events = relation_.trace().events;
  size_t i = 0;
  for (const ThreadAccesses& list : accesses_.at(relation_.locations().of_event(read.load))) {
    const uint32_t before = last[i++];
    spend(16);
    if (list.thread != events[read.store].thread && before != kNone && !add(before, read.store)) {
      return false;
    }
    if (list.thread != events[read.load].thread) {
      const auto next = std::partition_point(
          list.writes.begin(), list.writes.end(),
          [&](uint32_t other) { return other == read.store || !order.reaches(read.store, other); });
      if (next != list.writes.end() && !add(read.load, *next)) {
        return false;
      }
    }
  }
  return true;
}

bool ValueReads::draw(Reachability* order) {
  bool more = false;
  const auto add = [&](uint32_t from, uint32_t to) {
    if (order->reaches(from, to)) {
      return true;
    }
    more = true;
    return order->insert({from, to});
  };
  std::vector<uint32_t> last;
  std::vector<Edge> later;
  const auto draw_one = [&](Read& read) {
    find_last(read.load, *order, &last);
    if (read.store == kOpen) {
      read.store = only_source(read, *order, last);
      if (!link(read, add)) {
        return false;
      }
      if (read.store < kInitial) {
        later.clear();
        add_later_loads(read, &later);
        if (!std::all_of(later.begin(), later.end(),
                         [&](const Edge& edge) { return add(edge.from, edge.to); })) {
          return false;
        }
      }
    }
    return draw_around(read, *order, last, add);
  };
  for (int round = 0; round < kMostRounds; ++round) {
    more = false;
    if (!(round % 2 == 0 ? std::all_of(reads_.begin(), reads_.end(), draw_one)
                         : std::all_of(reads_.rbegin(), reads_.rend(), draw_one))) {
      return false;
    }
    if (!more) {
      break;
    }
  }
  order->put_together();
  return true;
}

}  // namespace tsomon
