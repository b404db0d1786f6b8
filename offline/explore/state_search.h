// Every state of a program once: what an exploration without graphs needs.
//
// Purpose     For programs whose threads exclude one another in ways that graphs do not know:
//             atomic blocks that the exploration puts into them. Every execution ends in a state
//             that one of the runs ends in, judged by what `judged` names (step_tree.h).
// Complexity  One run for every edge between states, but those that a run for another one went
//             along. Memory: 16 bytes and their hash entry for every state.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "offline/explore/program.h"
#include "offline/explore/step_tree.h"

namespace tsomon::explore {

class StateSearch {
 public:
  StateSearch(Program& program, Model model, Judged judged)
      : program_(program), model_(model), judged_(judged) {}

  bool done() const { return done_; }
  // A complete execution; or one of another end, and then done(). nullptr: nothing is left. Some
  // may come twice, when more words turn out to be contended and the search begins anew.
  const Run* next();

 private:
  bool go_on();  // to a node that was not visited; false: there is none

  Program& program_;
  const Model model_;
  const Judged judged_;
  bool done_ = false;
  std::set<uint64_t> contended_;
  std::unique_ptr<StepTree> tree_;
  std::vector<size_t> path_;  // the next choice at each node
  std::unordered_set<std::string> visited_;
  std::shared_ptr<const Run> leaf_;
};

}  // namespace tsomon::explore
