#include "decoders/pt/times.h"

#include <algorithm>
#include <optional>

#include "decoders/pt/packets.h"

namespace tsomon::pt {
namespace {

constexpr size_t kNothing = ~size_t{0};

bool is_branch(PacketType type) {
  return type == PacketType::kTnt || type == PacketType::kTip || type == PacketType::kTipPge ||
         type == PacketType::kTipPgd;
}

// Time out of timing packets.
class Counter {
 public:
  explicit Counter(const Clock& clock) : clock_(clock) {}

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
    exactly(base_);
    return true;
  }

  void exactly(uint64_t time) {
    now_ = {time, time};
    cycles_ = {cycles_were_last_ ? time : std::min(cycles_.low, time), time};
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

}  // namespace

Times::Times(std::string_view bytes, const Clock& clock) {
  Counter counter(clock);
  PacketReader reader(bytes);
  Packet packet;
  bool waits = false;  // `pending`, for its third packet of branches
  int64_t pending = 0;
  size_t last_branch = kNothing;
  unsigned branches = 0;
  size_t settled = 0;  // marks up to here are no estimates, or bounded
  std::optional<size_t> start = find_psb(bytes, 0);
  while (start) {
    reader.set_offset(*start);
    while (true) {
      const size_t at = reader.offset();
      const PacketStatus status = reader.next(packet);
      if (status != PacketStatus::kPacket) {
        start = find_psb(bytes, at + 1);
        waits = false;
        counter.lost();
        break;
      }
      if (is_branch(packet.type)) {
        last_branch = at;
        if (packet.type == PacketType::kTipPge) {
          enables_.push_back(at);
        }
        if (waits && ++branches == 3) {
          starts_.push_back({at, pending});
          waits = false;
        }
        continue;
      }
      if (packet.type == PacketType::kOvf) {
        counter.lost();
      }
      bool exact = false;
      if (!counter.update(packet, exact)) {
        continue;
      }
      const int64_t low = counter.low();
      const int64_t high = counter.high();
      if (exact) {
        // What came before was not later.
        for (; settled < marks_.size(); ++settled) {
          marks_[settled].low = std::min(marks_[settled].low, low);
          marks_[settled].high = std::min(marks_[settled].high, low);
        }
        for (size_t i = starts_.size(); i != 0 && starts_[i - 1].time > low; --i) {
          starts_[i - 1].time = low;
        }
        pending = std::min(pending, low);
      }
      if (marks_.empty() || marks_.back().low != low || marks_.back().high != high) {
        marks_.push_back({at, low, high});
        settled += exact ? 1 : 0;
        if (last_branch != kNothing) {
          ends_.push_back({last_branch, marks_.size() - 1});
          last_branch = kNothing;
        }
        if (!waits || branches == 0) {
          waits = true;
          pending = low;
          branches = 0;
        }
      }
    }
  }
}

void Times::restart(size_t offset) {
  enable_ = static_cast<size_t>(std::lower_bound(enables_.begin(), enables_.end(), offset) -
                                enables_.begin());
}

size_t Times::next_enable() { return enable_ == enables_.size() ? kNothing : enables_[enable_++]; }

int64_t Times::not_before(size_t before) {
  while (start_ < starts_.size() && starts_[start_].offset < before) {
    ++start_;
  }
  while (start_ != 0 && starts_[start_ - 1].offset >= before) {
    --start_;
  }
  return start_ == 0 ? kTimeMin : starts_[start_ - 1].time;
}

int64_t Times::not_after(size_t after) {
  while (end_ < ends_.size() && ends_[end_].offset < after) {
    ++end_;
  }
  while (end_ != 0 && ends_[end_ - 1].offset >= after) {
    --end_;
  }
  return end_ == ends_.size() ? kTimeMax : marks_[ends_[end_].mark].high;
}

int64_t Times::written_before(size_t offset) const {
  const auto found =
      std::lower_bound(marks_.begin(), marks_.end(), offset,
                       [](const Mark& mark, size_t value) { return mark.offset < value; });
  return found == marks_.begin() ? kTimeMin : (found - 1)->low;
}

int64_t Times::written_after(size_t offset) const {
  const auto found =
      std::lower_bound(marks_.begin(), marks_.end(), offset,
                       [](const Mark& mark, size_t value) { return mark.offset < value; });
  return found == marks_.end() ? kTimeMax : found->high;
}

}  // namespace tsomon::pt
