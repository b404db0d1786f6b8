// The same message at most once a minute, with how often it came.
//
// Same        But for the numbers in it. The first one is told at once, as it is; those of the next minute are counted, and the
//             last of them is told at its end.
// Complexity  O(length) each; at most kMost messages are remembered, what comes beyond them counts as one.
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tsomon::service {

class MessageLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kQuiet{60};
  static constexpr size_t kMost = 256;

  // What is to be told now; nothing: it is counted.
  std::optional<std::string> add(const std::string& text, Time now);
  // Those whose minute is over. `all`: of the others, too.
  std::vector<std::string> due(Time now, bool all = false);
  uint64_t withheld() const { return withheld_; }  // in all

 private:
  struct Told {
    Time at;
    uint64_t again = 0;
    std::string last;
  };

  std::map<std::string, Told> told_;
  uint64_t withheld_ = 0;
};

}  // namespace tsomon::service
