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
// Forwarding  Under TSO a load whose value is in its thread's store buffer touches no memory: it is no step. It may be
//             carried out at once, or wait until a store that it takes its value from has left; then it
//             is a load like others. So where a thread has come to one, the node has these two children, and
//             nobody else takes part in it. The second one is shown as the commit of that store.
//             docs/design/explore.md says why no execution is lost and none comes twice.
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
#include <optional>
#include <set>
#include <string>
#include <utility>
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
  // has the place of its store. Of a load that may be forwarded: the load, and the commit that it waits for.
  const std::vector<Step>& choices();
  void take(size_t which);
  void back();
  std::string key() const;  // 16 bytes, and one for each thread with a load that waits so
  // The run through this node; at a leaf all of it.
  const Run& run() const { return *run_; }
  std::shared_ptr<const Run> shared_run() const { return run_; }

  // The program cannot be explored: the run that says so is run().
  bool ended() const { return ended_; }
  bool changed() const { return changed_; }
  const std::set<uint64_t>& contended() const { return contended_; }
  uint64_t runs() const { return runs_; }

 private:
  // The next operation of a thread, a load that waits until it is not forwarded any more.
  struct HeldLoad {
    uint16_t thread = 0;
    uint64_t address = 0;
    uint8_t size = 0;
  };
  struct Frame {
    size_t depth = 0;  // steps before the node
    bool made = false;
    std::vector<HeldLoad> held;
    std::vector<Step> choices;
    std::vector<std::shared_ptr<const Run>> runs;
    bool forwards = false;  // the choices are those of a load that may be forwarded
  };
  std::shared_ptr<const Run> make_run(size_t depth, const Choice* then);
  std::shared_ptr<const Run> run_with(const Frame& frame, const Choice& choice);
  bool look_for_forwarding(const Step& at, Frame* frame);
  std::optional<Step> forwarded_from(size_t depth, const HeldLoad& load) const;
  bool is_local(const Step& step) const;
  size_t after_local_steps(const Run& run, size_t depth) const;

  Program& program_;
  const Model model_;
  const Judged judged_;
  std::set<uint64_t> contended_;
  std::shared_ptr<const Run> run_;
  std::vector<Frame> path_;
  std::vector<std::pair<Choice, std::shared_ptr<const Run>>> tried_;  // at the node
  bool ended_ = false;
  bool changed_ = false;
  uint64_t runs_ = 0;
};

}  // namespace tsomon::explore
