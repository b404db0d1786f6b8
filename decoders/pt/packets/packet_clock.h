// Time out of timing packets, as bounds.
//
// Method      TSC packets are exact. MTC packets are, too, once a TMA packet has said how the
//             crystal clock and the TSC lie; they are written at the tick or a little later. CYC
//             packets count on from the CYC packet before: where that one is not known to have been
//             written at the last exact time, they give two bounds.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "decoders/pt/packets/input.h"
#include "decoders/pt/packets/packets.h"

namespace tsomon::pt {

class PacketClock {
 public:
  explicit PacketClock(const Clock& clock) : clock_(clock) {}

  // Whether the packet says a time; `exact`: it is no estimate.
  bool update(const Packet& packet, bool& exact) {
    exact = true;
    switch (packet.type) {
      case PacketType::kTsc:
        base_ = packet.payload;
        known_ = true;
        has_ticks_ = false;
        exactly(base_);
        return true;
      case PacketType::kTma:
        if (known_ && clock_.tsc_denominator != 0 && clock_.tsc_numerator != 0) {
          // The TSC at which the crystal clock ticked last.
          base_ -= packet.extra;
          ticks_ = packet.payload;
          has_ticks_ = true;
        }
        return false;
      case PacketType::kMtc:
        return known_ && has_ticks_ && tick(packet.payload);
      case PacketType::kCbr:
        ratio_ = packet.payload;
        return false;
      case PacketType::kCyc:
        exact = false;
        if (!known_ || clock_.nominal_ratio == 0 || ratio_ == 0) {
          return false;
        }
        // They count from the CYC packet before, not from other times.
        {
          const uint64_t passed = packet.payload * clock_.nominal_ratio / ratio_;
          cycles_.low = has_cycles_ ? cycles_.low + passed : now_.low;
          cycles_.high = (has_cycles_ ? cycles_.high : now_.high) + passed;
          has_cycles_ = true;
          now_.low = std::max(now_.low, cycles_.low);
          now_.high = std::max(now_.high, cycles_.high);
        }
        cycles_were_last_ = true;
        return true;
      default:
        cycles_were_last_ = false;
        return false;
    }
  }
  // Packets may be missing: MTC counts in 8 bits, CYC from packet to packet.
  void lost() {
    has_ticks_ = false;
    has_cycles_ = false;
  }
  int64_t low() const { return static_cast<int64_t>(now_.low); }
  int64_t high() const { return static_cast<int64_t>(now_.high); }

 private:
  bool tick(uint64_t payload) {
    const unsigned shift = clock_.mtc_frequency & 15U;
    const uint64_t before = ticks_ >> shift;
    const uint64_t passed = (payload - before) & 0xFF;
    if (passed == 0) {
      return false;
    }
    const uint64_t ticks = (before + passed) << shift;
    base_ += (ticks - ticks_) * clock_.tsc_numerator / clock_.tsc_denominator;
    ticks_ = ticks;
    exactly(base_, (uint64_t{1} << shift) * clock_.tsc_numerator / clock_.tsc_denominator);
    return true;
  }

  // `late`: how long after that time the packet may have been written; the CYC packet that comes
  // with it says, as far as the ratio is right.
  void exactly(uint64_t time, uint64_t late = 0) {
    now_ = {time, time};
    if (cycles_were_last_) {
      now_.high = std::clamp(cycles_.high, time, time + late);
      cycles_ = now_;
    } else {
      cycles_ = {std::min(cycles_.low, time), time};
    }
    cycles_were_last_ = false;
  }

  struct Bounds {
    uint64_t low = 0;
    uint64_t high = 0;
  };

  const Clock& clock_;
  uint64_t base_ = 0;  // TSC at `ticks_`
  Bounds now_;
  uint64_t ticks_ = 0;
  uint64_t ratio_ = 0;
  Bounds cycles_;  // of the time of the last CYC packet
  bool has_cycles_ = false;
  bool cycles_were_last_ = false;
  bool known_ = false;
  bool has_ticks_ = false;
};

}  // namespace tsomon::pt
