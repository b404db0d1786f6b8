#include "decoders/pt/packets/times.h"

#include <algorithm>
#include <optional>

#include "decoders/pt/packets/packet_clock.h"
#include "decoders/pt/packets/packets.h"

namespace tsomon::pt {
namespace {

constexpr size_t kNothing = ~size_t{0};

bool is_branch(PacketType type) {
  return type == PacketType::kTnt || type == PacketType::kTip || type == PacketType::kTipPge ||
         type == PacketType::kTipPgd;
}

}  // namespace

Times::Times(std::string_view bytes, const Clock& clock) {
  PacketClock counter(clock);
  PacketReader reader(bytes);
  Packet packet;
  bool waits = false;  // `pending`, for its third packet of branches
  int64_t pending = 0;
  size_t last_branch = kNothing;
  unsigned branches = 0;
  // Up to here these are no estimates, or bounded.
  size_t settled = 0;
  size_t settled_starts = 0;
  const auto branch = [&](size_t at) {
    last_branch = at;
    if (waits && ++branches == 3) {
      starts_.push_back({at, pending});
      waits = false;
    }
  };
  std::optional<size_t> start = find_psb(bytes, 0);
  while (start) {
    reader.set_offset(*start);
    while (true) {
      const size_t at = reader.offset();
      if (reader.pass_branch()) {
        branch(at);
        continue;
      }
      const PacketStatus status = reader.next(packet);
      if (status != PacketStatus::kPacket) {
        start = find_psb(bytes, at + 1);
        waits = false;
        counter.lost();
        break;
      }
      if (is_branch(packet.type)) {
        if (packet.type == PacketType::kTipPge) {
          enables_.push_back(at);
        }
        branch(at);
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
          marks_[settled].high = std::min(marks_[settled].high, high);
        }
        for (; settled_starts < starts_.size(); ++settled_starts) {
          starts_[settled_starts].time = std::min(starts_[settled_starts].time, low);
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
