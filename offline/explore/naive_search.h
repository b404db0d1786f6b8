// Every sequence of steps, commits included: the naive twin of the graph search.
//
// Method      Depth-first search over the choices: each run follows a prefix and goes on with the
//             first choice everywhere; what else was enabled at each step is tried later.
// Bounds      With at most `preemptions`: a switch away from a thread that could go on counts as
//             one; commits do not.
// Complexity  One run for every sequence. Memory: O(steps) of what is left along one path, for some
//             sixteen paths: so many runs are made ready at a time (Program::expect).
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
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

  bool done() const { return started_ && left_.empty() && ready_.empty(); }
  // Something was left out because of the bound.
  bool bounded() const { return bounded_; }
  const Run& next();

 private:
  // What another run begins with: the first choices of one that was made, and then another one.
  struct Beginning {
    std::shared_ptr<const std::vector<Choice>> run;
    size_t length = 0;
    Choice other;
  };
  void make_ready();
  void add_others(const Run& run, size_t from);

  Program& program_;
  const Model model_;
  const uint32_t preemptions_;
  bool started_ = false;
  std::vector<Choice> start_;
  bool bounded_ = false;
  std::vector<Beginning> left_;  // the last first
  std::vector<Request> ready_;   // likewise
};

}  // namespace tsomon::explore
