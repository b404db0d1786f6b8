// What an event of an execution graph depends on: program order, what it reads, starts and ends of
// threads. All of that is executed before it, in every execution of the graph.
//
// Complexity  analyse(), find(): O(n).
// Thread-safety: none. The memory is used again for the next graph.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/explore/execution_graph.h"

namespace tsomon::explore {

class Dependencies {
 public:
  // `graph` has to be there as long as find() is called.
  void analyse(const Graph& graph);
  // Of `event`, if it reads `source`: without itself.
  void find(uint32_t event, int32_t source);
  // Whether what find() was asked about depends on this one.
  bool has(int32_t event) const { return found_[static_cast<size_t>(event)] != 0; }

 private:
  const Graph* graph_ = nullptr;
  // Of each event: what comes before it in its thread, or started that; the end that it joins.
  std::vector<int32_t> before_;
  std::vector<int32_t> ended_;
  std::vector<uint8_t> found_;
  std::vector<int32_t> todo_;
};

}  // namespace tsomon::explore
