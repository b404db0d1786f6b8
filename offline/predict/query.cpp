#include "offline/predict/query.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "offline/predict/counted_threads.h"
#include "tso/support/work.h"

namespace tsomon::predict {

Query::Query(const Trace& trace, Branches branches, const Windows& windows, bool buffers,
             uint32_t carried)
    : shared_(std::make_shared<Shared>(trace, branches, buffers, carried)), windows_(windows) {}

std::optional<Meeting> Query::meet(std::span<const NodeId> nodes, bool sync_preserving) {
  return answer({nodes, {}, {}}, sync_preserving);
}

std::optional<Meeting> Query::lost(NodeId node, std::span<const NodeId> before,
                                   bool sync_preserving) {
  return answer({std::span(&node, 1), before, {}}, sync_preserving);
}

// Either the other thread has come to the later one of its accesses and no further, so that nothing
// depends on what that reads, or it goes on as far as locks and reads need.
std::optional<Meeting> Query::between(const Detour& detour, bool sync_preserving) {
  if (model().buffers()) {
    return between_commits(detour, sync_preserving);
  }
  const bool to_first = model().node(detour.to).position < model().node(detour.from).position;
  const NodeId later = to_first ? detour.from : detour.to;
  const std::array<Reordering::Pair, 1> order = {{{detour.first, detour.to}}};
  const std::array<NodeId, 2> both = {later, detour.last};
  auto meeting = answer({both, {}, std::span(order).first(to_first ? 1 : 0)}, sync_preserving);
  if (meeting) {
    meeting->witness.tail.push_back(model().node(later).event);
  } else {
    meeting = answer({std::span(both).last(1), std::span(both).first(1), order}, sync_preserving);
  }
  if (meeting) {
    meeting->witness.tail.push_back(model().node(detour.last).event);
  }
  return meeting;
}

std::optional<Meeting> Query::circle(const std::array<NodeId, 6>& nodes, bool sync_preserving) {
  const auto& [first, to, from, next, back, last] = nodes;
  const std::array<Reordering::Pair, 2> orders = {{{first, to}, {from, next}}};
  const std::span all(nodes);
  auto meeting = answer({all.last(1), all.first(5), orders}, sync_preserving);
  if (meeting) {
    meeting->witness.tail.push_back(model().node(last).event);
  }
  return meeting;
}

std::optional<Meeting> Query::answer(const Asked& asked, bool sync_preserving) {
  const bool as_in_trace = std::all_of(asked.orders.begin(), asked.orders.end(),
                                       [](const auto& pair) { return pair.from < pair.to; });
  if (sync_preserving && as_in_trace) {
    if (const auto counts = set_before(model(), asked.meeting, Sections::kKept, asked.included)) {
      return Meeting{Tier::kSyncPreserving, in_trace_order(*counts, asked.meeting)};
    }
  }
  if (!reordering_) {
    reordering_.emplace(model());
  }
  const uint64_t cut = cut_short_;
  for (const Sections sections : {Sections::kOpen, Sections::kClosed}) {
    const auto counts = set_before(model(), asked.meeting, sections, asked.included);
    if (!counts) {
      continue;
    }
    if (auto witness = reordered(*counts, asked)) {
      cut_short_ = cut;
      return Meeting{Tier::kClosure, std::move(*witness)};
    }
  }
  cut_short_ = std::min(cut_short_, cut + 1);
  return std::nullopt;
}

std::optional<Witness> Query::reordered(const std::vector<uint32_t>& counts, const Asked& asked) {
  const NodeId moved = first_moved(counts, asked);
  NodeId end = 0;
  for (uint32_t thread = 0; thread < counts.size(); ++thread) {
    if (counts[thread] > 0) {
      end = std::max(end, model().of_thread(thread)[counts[thread] - 1] + 1);
    }
  }
  for (uint32_t size = windows_.first;; size *= windows_.factor) {
    const NodeId first = end > size ? model().issue_of(end - size) : 0;
    looked_at_ += end - first;
    const auto answer = reordering_->look(counts, asked.orders, first, first <= moved);
    if (answer == Reordering::Answer::kOrder) {
      return events(first, reordering_->order(), asked.meeting);
    }
    if (answer == Reordering::Answer::kNone || first == 0) {
      return std::nullopt;
    }
    if (size > windows_.last / windows_.factor) {
      ++cut_short_;
      return std::nullopt;
    }
  }
}

NodeId Query::first_left_out(const std::vector<uint32_t>& counts) const {
  NodeId first = model().size();
  each_counted(counts, [&](uint32_t thread) {
    if (counts[thread] < model().of_thread(thread).size()) {
      first = std::min(first, model().of_thread(thread)[counts[thread]]);
    }
  });
  const auto at = std::find_if(shared_->by_first.begin(), shared_->by_first.end(),
                               [&](uint32_t thread) { return counts[thread] == 0; });
  return at == shared_->by_first.end() ? first : std::min(first, model().of_thread(*at).front());
}

// Or whose place in the trace it certainly does not keep.
NodeId Query::first_moved(const std::vector<uint32_t>& counts, const Asked& asked) const {
  NodeId first = first_left_out(counts);
  for (const Reordering::Pair& pair : asked.orders) {
    first = std::min(first, pair.from < pair.to ? first : pair.to);
  }
  // A section that stays open comes after those of others.
  for (uint32_t thread = 0; thread < counts.size(); ++thread) {
    for (const uint32_t section : model().held(thread, counts[thread])) {
      const Section& mine = model().sections()[section];
      if (mine.acquire >= first) {
        continue;
      }
      for (const ThreadList& list : model().sections_of(mine.lock)) {
        spend(1);
        const uint32_t last = list.thread == thread
                                  ? kNone
                                  : model().last_section(list, counts[list.thread], mine.shared);
        if (last != kNone && model().sections()[last].acquire > mine.acquire) {
          first = mine.acquire;
          break;
        }
      }
    }
  }
  return first;
}

// All events before the node.
Witness Query::start_from(NodeId first) const {
  Witness witness;
  witness.start = first < model().size() ? model().node(first).event
                                         : static_cast<uint32_t>(model().trace().events.size());
  return witness;
}

// How many events of the thread come before the start.
uint32_t Query::begin_of(const Witness& witness, uint32_t thread) const {
  const auto mine = model().events_of(thread);
  return static_cast<uint32_t>(std::lower_bound(mine.begin(), mine.end(), witness.start) -
                               mine.begin());
}

// The events of a set, and those up to the nodes that meet.
Witness Query::in_trace_order(const std::vector<uint32_t>& counts, std::span<const NodeId> nodes) {
  NodeId first = first_left_out(counts);
  for (const NodeId id : nodes) {
    first = std::min(first, id);
  }
  Witness witness = start_from(first);
  next_.assign(model().threads(), 0);
  parts_.clear();
  each_counted(counts, [&](uint32_t thread) {
    parts_.push_back({thread, begin_of(witness, thread)});
    const uint32_t place = model().place(model().of_thread(thread)[counts[thread] - 1]) + 1;
    next_[thread] = std::max(parts_.back().begin, place);
  });
  for (const NodeId id : nodes) {
    const uint32_t thread = model().node(id).thread;
    if (counts[thread] == 0) {
      parts_.push_back({thread, begin_of(witness, thread)});
    }
    next_[thread] = model().place(id);
  }
  size_t total = 0;
  uint32_t end = witness.start;
  for (const auto& [thread, begin] : parts_) {
    total += next_[thread] - std::min(begin, next_[thread]);
    // From here on: up to which event.
    next_[thread] = next_[thread] == 0 ? 0 : model().events_of(thread)[next_[thread] - 1] + 1;
    end = std::max(end, next_[thread]);
  }
  std::vector<uint32_t>& tail = witness.tail;
  tail.reserve(total + 2);
  constexpr size_t kSparse = 20;  // sorting is cheaper than looking at all events
  if (total < (end - witness.start) / kSparse) {
    spend(kSparse * total);
    for (const auto& [thread, begin] : parts_) {
      const auto mine = model().events_of(thread);
      const auto last = std::lower_bound(mine.begin(), mine.end(), next_[thread]);
      const uint32_t commit = model().commits(thread) ? kCommit : 0;
      for (auto at = mine.begin() + begin; at < last; ++at) {
        tail.push_back(*at | commit);
      }
    }
    std::sort(tail.begin(), tail.end(), [](uint32_t a, uint32_t b) {
      return std::pair(a & ~kCommit, a & kCommit) < std::pair(b & ~kCommit, b & kCommit);
    });
    return witness;
  }
  spend(end - witness.start);
  const std::vector<Event>& events = model().trace().events;
  for (uint32_t i = witness.start; i < end; ++i) {
    const uint32_t thread = model().number(events[i].thread);
    if (i < next_[thread]) {
      tail.push_back(i);
    }
    if (model().buffers() && model().split(i) && i < next_[thread + 1]) {
      tail.push_back(i | kCommit);
    }
  }
  return witness;
}

// With the events before each node that are no nodes.
Witness Query::events(NodeId first, const std::vector<NodeId>& order,
                      std::span<const NodeId> nodes) {
  Witness witness = start_from(first);
  next_.assign(model().threads(), kNone);
  const auto go_on = [&](NodeId id, uint32_t inclusive) {
    const Node& node = model().node(id);
    const auto mine = model().events_of(node.thread);
    uint32_t& next = next_[node.thread];
    next = next == kNone ? begin_of(witness, node.thread) : next;
    const uint32_t commit = model().commits(node.thread) ? kCommit : 0;
    for (const uint32_t end = model().place(id) + inclusive; next < end; ++next) {
      witness.tail.push_back(mine[next] | commit);
    }
  };
  for (const NodeId id : order) {
    go_on(id, 1);
  }
  for (const NodeId id : nodes) {
    go_on(id, 0);
  }
  spend(witness.tail.size());
  return witness;
}

}  // namespace tsomon::predict
