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
#include <optional>
#include <utility>
#include <vector>

#include "offline/explore/program.h"

namespace tsomon::explore {

class NaiveSearch {
 public:
  NaiveSearch(Program& program, Model model, uint32_t preemptions = UINT32_MAX)
      : program_(program), model_(model), preemptions_(preemptions) {}

  // Searches the sequences that begin so instead of all. Before the first run.
  void begin(std::vector<Choice> start) { start_ = std::move(start); }
  // Gives away the shortest beginning that is left, if there are two or more.
  std::optional<std::vector<Choice>> give();

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
  std::vector<Choice> start_;
  bool bounded_ = false;
  std::vector<Frame> stack_;
};

}  // namespace tsomon::explore
