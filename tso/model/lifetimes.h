// Memory that was given out again: other locations, whatever their addresses.
//
// Source      Theory, "Waiting inside of a unit" and section 1 (docs/theory.md).
// Purpose     What is allocated where something else was freed is no continuation of it: accesses to
//             the two do not conflict, and who was given the memory later does not come after who
//             had it before. So accesses, and locks and semaphores, on bytes that an object lay on
//             before (of locks and the like at addresses from 2^32 on: below, they are numbers of
//             names) get an address of their own: kTag bits above those of any program say how
//             often the bytes were given back.
// Sizes       That of the event, or, where it has none, the value that it writes.
// When        A kFree ends the object that begins there, a kAllocate those whose bytes it takes. What
//             comes later in the stream, uses of freed memory among it, is of the next object.
// Reports     own_address() gives the address back.
// Misses      Which object is meant by an access that nothing orders with the end of one: the
//             stream's order decides. Ranges that reach over several objects count as of the first.
//             After 32,767 objects on the same bytes the tags begin again. What is larger than
//             kMost stays the same location.
// Memory      Some 600 bytes for 4 KiB that were given back in parts, 40 for a live object.
// Complexity  O(1) for an access, O(pages + log live objects) for objects.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tso/model/trace.h"
#include "tso/support/flat_map.h"

namespace tsomon {

inline constexpr int kTagShift = 48;
inline constexpr uint64_t kTags = 0x7FFF;

// Of an address that Lifetimes has made, which no program has: bits below the uppermost.
inline bool is_tagged(uint64_t address) {
  return (address >> kTagShift & kTags) != 0 && address >> 63 == 0;
}
inline uint64_t own_address(uint64_t address) {
  return is_tagged(address) ? address & ((uint64_t{1} << kTagShift) - 1) : address;
}

class Lifetimes {
 public:
  // The next events of the stream: `block`, or, where addresses change, a copy in `own`.
  const EventBlock& follow(const EventBlock& block, EventBlock* own);

 private:
  static constexpr uint64_t kMost = uint64_t{1} << 28;  // bytes
  static constexpr int kPageBits = 12;
  static constexpr int kGranuleBits = 4;
  using Granules = std::array<uint16_t, 1U << (kPageBits - kGranuleBits)>;
  struct Page {
    uint16_t all = 0;                // of all its bytes
    std::unique_ptr<Granules> each;  // or of each 16
  };

  uint16_t generation(uint64_t address) const;
  void follow_object(const EventBlock& block, const Event& event);
  void give_back(uint64_t begin, uint64_t end);
  Page& page(uint64_t number);

  std::map<uint64_t, uint64_t> live_;   // objects, begin to end
  FlatMap<uint64_t, uint32_t> places_;  // of pages, by number
  std::vector<Page> pages_;
  std::array<uint64_t, 1024> any_{};  // bits: there may be such a page
};

// Of a whole trace, in its order.
void follow_lifetimes(Trace& trace);

}  // namespace tsomon
