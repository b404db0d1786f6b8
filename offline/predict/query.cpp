#include "offline/predict/query.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "tso/support/work.h"

namespace tsomon::predict {

Query::Query(const Trace& trace, Branches branches)
    : branches_(branches),
      cells_(trace),
      edges_(hard_edges(trace, cells_)),
      model_(trace, cells_, edges_, branches) {}

Validator& Query::validator() {
  if (!validator_) {
    validator_.emplace(model_.trace(), cells_, edges_, branches_);
  }
  return *validator_;
}

std::optional<Meeting> Query::meet(std::span<const NodeId> nodes, bool sync_preserving) {
  return answer({nodes, {}, {}}, sync_preserving);
}

// Either the other thread has come to the later one of its accesses and no further, so that nothing
// depends on what that reads, or it goes on as far as locks and reads need.
std::optional<Meeting> Query::between(const Detour& detour, bool sync_preserving) {
  const bool to_first = model_.node(detour.to).position < model_.node(detour.from).position;
  const NodeId later = to_first ? detour.from : detour.to;
  const std::array<Reordering::Pair, 1> order = {{{detour.first, detour.to}}};
  const std::array<NodeId, 2> both = {later, detour.last};
  auto meeting = answer({both, {}, std::span(order).first(to_first ? 1 : 0)}, sync_preserving);
  if (meeting) {
    meeting->witness.push_back(model_.node(later).event);
  } else {
    meeting = answer({std::span(both).last(1), std::span(both).first(1), order}, sync_preserving);
  }
  if (meeting) {
    meeting->witness.push_back(model_.node(detour.last).event);
  }
  return meeting;
}

std::optional<Meeting> Query::answer(const Asked& asked, bool sync_preserving) {
  const bool as_in_trace = std::all_of(asked.orders.begin(), asked.orders.end(),
                                       [](const auto& pair) { return pair.from < pair.to; });
  if (sync_preserving && as_in_trace) {
    if (const auto counts = set_before(model_, asked.meeting, Sections::kKept, asked.included)) {
      return Meeting{Tier::kSyncPreserving, in_trace_order(*counts, asked.meeting)};
    }
  }
  if (!reordering_) {
    reordering_.emplace(model_);
  }
  for (const Sections sections : {Sections::kOpen, Sections::kClosed}) {
    const auto counts = set_before(model_, asked.meeting, sections, asked.included);
    if (!counts) {
      continue;
    }
    if (const auto order = reordering_->order(*counts, asked.orders)) {
      return Meeting{Tier::kClosure, events(*order, asked.meeting)};
    }
  }
  return std::nullopt;
}

// The events of a set, and those up to the nodes that meet.
std::vector<uint32_t> Query::in_trace_order(const std::vector<uint32_t>& counts,
                                            std::span<const NodeId> nodes) {
  next_.assign(model_.threads(), 0);  // how many events of each thread
  for (uint32_t thread = 0; thread < counts.size(); ++thread) {
    if (counts[thread] > 0) {
      next_[thread] = model_.node(model_.of_thread(thread)[counts[thread] - 1]).place + 1;
    }
  }
  for (const NodeId id : nodes) {
    next_[model_.node(id).thread] = model_.node(id).place;
  }
  const auto total = std::accumulate(next_.begin(), next_.end(), size_t{0});
  uint32_t end = 0;
  for (uint32_t thread = 0; thread < next_.size(); ++thread) {
    // From here on: up to which event.
    next_[thread] = next_[thread] == 0 ? 0 : model_.events_of(thread)[next_[thread] - 1] + 1;
    end = std::max(end, next_[thread]);
  }
  std::vector<uint32_t> witness;
  witness.reserve(total + 2);
  constexpr size_t kSparse = 20;  // sorting is cheaper than looking at all events
  if (total < end / kSparse) {
    spend(kSparse * total);
    for (uint32_t thread = 0; thread < next_.size(); ++thread) {
      const auto mine = model_.events_of(thread);
      const auto last = std::lower_bound(mine.begin(), mine.end(), next_[thread]);
      witness.insert(witness.end(), mine.begin(), last);
    }
    std::sort(witness.begin(), witness.end());
    return witness;
  }
  spend(end);
  const std::vector<Event>& events = model_.trace().events;
  for (uint32_t i = 0; i < end; ++i) {
    if (i < next_[events[i].thread]) {
      witness.push_back(i);
    }
  }
  return witness;
}

ShortWitness shortened(const Trace& trace, const std::vector<uint32_t>& witness) {
  ShortWitness brief;
  size_t sorted = 1;
  while (sorted < witness.size() && witness[sorted - 1] < witness[sorted]) {
    ++sorted;
  }
  // The last two are no part of the order, even if they keep it.
  sorted = std::min(sorted, witness.size() - std::min<size_t>(2, witness.size()));
  brief.tail.assign(witness.begin() + static_cast<ptrdiff_t>(sorted), witness.end());
  std::vector<uint32_t> last;
  for (size_t at = 0; at < sorted; ++at) {
    const ThreadId thread = trace.events[witness[at]].thread;
    if (thread >= last.size()) {
      last.resize(thread + 1, kNone);
    }
    last[thread] = witness[at];
  }
  std::copy_if(last.begin(), last.end(), std::back_inserter(brief.last),
               [](uint32_t event) { return event != kNone; });
  spend(witness.size());
  return brief;
}

// With the events before each node that are no nodes.
std::vector<uint32_t> Query::events(const std::vector<NodeId>& order,
                                    std::span<const NodeId> nodes) {
  next_.assign(model_.threads(), 0);
  std::vector<uint32_t> witness;
  for (const std::span<const NodeId> part : {std::span<const NodeId>(order), nodes}) {
    for (const NodeId id : part) {
      next_[model_.node(id).thread] = model_.node(id).place + 1;
    }
  }
  witness.reserve(std::accumulate(next_.begin(), next_.end(), size_t{0}));
  std::fill(next_.begin(), next_.end(), 0);
  const auto go_on = [&](NodeId id, uint32_t inclusive) {
    const Node& node = model_.node(id);
    const auto mine = model_.events_of(node.thread);
    uint32_t& next = next_[node.thread];
    witness.insert(witness.end(), mine.begin() + next, mine.begin() + node.place + inclusive);
    next = node.place + inclusive;
  };
  for (const NodeId id : order) {
    go_on(id, 1);
  }
  for (const NodeId id : nodes) {
    go_on(id, 0);
  }
  spend(witness.size());
  return witness;
}

}  // namespace tsomon::predict
