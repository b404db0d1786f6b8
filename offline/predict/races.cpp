#include "offline/predict/races.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "offline/predict/feasible_set.h"
#include "offline/predict/model.h"
#include "offline/predict/reordering.h"
#include "offline/predict/validator.h"

namespace tsomon::predict {
namespace {

// A pair of places in the source.
using Places = std::tuple<uint64_t, uint64_t, uint32_t>;

struct Pair {
  NodeId first = kNone;
  NodeId second = kNone;
  Places places;
};

class Predictor {
 public:
  Predictor(const Trace& trace, const RaceOptions& options, RaceResult* result)
      : options_(options),
        result_(*result),
        cells_(trace),
        edges_(hard_edges(trace, cells_)),
        model_(trace, cells_, edges_, result->branches),
        validator_(trace, cells_, edges_, result->branches),
        reordering_(model_) {}

  void run() {
    for (uint32_t cell = 0; cell < model_.cell_count(); ++cell) {
      spend(1);
      if (model_.atomic(cell)) {
        continue;
      }
      const auto& lists = model_.accesses_of(cell);
      for (size_t i = 0; i < lists.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          pairs(cell, lists[i], lists[j]);
        }
      }
    }
  }

 private:
  struct Tried {
    bool found = false;
    uint32_t attempts = 0;
  };

  // The accesses of two threads that nothing orders.
  void pairs(uint32_t cell, const ThreadList& mine, const ThreadList& theirs) {
    size_t begin = 0;
    for (const uint32_t use : mine.items) {
      const NodeId a = model_.use(use).node;
      // What is before this one is before all that follow it.
      while (begin < theirs.items.size() &&
             model_.always_before(model_.use(theirs.items[begin]).node, a)) {
        ++begin;
      }
      for (size_t at = begin; at < theirs.items.size(); ++at) {
        spend(2);
        const NodeId b = model_.use(theirs.items[at]).node;
        if (model_.always_before(a, b)) {
          break;
        }
        if ((model_.node(a).writes || model_.node(b).writes) && first_common(a, b) == cell &&
            !same_lock(a, b)) {
          consider(std::min(a, b), std::max(a, b), cell);
        }
      }
    }
  }

  uint32_t first_common(NodeId a, NodeId b) const {
    return std::max(model_.uses(a).front().cell, model_.uses(b).front().cell);
  }

  bool same_lock(NodeId a, NodeId b) const {
    const Node& first = model_.node(a);
    const Node& second = model_.node(b);
    for (const uint32_t mine : model_.held(first.thread, first.position)) {
      for (const uint32_t theirs : model_.held(second.thread, second.position)) {
        const Section& section = model_.sections()[mine];
        const Section& other = model_.sections()[theirs];
        if (section.lock == other.lock && section.excludes(other)) {
          return true;
        }
      }
    }
    return false;
  }

  Places places(NodeId a, NodeId b, uint32_t cell) const {
    const Event& first = model_.event(a);
    const Event& second = model_.event(b);
    const bool known =
        first.location != Event::kNoLocation && second.location != Event::kNoLocation;
    const auto place = [&](const Event& event) {
      return known ? event.location
                   : (uint64_t{1} << 63) | (uint64_t{event.thread} << 8) | event.kind_bits;
    };
    const uint64_t one = place(first);
    const uint64_t other = place(second);
    return {std::min(one, other), std::max(one, other), known ? 0 : cell};
  }

  void consider(NodeId a, NodeId b, uint32_t cell) {
    const auto [at, is_new] = tried_.try_emplace(places(a, b, cell));
    Tried& tried = at->second;
    if (tried.found) {
      return;
    }
    if (tried.attempts == RaceResult::kMaxAttempts) {
      result_.attempts_bounded = true;
      return;
    }
    ++tried.attempts;
    if (is_new) {
      ++result_.candidates;
      ++result_.refused;
    }
    if (ask(a, b)) {
      tried.found = true;
      --result_.refused;
    }
  }

  bool ask(NodeId a, NodeId b) {
    if (options_.sync_preserving) {
      if (const auto counts = set_before(model_, a, b, Sections::kKept)) {
        return report(in_trace_order(*counts), a, b, Tier::kSyncPreserving);
      }
    }
    for (const Sections sections : {Sections::kOpen, Sections::kClosed}) {
      const auto counts = set_before(model_, a, b, sections);
      if (!counts) {
        continue;
      }
      if (const auto order = reordering_.order(*counts)) {
        return report(*order, a, b, Tier::kClosure);
      }
    }
    return false;
  }

  std::vector<NodeId> in_trace_order(const std::vector<uint32_t>& counts) const {
    std::vector<NodeId> order;
    for (uint32_t thread = 0; thread < counts.size(); ++thread) {
      const auto& mine = model_.of_thread(thread);
      order.insert(order.end(), mine.begin(), mine.begin() + counts[thread]);
    }
    std::sort(order.begin(), order.end());
    spend(order.size());
    return order;
  }

  // With the events in front of each node that are no nodes.
  std::vector<uint32_t> events(const std::vector<NodeId>& order, NodeId a, NodeId b) {
    next_.assign(model_.threads(), 0);
    std::vector<uint32_t> witness;
    const auto go_on = [&](NodeId id, bool inclusive) {
      const Node& node = model_.node(id);
      const auto mine = model_.events_of(node.thread);
      uint32_t& next = next_[node.thread];
      while (next < mine.size() &&
             (inclusive ? mine[next] <= node.event : mine[next] < node.event)) {
        witness.push_back(mine[next++]);
      }
    };
    for (const NodeId id : order) {
      go_on(id, true);
    }
    go_on(a, false);
    go_on(b, false);
    witness.push_back(model_.node(b).event);
    witness.push_back(model_.node(a).event);
    spend(witness.size());
    return witness;
  }

  bool report(const std::vector<NodeId>& order, NodeId a, NodeId b, Tier tier) {
    Race race{model_.node(a).event, model_.node(b).event, tier, events(order, a, b)};
    if (!validator_.check_race(race.witness).empty()) {
      ++result_.invalid;
      return false;
    }
    kept_ += race.witness.size();
    if (kept_ > options_.max_witness_events) {
      ++result_.without_witness;
      race.witness = {};
    }
    const WorkPause outlives;
    result_.races.push_back(std::move(race));
    return true;
  }

  const RaceOptions& options_;
  RaceResult& result_;
  CellTable cells_;
  std::vector<HardEdge> edges_;
  Model model_;
  Validator validator_;
  Reordering reordering_;
  std::map<Places, Tried> tried_;
  std::vector<uint32_t> next_;  // event of each thread
  uint64_t kept_ = 0;
};

}  // namespace

RaceResult predict_races(const Trace& trace, const RaceOptions& options) {
  RaceResult result;
  result.branches = resolved(options.branches, trace);
  try {
    Predictor(trace, options, &result).run();
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  std::sort(result.races.begin(), result.races.end(), [](const Race& a, const Race& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  });
  return result;
}

}  // namespace tsomon::predict
