#include "offline/explain/critical_races.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>

#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

using Races = std::vector<CriticalRace>;

uint64_t sum(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

struct Node {
  RaceLabel label = RaceLabel::kGood;
  uint64_t leaves = 0;
  uint64_t faulty = 0;
  std::map<Races, uint64_t> sequences;  // from here on, to faulty leaves
};

bool mixed(RaceLabel label) { return label != RaceLabel::kGood && label != RaceLabel::kBad; }

RaceLabel label_of(const std::vector<std::shared_ptr<const Node>>& children) {
  if (children.size() == 1) {
    return children.front()->label;
  }
  bool good = false;
  bool bad = false;
  bool mix = false;
  for (const auto& child : children) {
    good = good || child->label == RaceLabel::kGood;
    bad = bad || child->label == RaceLabel::kBad;
    mix = mix || mixed(child->label);
  }
  if (mix) {
    return good && bad ? RaceLabel::kWGandBG
           : good      ? RaceLabel::kWG
           : bad       ? RaceLabel::kBG
                       : RaceLabel::kGG;
  }
  return good && bad ? RaceLabel::kG : good ? RaceLabel::kGood : RaceLabel::kBad;
}

class Walk {
 public:
  Walk(InterleavingTree& tree, const CriticalRaceBounds& bounds) : tree_(tree), bounds_(bounds) {}

  CriticalRaces run() {
    const auto root = visit(0);
    result_.leaves = root->leaves;
    result_.faulty = root->faulty;
    result_.root = root->label;
    for (const auto& [races, count] : root->sequences) {
      result_.sequences.push_back({races, count});
    }
    std::stable_sort(result_.sequences.begin(), result_.sequences.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    return std::move(result_);
  }

 private:
  std::shared_ptr<const Node> visit(size_t depth) {
    spend(64);
    const std::string key = tree_.key();
    if (const auto known = known_.find(key); !key.empty() && known != known_.end()) {
      return known->second;
    }
    auto node = std::make_shared<Node>();
    if (++result_.nodes > bounds_.max_nodes || depth > bounds_.max_depth) {
      result_.complete = false;
      return node;
    }
    const std::vector<InterleavingTree::Access> next = tree_.next();
    if (next.empty()) {
      node->leaves = 1;
      node->faulty = tree_.faulty() ? 1 : 0;
      node->label = node->faulty != 0 ? RaceLabel::kBad : RaceLabel::kGood;
      if (node->faulty != 0) {
        node->sequences[{}] = 1;
      }
    } else {
      std::vector<std::shared_ptr<const Node>> children;
      for (size_t which = 0; which < next.size(); ++which) {
        tree_.step(which);
        children.push_back(visit(depth + 1));
        tree_.back();
      }
      node->label = label_of(children);
      for (size_t which = 0; which < children.size(); ++which) {
        add(*children[which], race_at(*node, next, children, which), node.get());
      }
    }
    if (!key.empty() && result_.complete) {
      known_[key] = node;
    }
    return node;
  }

  // The race that `which` won here. Its loser is one of the opposite consequence.
  static Races race_at(const Node& node, const std::vector<InterleavingTree::Access>& next,
                       const std::vector<std::shared_ptr<const Node>>& children, size_t which) {
    if (children.size() < 2 || node.label == RaceLabel::kGG || !mixed(node.label)) {
      return {};
    }
    const auto opposite = [&](const Node& other) {
      const RaceLabel mine = children[which]->label;
      return mixed(mine) ? !mixed(other.label) : other.label != mine;
    };
    for (size_t other = 0; other < children.size(); ++other) {
      if (other != which && opposite(*children[other])) {
        return {{node.label, next[which].place, next[other].place}};
      }
    }
    return {};
  }

  void add(const Node& child, const Races& race, Node* node) {
    node->leaves = sum(node->leaves, child.leaves);
    node->faulty = sum(node->faulty, child.faulty);
    for (const auto& [rest, count] : child.sequences) {
      spend(4 + rest.size());
      Races races = race;
      races.insert(races.end(), rest.begin(), rest.end());
      if (node->sequences.size() < bounds_.max_sequences || node->sequences.count(races) > 0) {
        uint64_t& all = node->sequences[races];
        all = sum(all, count);
      } else {
        result_.complete = false;
      }
    }
  }

  InterleavingTree& tree_;
  CriticalRaceBounds bounds_;
  std::unordered_map<std::string, std::shared_ptr<const Node>> known_;
  CriticalRaces result_;
};

}  // namespace

const char* label_name(RaceLabel label) {
  static constexpr const char* kNames[] = {"W", "B", "G", "GG", "WG", "BG", "WG/BG"};
  return kNames[static_cast<size_t>(label)];
}

CriticalRaces find_critical_races(InterleavingTree& tree, const CriticalRaceBounds& bounds) {
  return Walk(tree, bounds).run();
}

}  // namespace tsomon::explain
