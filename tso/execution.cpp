#include "tso/execution.h"

#include <algorithm>
#include <unordered_map>

#include "tso/reachability.h"

namespace tsomon {
namespace {

// Node 2i is the issue of window event i, node 2i+1 its commit.
class Constraints {
 public:
  Constraints(const Relation& relation, const std::vector<uint32_t>& window,
              const OrientationOracle& before)
      : relation_(relation), window_(window), before_(before) {}

  std::optional<std::vector<Step>> solve() {
    order_all();
    return schedule();
  }

  StepOrder steps(const std::vector<Edge>& open) {
    partial_ = true;
    order_all();
    StepOrder result;
    result.nodes = static_cast<uint32_t>(window_.size()) * 2;
    for (const Edge& pair : open) {
      result.before.push_back(alternatives(index(pair.from), index(pair.to)));
      result.after.push_back(alternatives(index(pair.to), index(pair.from)));
    }
    result.edges = std::move(edges_);
    result.either = std::move(either_);
    return result;
  }

 private:
  void order_all() {
    order_threads();
    for (uint32_t i = 0; i < window_.size(); ++i) {
      for (uint32_t j = i + 1; j < window_.size(); ++j) {
        order_pair(i, j);
      }
    }
  }

  uint32_t index(uint32_t e) const {
    return static_cast<uint32_t>(std::lower_bound(window_.begin(), window_.end(), e) -
                                 window_.begin());
  }

  // i comes before j: a forwarded load takes effect when it is issued and its source has committed,
  // whichever is later.
  StepOrder::Alternatives alternatives(uint32_t i, uint32_t j) const {
    if (const uint32_t source = relation_.source(window_[j]); source != Relation::kNever) {
      return {{{effect(i), effect(index(source))}}, {{effect(i), effect(j)}}};
    }
    if (const uint32_t source = relation_.source(window_[i]); source != Relation::kNever) {
      return {{{effect(index(source)), effect(j)}, {effect(i), effect(j)}}};
    }
    return {{{effect(i), effect(j)}}};
  }

  bool commits_later(uint32_t i) const {
    return relation_.options().model == MemoryModel::kTso && relation_.is_store(window_[i]);
  }
  uint32_t issue(uint32_t i) const { return 2 * i; }
  // The step at which the event takes effect in memory (for a load: reads it).
  uint32_t effect(uint32_t i) const { return commits_later(i) ? 2 * i + 1 : 2 * i; }
  void add(uint32_t from, uint32_t to) { edges_.push_back({from, to}); }

  void order_threads() {
    std::unordered_map<ThreadId, std::vector<uint32_t>> threads;
    for (uint32_t i = 0; i < window_.size(); ++i) {
      threads[relation_.trace().events[window_[i]].thread].push_back(i);
    }
    for (auto& [thread, members] : threads) {
      std::sort(members.begin(), members.end(), [&](uint32_t a, uint32_t b) {
        return relation_.position(window_[a]) < relation_.position(window_[b]);
      });
      uint32_t last_store = Relation::kNever;
      for (size_t at = 0; at < members.size(); ++at) {
        const uint32_t i = members[at];
        if (at > 0) {
          add(issue(members[at - 1]), issue(i));
        }
        if (!commits_later(i)) {
          continue;
        }
        add(issue(i), effect(i));
        if (last_store != Relation::kNever) {
          add(effect(last_store), effect(i));
        }
        last_store = i;
        // What settles the store may itself lie outside the window: the next event inside counts.
        const uint32_t settled_by = relation_.settled_by(window_[i]);
        if (settled_by == Relation::kNever) {
          continue;
        }
        const auto next = std::find_if(
            members.begin() + static_cast<ptrdiff_t>(at) + 1, members.end(), [&](uint32_t j) {
              return relation_.position(window_[j]) >= relation_.position(settled_by);
            });
        if (next != members.end()) {
          add(effect(i), issue(*next));
        }
      }
    }
  }

  void order_pair(uint32_t i, uint32_t j) {
    const uint32_t e = window_[i];
    const uint32_t f = window_[j];
    if (relation_.trace().events[e].thread == relation_.trace().events[f].thread) {
      return;
    }
    const bool conflict = relation_.conflict(e, f);
    if (conflict && relation_.certainly_before(e, f)) {
      add(issue(i), issue(j));
    } else if (conflict && relation_.certainly_before(f, e)) {
      add(issue(j), issue(i));
    }
    switch (relation_.between(e, f)) {
      case Order::kNone:
        break;
      case Order::kBefore:
        add(effect(i), issue(j));
        break;
      case Order::kAfter:
        add(effect(j), issue(i));
        break;
      case Order::kUndirected:
        if (const Order chosen = before_(e, f); chosen == Order::kBefore) {
          order_conflict(i, j);
        } else if (chosen == Order::kAfter) {
          order_conflict(j, i);
        }
        break;
    }
  }

  void order_conflict(uint32_t i, uint32_t j) {
    const uint32_t source = relation_.source(window_[j]);
    if (source != Relation::kNever && comes_before(relation_, before_, window_[i], source)) {
      return;  // j reads its own store or something newer, wherever that store commits
    }
    if (partial_ && source != Relation::kNever &&
        relation_.between(window_[i], source) == Order::kUndirected &&
        before_(window_[i], source) == Order::kNone) {
      either_.push_back({{effect(i), effect(index(source))}, {effect(i), effect(j)}});
      return;
    }
    add(effect(i), effect(j));
  }

  // Trace order where the constraints leave a choice, commits as early as possible.
  std::optional<std::vector<Step>> schedule() const {
    const size_t nodes = window_.size() * 2;
    const std::vector<uint32_t> order = smallest_first(Adjacency(nodes, edges_));
    if (order.size() != nodes) {
      return std::nullopt;
    }
    std::vector<Step> steps;
    for (const uint32_t node : order) {
      const uint32_t i = node / 2;
      if (node % 2 == 0) {
        steps.push_back({false, window_[i]});
        if (relation_.options().model == MemoryModel::kSc && relation_.is_store(window_[i])) {
          steps.push_back({true, window_[i]});
        }
      } else if (commits_later(i)) {
        steps.push_back({true, window_[i]});
      }
    }
    return steps;
  }

  const Relation& relation_;
  const std::vector<uint32_t>& window_;
  const OrientationOracle& before_;
  std::vector<Edge> edges_;
  bool partial_ = false;  // what is open stays open
  std::vector<EitherOrder> either_;
};

}  // namespace

bool comes_before(const Relation& relation, const OrientationOracle& before, uint32_t e,
                  uint32_t f) {
  const Order order = relation.between(e, f);
  return order == Order::kBefore || (order == Order::kUndirected && before(e, f) == Order::kBefore);
}

StepOrder step_order(const Relation& relation, const std::vector<uint32_t>& window,
                     const OrientationOracle& before, const std::vector<Edge>& open) {
  return Constraints(relation, window, before).steps(open);
}

std::optional<std::vector<Step>> realise(const Relation& relation,
                                         const std::vector<uint32_t>& window,
                                         const OrientationOracle& before) {
  return Constraints(relation, window, before).solve();
}

}  // namespace tsomon
