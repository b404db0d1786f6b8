// Every sequence of steps, commits included: the naive twin of the graph search.
//
// Method      Depth-first search over the choices: each run follows a prefix and goes on with the
//             first choice everywhere; what else was enabled at each step is tried later.
// Bounds      With at most `preemptions`: a switch away from a thread that could go on counts as
//             one; commits do not.
// Complexity  One run for every sequence. Memory: O(steps) of one run.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/explore/program.h"

namespace tsomon::explore {

class NaiveSearch {
 public:
  NaiveSearch(Program& program, Model model, uint32_t preemptions = UINT32_MAX)
      : program_(program), model_(model), preemptions_(preemptions) {}

  bool done() const { return started_ && stack_.empty(); }
  // Something was left out because of the bound.
  bool bounded() const { return bounded_; }
  const Run& next();

 private:
  struct Frame {
    Choice taken;
    std::vector<Choice> others;  // to be tried; the last first
  };

  Program& program_;
  const Model model_;
  const uint32_t preemptions_;
  bool started_ = false;
  bool bounded_ = false;
  std::vector<Frame> stack_;
};

}  // namespace tsomon::explore
