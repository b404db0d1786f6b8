#include "offline/predict/races.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "offline/predict/access_groups.h"
#include "offline/predict/query.h"

namespace tsomon::predict {
namespace {

// A pair of places in the source.
using Places = std::tuple<uint64_t, uint64_t, uint32_t>;

class RaceSearch {
 public:
  RaceSearch(const RaceOptions& options, Query& query, RaceResult* result)
      : options_(options), result_(*result), query_(query), model_(query.model()) {}

  void run() {
    for (uint32_t cell = 0; cell < model_.cell_count(); ++cell) {
      spend(1);
      if (model_.atomic(cell) || all_exclude(model_, cell)) {
        continue;
      }
      const std::vector<AccessGroup> groups = groups_of(model_, cell);
      for (size_t i = 0; i < groups.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          spend(2);
          const AccessGroup& mine = groups[i];
          const AccessGroup& theirs = groups[j];
          // Of accesses with several cells the first common one counts.
          if (mine.thread != theirs.thread && (mine.writes || theirs.writes) &&
              std::max(mine.first_cell, theirs.first_cell) == cell &&
              !exclude(model_.lock_sets()[mine.set], model_.lock_sets()[theirs.set])) {
            pairs(cell, mine, theirs);
          }
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
  void pairs(uint32_t cell, const AccessGroup& mine, const AccessGroup& theirs) {
    const Places both = places(mine.nodes.front(), theirs.nodes.front(), cell);
    size_t begin = 0;
    for (const NodeId a : mine.nodes) {
      spend(2);
      // What is before this one is before all that follow it.
      while (begin < theirs.nodes.size() && model_.always_before(theirs.nodes[begin], a)) {
        spend(2);
        ++begin;
      }
      for (size_t at = begin; at < theirs.nodes.size(); ++at) {
        const NodeId b = theirs.nodes[at];
        if (model_.always_before(a, b)) {
          break;
        }
        if (!consider(std::min(a, b), std::max(a, b), both)) {
          return;
        }
      }
    }
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

  // False: enough of these places.
  bool consider(NodeId a, NodeId b, const Places& both) {
    const auto [at, is_new] = tried_.try_emplace(both);
    Tried& tried = at->second;
    if (tried.found) {
      return false;
    }
    if (tried.attempts == RaceResult::kMaxAttempts) {
      result_.attempts_bounded = true;
      return false;
    }
    ++tried.attempts;
    if (is_new) {
      ++result_.candidates;
      ++result_.refused;
    }
    if (ask(a, b)) {
      tried.found = true;
      --result_.refused;
      return false;
    }
    return true;
  }

  bool ask(NodeId a, NodeId b) {
    const std::array<NodeId, 2> nodes = {a, b};
    auto meeting = query_.meet(nodes, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    Race race{
        model_.node(a).event, model_.node(b).event, meeting->tier, std::move(meeting->witness), {}};
    race.witness.push_back(race.second);
    race.witness.push_back(race.first);
    if (!query_.accepted(query_.validator().check_race(race.witness), &result_.invalid)) {
      return false;
    }
    // Those that keep the order of the trace are said in few numbers.
    if (race.tier == Tier::kSyncPreserving &&
        kept_ + race.witness.size() > options_.max_witness_events) {
      ++result_.without_witness;
      race.brief = shortened(model_.trace(), race.witness);
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
    RaceSearch(options, query, &result).run();
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
