// The tree of all interleavings of a program, walked step by step.
//
// Purpose     A node is a state at which several threads can go on, or store buffers commit, with
//             what others can notice; its children are what each of them does next. A leaf is a
//             complete execution.
// Local steps What no other thread can notice the time of is no branching: threads that are
//             started, joined or end, fences, a store that enters its buffer, and a thread's loads
//             (or writes) of words with which no access of another one conflicts, unless starts and
//             joins order them. They are executed as soon as they can. Such a step commutes with
//             all steps of others, so that a tree that had it elsewhere has the same leaves, each
//             several times. Which accesses are contended is learnt from the runs: contended() grew
//             means that the tree has to be begun anew (`changed`).
// Runs        One for every edge, but those that a run for another one went along.
// Keys        Nodes with the same key have the same subtree, up to what the leaves are judged by:
//             Judged::kEnd the state of the threads (all that they read) and of the memory;
//             kHistory also the order of what they said that they did (marks); kGraph also which
//             writes were read and overwritten.
// Complexity  O(steps) for each step and key. Memory: the runs along the path.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "offline/explore/program.h"

namespace tsomon::explore {

enum class Judged : uint8_t { kEnd, kHistory, kGraph };

// contended_access() of all that conflict with another thread's, without an order by starts and
// joins.
std::set<uint64_t> contended_accesses(const Run& run);

class StepTree {
 public:
  StepTree(Program& program, Model model, Judged judged, std::set<uint64_t> contended);

  // Makes the run that the root is on. Requires: nothing else was called.
  void begin();
  // What can be done here, a step each; empty at a leaf, and when `ended` or `changed`. A commit
  // has the place of its store.
  const std::vector<Step>& choices();
  void take(size_t which);
  void back();
  std::string key() const;  // 16 bytes
  // The run through this node; at a leaf all of it.
  const Run& run() const { return *run_; }
  std::shared_ptr<const Run> shared_run() const { return run_; }

  // The program cannot be explored: the run that says so is run().
  bool ended() const { return ended_; }
  bool changed() const { return changed_; }
  const std::set<uint64_t>& contended() const { return contended_; }
  uint64_t runs() const { return runs_; }

 private:
  struct Frame {
    size_t depth = 0;  // steps before the node
    bool made = false;
    std::vector<Step> choices;
    std::vector<std::shared_ptr<const Run>> runs;
  };
  std::shared_ptr<const Run> make_run(size_t depth, const Choice* then);
  bool is_local(const Step& step) const;
  size_t after_local_steps(const Run& run, size_t depth) const;

  Program& program_;
  const Model model_;
  const Judged judged_;
  std::set<uint64_t> contended_;
  std::shared_ptr<const Run> run_;
  std::vector<Frame> path_;
  bool ended_ = false;
  bool changed_ = false;
  uint64_t runs_ = 0;
};

}  // namespace tsomon::explore
