// Names for memory that is given out again: the same address is another location in every block.
//
// Purpose     What happens to a block of memory and to the next one at the same address does not
//             conflict. The events of a run, one after another, get addresses that tell the blocks
//             apart: the place where a block lies, and above it which one of the blocks there it is.
//             Everything else of prediction then takes two blocks for two places.
// Blocks      From kAllocate to kFree. The first one at a place keeps its address; so does what was
//             allocated before the run begins. What is accessed after it was given back is the old
//             block, until the memory is given out again. Large blocks (kUnmapped) go back to the
//             kernel, which may put there what no event tells of: of what is accessed there later
//             it is not known that it is the old block.
// Sizes       Of both events the bytes are left in the event itself: block_bytes().
// Numbers     15 bits: after 32,767 blocks at one place they begin again. hard_edges.h puts what was
//             done to the older one of the same number before the other.
// Complexity  O(log(blocks that were ever given back)) an event. Memory: 60 bytes for each of those,
//             16 for each address of a block.
// Source      This project's own.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "tso/model/trace.h"
#include "tso/support/flat_map.h"

namespace tsomon::predict {

class BlockNames {
 public:
  static constexpr uint64_t kUnmapped = uint64_t{64} << 10;

  // The next event of the run. `bytes`: of a block, where the event's size does not say them.
  void name(Event* event, std::optional<uint64_t> bytes);

  // Locks lie in blocks from there on. Below are the numbers of those that have names alone.
  static bool has_locks(uint64_t address) { return address >= uint64_t{1} << 16; }

  // Where the memory lies.
  static uint64_t place(uint64_t name) {
    return name >> 63 == 0 ? name & kPlace : name;  // the kernel's half has no blocks
  }

 private:
  static constexpr uint32_t kShift = 48;
  static constexpr uint64_t kPlace = (uint64_t{1} << kShift) - 1;
  static constexpr uint64_t kLast = uint64_t{1} << 47;  // of the addresses of programs
  static constexpr uint64_t kNumbers = 0x7FFF;

  struct Piece {
    uint64_t end = 0;
    uint64_t number = 0;
  };
  using Pieces = std::map<uint64_t, Piece>;  // by begin; they do not overlap

  uint64_t number_at(uint64_t address) const;
  void split(uint64_t at);
  void begin(uint64_t address, uint64_t bytes);
  void end(uint64_t address, uint64_t bytes);
  void set(uint64_t address, uint64_t bytes, uint64_t number);

  Pieces pieces_;                      // memory that was given back once, or out again
  FlatMap<uint64_t, uint64_t> sizes_;  // of blocks, by address
};

// Of a kAllocate or kFree; 0: not known.
inline uint64_t block_bytes(const EventBlock& trace, const Event& event) {
  if (event.has_extras()) {
    return trace.write_value(event).value_or(event.size);
  }
  return event.size | uint64_t{event.span_or_extra} << 24;
}

}  // namespace tsomon::predict
