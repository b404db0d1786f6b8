#include "tso/refinement.h"

#include <algorithm>
#include <utility>

#include "tso/lock_exclusion.h"
#include "tso/values.h"

namespace tsomon {
namespace {

// The load of a tied pair and its remote store (theory section 5.1), if {e, f} is one.
std::optional<std::pair<uint32_t, uint32_t>> tied(const Relation& relation, Edge edge) {
  if (relation.options().semantics != Semantics::kExact) {
    return std::nullopt;
  }
  for (const auto& [load, store] : {std::pair{edge.from, edge.to}, std::pair{edge.to, edge.from}}) {
    if (relation.source(load) != Relation::kNever && relation.certainly_before(load, store)) {
      return std::pair{load, store};
    }
  }
  return std::nullopt;
}

class Refiner {
 public:
  Refiner(const Relation& relation, const AccessIndex& accesses, const RefinementOptions& options,
          bool locks, EventGraph graph)
      : relation_(relation),
        accesses_(accesses),
        directed_(std::move(graph.directed)),
        undirected_(std::move(graph.undirected)),
        complete_(graph.complete) {
    directed_.insert(directed_.end(), options.known.begin(), options.known.end());
    if (options.values && relation.trace().complete) {
      values_.emplace(relation, accesses);
    }
    if (locks) {
      locks_.emplace(relation);
    }
  }

  std::optional<RefinedGraph> run() {
    while (true) {
      auto order = Reachability::build(relation_, directed_);
      if (!order) {
        return std::nullopt;
      }
      std::vector<Edge> found;
      std::vector<ReadsFrom> rules;
      settle(*order, &found, &rules);
      const auto add = [&](const Inference& inferred) {
        found.insert(found.end(), inferred.directed.begin(), inferred.directed.end());
        rules.insert(rules.end(), inferred.rules.begin(), inferred.rules.end());
      };
      if (values_) {
        add(infer_from_values(relation_, accesses_, *values_, *order));
      }
      if (locks_) {
        add(locks_->infer(undirected_, *order));
      }
      if (found.empty()) {
        return RefinedGraph{
            std::move(undirected_), std::move(rules), std::move(*order), complete_, false, false};
      }
      directed_.insert(directed_.end(), found.begin(), found.end());
    }
  }

 private:
  // Drops the open edges that the order decides, and applies the ties to a fixed order.
  void settle(const Reachability& order, std::vector<Edge>* found, std::vector<ReadsFrom>* rules) {
    std::erase_if(undirected_, [&](Edge edge) {
      const auto pair = tied(relation_, edge);
      if (!pair) {
        return order.reaches(edge.from, edge.to) || order.reaches(edge.to, edge.from);
      }
      const auto [load, store] = *pair;
      const uint32_t source = relation_.source(load);
      if (order.reaches(load, store)) {
        return true;
      }
      if (order.reaches(store, load)) {
        if (!order.reaches(store, source)) {
          found->push_back({store, source});
        }
        return true;
      }
      if (order.reaches(source, store)) {
        found->push_back({load, store});
        return false;  // decided in the next round
      }
      rules->push_back({load, source, store});
      return false;
    });
  }

  const Relation& relation_;
  const AccessIndex& accesses_;
  std::optional<RecordedValues> values_;
  std::optional<LockExclusion> locks_;
  std::vector<Edge> directed_;
  std::vector<Edge> undirected_;
  bool complete_;
};

}  // namespace

std::optional<RefinedGraph> refine(const Relation& relation, const AccessIndex& accesses,
                                   const RefinementOptions& options) {
  const bool exclusive = locks_exclude(relation);
  // What the edges contradict is ignored: the values, the locks, both.
  for (const auto& [values, locks] :
       {std::pair{true, true}, {false, true}, {true, false}, {false, false}}) {
    if ((values && !options.values) || (locks && !exclusive)) {
      continue;
    }
    RefinementOptions chosen = options;
    chosen.values = values;
    auto refined = Refiner(relation, accesses, chosen, locks,
                           build_event_graph(relation, accesses, options.max_undirected))
                       .run();
    if (refined) {
      refined->values_contradict = options.values && !values;
      refined->locks_contradict = exclusive && !locks;
      return refined;
    }
  }
  return std::nullopt;
}

}  // namespace tsomon
