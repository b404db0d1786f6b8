#include "offline/predict/races.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "offline/predict/query.h"

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
  Predictor(const RaceOptions& options, Query& query, RaceResult* result)
      : options_(options), result_(*result), query_(query), model_(query.model()) {}

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
    const std::array<NodeId, 2> nodes = {a, b};
    auto meeting = query_.meet(nodes, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    Race race{model_.node(a).event, model_.node(b).event, meeting->tier,
              std::move(meeting->witness)};
    race.witness.push_back(race.second);
    race.witness.push_back(race.first);
    if (!query_.validator().check_race(race.witness).empty()) {
      ++result_.invalid;
      return false;
    }
    // Those that keep the order of the locks are easily believed.
    if (race.tier == Tier::kSyncPreserving &&
        kept_ + race.witness.size() > options_.max_witness_events) {
      ++result_.without_witness;
      race.witness = {};
    }
    kept_ += race.witness.size();
    result_.races.push_back(std::move(race));
    return true;
  }

  const RaceOptions& options_;
  RaceResult& result_;
  Query& query_;
  const Model& model_;
  std::map<Places, Tried> tried_;
  uint64_t kept_ = 0;
};

}  // namespace

RaceResult predict_races(Query& query, const RaceOptions& options) {
  RaceResult result;
  result.branches = query.branches();
  try {
    Predictor(options, query, &result).run();
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  std::sort(result.races.begin(), result.races.end(), [](const Race& a, const Race& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  });
  return result;
}

RaceResult predict_races(const Trace& trace, const RaceOptions& options) {
  RaceResult result;
  result.branches = resolved(options.branches, trace);
  try {
    Query query(trace, result.branches);
    return predict_races(query, options);
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  return result;
}

}  // namespace tsomon::predict
