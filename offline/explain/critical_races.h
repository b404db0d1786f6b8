// Critical data race sequences: at which races of an interleaving it was decided that it goes
// wrong.
//
// Source      Z. Chen, Z. Zhang, Y. Wu, Z. Zhang, "Automatic Localization of Linearizability
//             Faults": the labelled interleaving tree; for more than two threads by the kinds of
//             the children.
// Labels      W: every leaf below is good, B: every one is faulty. Of nodes at which several
//             threads may go on: G children of W and of B alone, WG of W and mixed ones, BG of B
//             and mixed ones, GG mixed ones alone; of all three it counts as WG and as BG. A node
//             with one child has that one's label, and no race.
// Sequences   On the way to a faulty leaf the nodes WG, BG and G, in their order: the races whose
//             outcome mattered, each with the access that came first.
// Merging     Nodes with the same key have the same subtree: they are visited once.
// Bounds      What was not visited counts as if it were not there: leaves, labels and sequences are
//             those of the rest, and `notes` say why.
// Complexity  Nodes times what the tree takes for a step, and the sequences kept at each, 16 bytes
//             each. Bounded by CriticalRaceBounds, and by the meter of the thread.
// Thread-safety: that of the tree.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tsomon::explain {

// A program that is stepped, one memory access of one thread at a time.
class InterleavingTree {
 public:
  struct Access {
    uint32_t thread = 0;
    std::string place;  // in the source
  };
  virtual ~InterleavingTree() = default;

  // What each thread that can go on does next.
  virtual std::vector<Access> next() = 0;
  virtual void step(size_t which) = 0;  // of next()
  virtual void back() = 0;              // takes the last step back
  // Of a state in which no thread can go on.
  virtual bool faulty() = 0;
  // Equal for states with equal subtrees: memory, threads, and the history so far. Empty: unknown.
  virtual std::string key() = 0;
  // Asked after next(): nothing more can be visited, and what next() said is void.
  virtual bool ended() const { return false; }
};

enum class RaceLabel : uint8_t { kGood, kBad, kG, kGG, kWG, kBG, kWGandBG };
const char* label_name(RaceLabel label);  // "W", "B", "G", "GG", "WG", "BG", "WG/BG"

struct CriticalRace {
  RaceLabel label = RaceLabel::kG;
  std::string first;   // the place that came first, on the way to the fault
  std::string second;  // the one that lost
  // Of the node to which the other winner leads: W never wrong, B always, else sometimes.
  RaceLabel otherwise = RaceLabel::kGood;
  // NOLINTNEXTLINE(modernize-use-nullptr): its version 14 takes this for a literal
  auto operator<=>(const CriticalRace&) const = default;
};

struct CriticalRaces {
  struct Sequence {
    std::vector<CriticalRace> races;
    uint64_t count = 0;  // faulty leaves
  };
  uint64_t leaves = 0;
  uint64_t faulty = 0;
  uint64_t nodes = 0;               // that were visited
  std::vector<Sequence> sequences;  // the most frequent first
  RaceLabel root = RaceLabel::kGood;
  bool complete = true;
  std::vector<std::string> notes;  // which bounds were met
};

struct CriticalRaceBounds {
  uint64_t max_nodes = 10'000'000;
  uint64_t max_kept = 20'000'000;  // sequences of all nodes
  size_t max_sequences = 1'000;    // of one node
  size_t max_depth = 10'000;
};

CriticalRaces find_critical_races(InterleavingTree& tree, const CriticalRaceBounds& bounds = {});

}  // namespace tsomon::explain
