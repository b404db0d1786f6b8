// Ends of units that never began, counted, for one message.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace tsomon::capture {

// Ends of units that never began: an error of the program, which repeats as often as the code runs.
struct StrayEnds {
  uint64_t count = 0;
  std::string first;  // its place

  void add(const StrayEnds& others);
  std::string describe() const;
};

}  // namespace tsomon::capture
