// A reordered trace: the first events of the trace in its order, and then a tail.
//
// Purpose     What lets two accesses meet is mostly close to them. Everything before the first event
//             that the reordering leaves out or moves is as in the trace, and is not written down: a
//             witness takes the memory, and its check the time, of its tail.
// Buffers     Where stores have a buffer, the tail has a store twice, when it is issued and, with
//             kCommit, when it is committed; without the second it stays in the buffer. The stores
//             before the tail commit at once.
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace tsomon::predict {

// Of a number of an event, which has 31 bits.
inline constexpr uint32_t kCommit = 0x80000000U;

struct Witness {
  uint32_t start = 0;  // the events of the trace with smaller numbers come first,
  std::vector<uint32_t> tail;

  size_t size() const { return start + tail.size(); }
  // All events in their order.
  std::vector<uint32_t> whole() const {
    std::vector<uint32_t> all(start);
    std::iota(all.begin(), all.end(), 0);
    all.insert(all.end(), tail.begin(), tail.end());
    return all;
  }
};

// In few numbers: the events up to `last`, one of each thread that has some, in the order of the
// trace, and then the tail.
struct ShortWitness {
  std::vector<uint32_t> last;
  std::vector<uint32_t> tail;
};

}  // namespace tsomon::predict
