// Where a decoder that cannot go on may begin again before the next PSB.
//
// Purpose     Before code that is known: an indirect branch, or the processor switching the
//             trace on, gives the address. The bytes before that place, which have been read,
//             are overwritten by a PSB group that says so.
// Source      Intel SDM volume 3, "Intel Processor Trace", packet definitions.
// Complexity  O(bytes since the PSB before + bytes up to the place).
// Thread-safety: none: changes the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tsomon::pt {

struct Resync {
  size_t offset = 0;  // of the PSB that was written
  size_t packet = 0;  // where the packet with the address began
  size_t end = 0;     // ... and ended
};

inline constexpr size_t kResyncRoom = 64;  // bytes that must be free before the first packet

// The first place after `from` (a decoder has read so far) whose packet ends after `least`.
// Nothing when a PSB or the end comes first. `known`: code that can be followed.
std::optional<Resync> write_resync(std::string& bytes, size_t from, size_t least,
                                   const std::function<bool(uint64_t ip)>& known);

}  // namespace tsomon::pt
