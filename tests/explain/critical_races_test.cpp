// Critical race sequences: the pair snapshot, and random trees against the definitions.
#include "offline/explain/critical_races.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace tsomon::explain {
namespace {

// write(0,2) write(1,2) write(1,1) write(0,1) || read(): x = d0, y = d1, until x == d0.
class PairSnapshot : public InterleavingTree {
 public:
  explicit PairSnapshot(bool merging) : merging_(merging) {}

  std::vector<Access> next() override {
    std::vector<Access> next;
    if (now().written < 4) {
      next.push_back({0, "#1"});
    }
    if (now().line < 5) {
      next.push_back({1, fmt::format("#{}", now().line)});
    }
    return next;
  }
  void step(size_t which) override {
    static constexpr std::pair<int, int> kWrites[] = {{0, 2}, {1, 2}, {1, 1}, {0, 1}};
    State state = now();
    if (next()[which].thread == 0) {
      const auto& [cell, value] = kWrites[state.written++];
      state.cells[cell] = value;
    } else if (state.line == 2) {
      state.x = state.cells[0];
      state.line = 3;
    } else if (state.line == 3) {
      state.y = state.cells[1];
      state.line = 4;
    } else {
      state.line = state.cells[0] == state.x ? 5 : 2;
    }
    states_.push_back(state);
  }
  void back() override { states_.pop_back(); }
  bool faulty() override { return now().x == 1 && now().y == 2; }
  std::string key() override {
    const State& state = now();
    return merging_ ? fmt::format("{} {} {} {}", state.written, state.line, state.x, state.y)
                    : std::string();
  }

 private:
  struct State {
    int cells[2] = {1, 1};
    size_t written = 0;
    int line = 2;
    int x = 0;
    int y = 0;
  };
  const State& now() const { return states_.back(); }

  bool merging_;
  std::vector<State> states_ = {State()};
};

TEST_CASE("the pair snapshot has one faulty interleaving of 112, and its sequence") {
  for (const bool merging : {false, true}) {
    PairSnapshot tree(merging);
    const CriticalRaces found = find_critical_races(tree);
    CHECK(found.complete);
    CHECK(found.leaves == 112);
    CHECK(found.faulty == 1);
    REQUIRE(found.sequences.size() == 1);
    std::string labels;
    for (const CriticalRace& race : found.sequences[0].races) {
      labels += std::string(labels.empty() ? "" : " ") + label_name(race.label);
    }
    CHECK(labels == "WG WG WG WG WG G");
    CHECK(found.sequences[0].races.front().first == "#2");
    CHECK(found.sequences[0].races.front().second == "#1");
    CHECK(found.sequences[0].races.back().first == "#1");
    CHECK(found.sequences[0].races.back().second == "#4");
  }
}

// Threads of given lengths; leaves are faulty by a hash of what they did.
class RandomTree : public InterleavingTree {
 public:
  RandomTree(std::vector<uint32_t> lengths, uint64_t seed, uint32_t faulty_percent)
      : left_(std::move(lengths)), seed_(seed), percent_(faulty_percent) {}

  std::vector<Access> next() override {
    std::vector<Access> next;
    for (uint32_t thread = 0; thread < left_.size(); ++thread) {
      if (left_[thread] > 0) {
        next.push_back({thread, fmt::format("{}:{}", thread, left_[thread])});
      }
    }
    return next;
  }
  void step(size_t which) override {
    const uint32_t thread = next()[which].thread;
    --left_[thread];
    path_.push_back(thread);
  }
  void back() override {
    ++left_[path_.back()];
    path_.pop_back();
  }
  // Of where the first threads were, so that some subtrees are all alike.
  bool faulty() override {
    std::mt19937_64 random(seed_);
    for (size_t i = 0; i < path_.size() && i < 5; ++i) {
      random.seed(random() ^ (path_[i] * 0x9E3779B97F4A7C15ULL));
    }
    return random() % 100 < percent_;
  }
  std::string key() override { return {}; }

 private:
  std::vector<uint32_t> left_;
  uint64_t seed_;
  uint32_t percent_;
  std::vector<uint32_t> path_;
};

struct Naive {
  uint64_t leaves = 0;
  uint64_t faulty = 0;
  std::map<std::vector<std::string>, uint64_t> sequences;  // labels
};

// By what the leaves below are, not by labels of children.
std::pair<uint64_t, uint64_t> count_leaves(InterleavingTree& tree) {
  const size_t choices = tree.next().size();
  if (choices == 0) {
    return {1, tree.faulty() ? 1 : 0};
  }
  std::pair<uint64_t, uint64_t> all;
  for (size_t which = 0; which < choices; ++which) {
    tree.step(which);
    const auto below = count_leaves(tree);
    tree.back();
    all.first += below.first;
    all.second += below.second;
  }
  return all;
}

void walk(InterleavingTree& tree, std::vector<std::string> so_far, Naive* naive) {
  const size_t choices = tree.next().size();
  if (choices == 0) {
    ++naive->leaves;
    if (tree.faulty()) {
      ++naive->faulty;
      ++naive->sequences[so_far];
    }
    return;
  }
  bool good = false;
  bool bad = false;
  bool mix = false;
  for (size_t which = 0; which < choices; ++which) {
    tree.step(which);
    const auto [leaves, faulty] = count_leaves(tree);
    tree.back();
    good = good || faulty == 0;
    bad = bad || faulty == leaves;
    mix = mix || (faulty > 0 && faulty < leaves);
  }
  if (choices > 1 && (good ? bad || mix : bad && mix)) {
    so_far.emplace_back(!mix ? "G" : good && bad ? "WG/BG" : good ? "WG" : "BG");
  }
  for (size_t which = 0; which < choices; ++which) {
    tree.step(which);
    walk(tree, so_far, naive);
    tree.back();
  }
}

TEST_CASE("labels and sequences of random trees are those of the definitions") {
  std::mt19937 random(5);
  std::set<std::string> seen;
  for (uint32_t round = 0; round < 300; ++round) {
    std::vector<uint32_t> lengths(2 + random() % 2);
    for (uint32_t& length : lengths) {
      length = 1 + static_cast<uint32_t>(random() % 3);
    }
    RandomTree tree(lengths, random(), 5 + static_cast<uint32_t>(random() % 90));
    Naive naive;
    walk(tree, {}, &naive);
    const CriticalRaces found = find_critical_races(tree);
    CHECK(found.leaves == naive.leaves);
    CHECK(found.faulty == naive.faulty);
    std::map<std::vector<std::string>, uint64_t> sequences;
    for (const CriticalRaces::Sequence& sequence : found.sequences) {
      std::vector<std::string> labels;
      for (const CriticalRace& race : sequence.races) {
        labels.emplace_back(label_name(race.label));
        seen.insert(labels.back());
      }
      sequences[labels] += sequence.count;
    }
    CHECK(sequences == naive.sequences);
  }
  CHECK(seen == std::set<std::string>{"G", "WG", "BG", "WG/BG"});
}

TEST_CASE("a bound leaves a part of the tree, and says so") {
  PairSnapshot tree(false);
  CriticalRaceBounds few;
  few.max_nodes = 50;
  CHECK(!find_critical_races(tree, few).complete);
}

}  // namespace
}  // namespace tsomon::explain
