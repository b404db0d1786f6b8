#include "offline/explain/critical_races.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

uint64_t sum_up_to_most(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

// Sequences of races, each a race and the rest, which several have in common.
class SequenceTable {
 public:
  static constexpr uint32_t kEmpty = 0;

  uint32_t race(const CriticalRace& race) {
    const auto [known, is_new] = race_ids_.try_emplace(race, static_cast<uint32_t>(races_.size()));
    if (is_new) {
      races_.push_back(race);
    }
    return known->second;
  }
  uint32_t sequence(uint32_t race, uint32_t rest) {
    const uint64_t key = uint64_t{race} << 32 | rest;
    const auto [known, is_new] = ids_.try_emplace(key, static_cast<uint32_t>(links_.size()));
    if (is_new) {
      links_.push_back({race, rest});
    }
    return known->second;
  }
  std::vector<CriticalRace> races_of(uint32_t sequence) const {
    std::vector<CriticalRace> races;
    for (; sequence != kEmpty; sequence = links_[sequence].second) {
      races.push_back(races_[links_[sequence].first]);
    }
    return races;
  }

 private:
  std::vector<CriticalRace> races_;
  std::map<CriticalRace, uint32_t> race_ids_;
  std::vector<std::pair<uint32_t, uint32_t>> links_ = {{0, 0}};
  std::unordered_map<uint64_t, uint32_t> ids_;
};

struct RaceNode {
  RaceLabel label = RaceLabel::kGood;
  uint64_t leaves = 0;
  uint64_t faulty = 0;
  std::vector<std::pair<uint32_t, uint64_t>> sequences;  // from here on, and their faulty leaves
};
using RaceNodes = std::vector<std::shared_ptr<const RaceNode>>;

bool is_mixed(RaceLabel label) { return label != RaceLabel::kGood && label != RaceLabel::kBad; }

RaceLabel label_of(const RaceNodes& children) {
  if (children.size() == 1) {
    return children.front()->label;
  }
  bool good = false;
  bool bad = false;
  bool mix = false;
  for (const auto& child : children) {
    good = good || child->label == RaceLabel::kGood;
    bad = bad || child->label == RaceLabel::kBad;
    mix = mix || is_mixed(child->label);
  }
  if (mix) {
    return good && bad ? RaceLabel::kWGandBG
           : good      ? RaceLabel::kWG
           : bad       ? RaceLabel::kBG
                       : RaceLabel::kGG;
  }
  return good && bad ? RaceLabel::kG : good ? RaceLabel::kGood : RaceLabel::kBad;
}

class RaceWalk {
 public:
  RaceWalk(InterleavingTree& tree, const CriticalRaceBounds& bounds)
      : tree_(tree), bounds_(bounds) {}

  CriticalRaces run() {
    if (const auto root = visit(0); root != nullptr) {
      result_.leaves = root->leaves;
      result_.faulty = root->faulty;
      result_.root = root->label;
      for (const auto& [sequence, count] : root->sequences) {
        result_.sequences.push_back({table_.races_of(sequence), count});
      }
    }
    std::stable_sort(result_.sequences.begin(), result_.sequences.end(),
                     [](const auto& a, const auto& b) {
                       return a.count != b.count ? a.count > b.count : a.races < b.races;
                     });
    result_.complete = result_.complete && result_.notes.empty();
    return std::move(result_);
  }

 private:
  void note(const std::string& why) {
    if (std::find(result_.notes.begin(), result_.notes.end(), why) == result_.notes.end()) {
      result_.notes.push_back(why);
    }
    result_.complete = false;
  }

  bool may_go_on(size_t depth) {
    if (stopped_) {
      return false;
    }
    try {
      spend(64);
    } catch (const WorkEnded& ended) {
      note(limit_text(ended.limit()));
      stopped_ = true;
    }
    if (result_.nodes >= bounds_.max_nodes) {
      note("the tree has too many nodes");
      stopped_ = true;
    }
    if (depth > bounds_.max_depth) {
      note("an interleaving is too long");
      return false;
    }
    return !stopped_;
  }

  // nullptr: it was not visited.
  std::shared_ptr<const RaceNode> visit(size_t depth) {
    const std::string key = tree_.key();
    if (const auto known = known_.find(key); !key.empty() && known != known_.end()) {
      return known->second;
    }
    if (!may_go_on(depth)) {
      return nullptr;
    }
    const std::vector<InterleavingTree::Access> next = tree_.next();
    if (tree_.ended()) {
      result_.complete = false;
      stopped_ = true;
      return nullptr;
    }
    ++result_.nodes;
    auto node = next.empty() ? leaf() : inner_node(next, depth);
    if (node != nullptr && !key.empty() && !stopped_) {
      kept_ += node->sequences.size();
      known_[key] = node;
    }
    return node;
  }

  std::shared_ptr<RaceNode> leaf() {
    auto node = std::make_shared<RaceNode>();
    node->leaves = 1;
    if (tree_.faulty()) {
      node->faulty = 1;
      node->label = RaceLabel::kBad;
      node->sequences.emplace_back(SequenceTable::kEmpty, 1);
    }
    return node;
  }

  std::shared_ptr<RaceNode> inner_node(const std::vector<InterleavingTree::Access>& next,
                                       size_t depth) {
    RaceNodes children;
    std::vector<const InterleavingTree::Access*> accesses;
    for (size_t which = 0; which < next.size() && !stopped_; ++which) {
      tree_.step(which);
      auto child = visit(depth + 1);
      tree_.back();
      if (child != nullptr) {
        children.push_back(std::move(child));
        accesses.push_back(&next[which]);
      }
    }
    if (children.empty()) {
      return nullptr;
    }
    auto node = std::make_shared<RaceNode>();
    node->label = label_of(children);
    std::map<uint32_t, uint64_t> sequences;
    for (size_t which = 0; which < children.size(); ++which) {
      node->leaves = sum_up_to_most(node->leaves, children[which]->leaves);
      node->faulty = sum_up_to_most(node->faulty, children[which]->faulty);
      add(*children[which], race_at(node->label, accesses, children, which), &sequences);
    }
    node->sequences.assign(sequences.begin(), sequences.end());
    return node;
  }

  static constexpr uint32_t kNoRace = 0xFFFFFFFFU;

  // The race that `which` won here. Its loser is one of the opposite consequence.
  uint32_t race_at(RaceLabel label, const std::vector<const InterleavingTree::Access*>& accesses,
                   const RaceNodes& children, size_t which) {
    if (children.size() < 2 || label == RaceLabel::kGG || !is_mixed(label) ||
        children[which]->faulty == 0) {
      return kNoRace;
    }
    const RaceLabel mine = children[which]->label;
    for (size_t other = 0; other < children.size(); ++other) {
      const RaceLabel theirs = children[other]->label;
      if (other != which && (is_mixed(mine) ? !is_mixed(theirs) : theirs != mine)) {
        return table_.race({label, accesses[which]->place, accesses[other]->place, theirs});
      }
    }
    return kNoRace;
  }

  void add(const RaceNode& child, uint32_t race, std::map<uint32_t, uint64_t>* sequences) {
    for (const auto& [rest, count] : child.sequences) {
      const uint32_t sequence = race == kNoRace ? rest : table_.sequence(race, rest);
      if (sequences->count(sequence) == 0 &&
          (sequences->size() >= bounds_.max_sequences || kept_ >= bounds_.max_kept)) {
        note("there are more sequences");
        continue;
      }
      uint64_t& all = (*sequences)[sequence];
      all = sum_up_to_most(all, count);
    }
  }

  InterleavingTree& tree_;
  CriticalRaceBounds bounds_;
  SequenceTable table_;
  std::unordered_map<std::string, std::shared_ptr<const RaceNode>> known_;
  uint64_t kept_ = 0;
  bool stopped_ = false;
  CriticalRaces result_;
};

}  // namespace

const char* label_name(RaceLabel label) {
  static constexpr const char* kNames[] = {"W", "B", "G", "GG", "WG", "BG", "WG/BG"};
  return kNames[static_cast<size_t>(label)];
}

CriticalRaces find_critical_races(InterleavingTree& tree, const CriticalRaceBounds& bounds) {
  return RaceWalk(tree, bounds).run();
}

}  // namespace tsomon::explain
