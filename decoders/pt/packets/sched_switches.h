// Which thread ran on a CPU, by the list of switches.
//
// Complexity  O(log n) for each question. Thread-safety: const access is safe.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "decoders/pt/packets/input.h"

namespace tsomon::pt {

class SchedSwitches {
 public:
  using Ids = std::pair<int, int>;  // process, thread; thread 0: not known, or nobody

  explicit SchedSwitches(const Input& input) {
    for (const Switch& item : input.switches) {
      switches_[item.cpu].push_back(item);
    }
  }

  // Who ran on the stream all the time from `lo` to `hi`.
  Ids on(const TraceStream& stream, int64_t lo, int64_t hi) const {
    if (stream.cpu < 0) {
      return {stream.process, stream.thread};
    }
    const auto of_cpu = switches_.find(stream.cpu);
    if (of_cpu == switches_.end()) {
      return {};
    }
    const auto next = [&](int64_t time) {
      return std::upper_bound(of_cpu->second.begin(), of_cpu->second.end(), time,
                              [](int64_t at, const Switch& item) { return at < item.time; });
    };
    const auto first = next(lo);
    return first == of_cpu->second.begin() || first != next(hi)
               ? Ids{}
               : Ids{(first - 1)->process, (first - 1)->thread};
  }

 private:
  std::map<int, std::vector<Switch>> switches_;  // by CPU
};

}  // namespace tsomon::pt
