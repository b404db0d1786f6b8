#include "tso/order/refinement.h"

#include <algorithm>
#include <utility>

#include "tso/order/lock_exclusion.h"
#include "tso/order/values.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// Edges are added one by one when few are found at once: so many, or one for so many events.
constexpr size_t kFew = 32;
constexpr size_t kEventsForOne = 64;

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
    locks_.emplace(
        relation, locks,
        values_ ? find_value_sections(relation, accesses, *values_) : std::vector<ValueSection>());
  }

  std::optional<RefinedGraph> run() {
    // As long as much is found at once it is added together; later on each edge by itself, and in
    // turns from front to back and from back to front, for one often leads to the next.
    auto order = Reachability::build(relation_, directed_);
    bool one_by_one = false;
    bool backwards = false;
    while (order) {
      Inference found;
      settle(*order, &found);
      const auto add = [&](const Inference& more) {
        found.directed.insert(found.directed.end(), more.directed.begin(), more.directed.end());
        found.rules.insert(found.rules.end(), more.rules.begin(), more.rules.end());
      };
      if (!locks_->empty()) {
        add(locks_->infer(undirected_, *order));
      }
      if (one_by_one) {
        for (const Edge& edge : found.directed) {
          if (!order->reaches(edge.from, edge.to) && !order->insert(edge)) {
            return std::nullopt;
          }
        }
      }
      if (values_ && one_by_one) {
        const auto more = infer_one_by_one(relation_, accesses_, *values_, backwards, &*order);
        if (!more) {
          return std::nullopt;
        }
        add(*more);
        backwards = !backwards;
      } else if (values_) {
        add(infer_from_values(relation_, accesses_, *values_, *order));
      }
      if (found.directed.empty()) {
        order->put_together();
        return RefinedGraph{std::move(undirected_),
                            std::move(found.rules),
                            std::move(*order),
                            complete_,
                            false,
                            false};
      }
      if (one_by_one) {
        continue;
      }
      directed_.insert(directed_.end(), found.directed.begin(), found.directed.end());
      order = Reachability::build(relation_, directed_);
      one_by_one =
          found.directed.size() <= std::max(kFew, relation_.trace().events.size() / kEventsForOne);
    }
    return std::nullopt;
  }

 private:
  // Drops the open edges that the order decides, and applies the forwarding constraints to a fixed order.
  void settle(const Reachability& order, Inference* found) {
    std::erase_if(undirected_, [&](Edge edge) {
      spend(3);
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
          found->directed.push_back({store, source});
        }
        return true;
      }
      if (order.reaches(source, store)) {
        found->directed.push_back({load, store});
        return false;  // decided in the next round
      }
      found->rules.push_back({load, source, store});
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
