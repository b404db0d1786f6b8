#include "offline/predict/races.h"

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "offline/predict/access_groups.h"
#include "offline/predict/kept_witnesses.h"
#include "offline/predict/query.h"

namespace tsomon::predict {
namespace {

// A pair of places in the source.
using Places = std::tuple<uint64_t, uint64_t, uint32_t>;

class RaceSearch {
 public:
  RaceSearch(const RaceOptions& options, Query& query, RaceResult* result)
      : options_(options),
        result_(*result),
        query_(query),
        model_(query.model()),
        kept_(query.model(), options.max_witness_events) {}

  void run() {
    for (uint32_t cell = 0; cell < model_.cell_count(); ++cell) {
      spend(1);
      if (model_.atomic(cell) || all_exclude(model_, cell)) {
        continue;
      }
      std::vector<AccessGroup> groups = groups_of(model_, cell);
      to_issues(&groups);
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
    uint64_t nodes = 0;  // of the windows in which an order was looked for

    bool over() const {
      return found || attempts >= RaceResult::kMaxAttempts || nodes >= RaceResult::kMaxNodes;
    }
  };
  static constexpr size_t kClosest = 16;

  // Two accesses meet when they are next in their threads, wherever stores commit.
  void to_issues(std::vector<AccessGroup>* groups) const {
    if (!model_.buffers()) {
      return;
    }
    for (AccessGroup& group : *groups) {
      spend(group.nodes.size());
      for (NodeId& id : group.nodes) {
        id = model_.issue_of(id);
      }
      group.thread = model_.owner(group.thread);
    }
  }

  // The accesses of two threads that nothing orders: first those that are closest in the trace,
  // whose meeting takes the least to find and to tell.
  void pairs(uint32_t cell, const AccessGroup& mine, const AccessGroup& theirs) {
    const Places both = places(mine.nodes.front(), theirs.nodes.front(), cell);
    if (const auto at = tried_.find(both); at != tried_.end() && at->second.over()) {
      result_.attempts_bounded = result_.attempts_bounded || !at->second.found;
      return;
    }
    for (const auto& [a, b] : closest(mine, theirs)) {
      if (!consider(std::min(a, b), std::max(a, b), both)) {
        return;
      }
    }
    each_open(mine, theirs,
              [&](NodeId a, NodeId b) { return consider(std::min(a, b), std::max(a, b), both); });
  }

  // visit(a, b) until it returns false.
  template <typename Visit>
  void each_open(const AccessGroup& mine, const AccessGroup& theirs, const Visit& visit) const {
    size_t begin = 0;
    for (const NodeId a : mine.nodes) {
      spend(2);
      // What is before this one is before all that follow it.
      begin = skip_while(theirs.nodes, begin, [&](NodeId b) { return model_.always_before(b, a); });
      for (size_t at = begin; at < theirs.nodes.size(); ++at) {
        const NodeId b = theirs.nodes[at];
        if (model_.always_before(a, b)) {
          break;
        }
        if (!visit(a, b)) {
          return;
        }
      }
    }
  }

  // Of the pairs that follow each other in the trace.
  std::vector<std::pair<NodeId, NodeId>> closest(const AccessGroup& mine,
                                                 const AccessGroup& theirs) const {
    using Near = std::tuple<NodeId, NodeId, NodeId>;  // distance, mine, theirs
    std::priority_queue<Near> found;
    const auto consider = [&](NodeId a, NodeId b) {
      const NodeId distance = a < b ? b - a : a - b;
      if (found.size() == kClosest && std::get<0>(found.top()) <= distance) {
        return;
      }
      spend(4);
      if (!model_.always_before(std::min(a, b), std::max(a, b))) {
        found.emplace(distance, a, b);
        if (found.size() > kClosest) {
          found.pop();
        }
      }
    };
    for (size_t i = 0, j = 0; i < mine.nodes.size() && j < theirs.nodes.size();) {
      spend(2);
      consider(mine.nodes[i], theirs.nodes[j]);
      mine.nodes[i] < theirs.nodes[j] ? ++i : ++j;
    }
    std::vector<std::pair<NodeId, NodeId>> pairs;
    for (; !found.empty(); found.pop()) {
      pairs.emplace_back(std::get<1>(found.top()), std::get<2>(found.top()));
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
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
    if (tried.over()) {
      result_.attempts_bounded = result_.attempts_bounded || !tried.found;
      return false;
    }
    ++tried.attempts;
    if (is_new) {
      ++result_.candidates;
      ++result_.refused;
    }
    const uint64_t before = query_.looked_at();
    if (ask(a, b)) {
      tried.found = true;
      --result_.refused;
      return false;
    }
    tried.nodes += query_.looked_at() - before;
    return true;
  }

  bool ask(NodeId a, NodeId b) {
    const std::array<NodeId, 2> nodes = {a, b};
    auto meeting = query_.meet(nodes, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    Race race;
    race.first = model_.node(a).event;
    race.second = model_.node(b).event;
    race.tier = meeting->tier;
    Witness& witness = meeting->witness;
    query_.end(&witness, std::array<uint32_t, 2>{race.second, race.first});
    if (!query_.accepted(query_.validator().check_race(witness.tail, witness.start),
                         &result_.invalid)) {
      return false;
    }
    kept_.keep(witness, race.tier == Tier::kSyncPreserving, &race.witness, &race.brief);
    result_.without_witness = kept_.in_short();
    result_.races.push_back(std::move(race));
    return true;
  }

  const RaceOptions& options_;
  RaceResult& result_;
  Query& query_;
  const Model& model_;
  std::map<Places, Tried> tried_;
  KeptWitnesses kept_;
};

}  // namespace

RaceResult predict_races(Query& query, const RaceOptions& options) {
  RaceResult result;
  result.branches = query.branches();
  try {
    const uint64_t cut_short = query.cut_short();
    RaceSearch search(options, query, &result);
    search.run();
    result.windowed = query.cut_short() > cut_short;
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
    Query query(trace, result.branches, options.windows);
    return predict_races(query, options);
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  return result;
}

}  // namespace tsomon::predict
