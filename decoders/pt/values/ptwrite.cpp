#include "decoders/pt/values/ptwrite.h"

namespace tsomon::pt {

PtwriteReader::PtwriteReader(std::string_view bytes, const Clock& clock)
    : bytes_(bytes), reader_(bytes), clock_(clock) {}

bool PtwriteReader::next(std::vector<PtwriteValue>& values) {
  values.clear();
  Packet packet;
  bool awaits_address = false;
  while (true) {
    const size_t at = reader_.offset();
    const PacketStatus status = synchronised_ ? reader_.next(packet) : PacketStatus::kBad;
    if (status != PacketStatus::kPacket) {
      // From the first PSB on; later only because of damage.
      const auto psb = find_psb(bytes_, at);
      if (status == PacketStatus::kEnd || !psb) {
        lost_ |= at < bytes_.size() && status != PacketStatus::kEnd;
        reader_.set_offset(bytes_.size());
        synchronised_ = true;
        return !values.empty();
      }
      lost_ |= synchronised_;
      gap_ |= synchronised_;
      synchronised_ = true;
      reader_.set_offset(*psb);
      clock_.lost();
      awaits_address = false;
      continue;
    }
    switch (packet.type) {
      case PacketType::kPtw:
        values.push_back(
            {packet.payload, 0, low_, kTimeMax, static_cast<uint8_t>(packet.extra), gap_});
        gap_ = false;
        awaits_address = packet.detail != 0;
        continue;
      case PacketType::kFup: {
        const auto ip = address_.update(packet);
        if (awaits_address && ip) {
          values.back().ip = *ip;
        }
        awaits_address = false;
        continue;
      }
      case PacketType::kTip:
      case PacketType::kTipPge:
      case PacketType::kTipPgd:
        address_.update(packet);
        continue;
      case PacketType::kPsb:
        address_.reset();
        continue;
      case PacketType::kOvf:
        address_.reset();
        clock_.lost();
        gap_ = true;
        lost_ = true;
        continue;
      default:
        break;
    }
    bool exact = false;
    if (!clock_.update(packet, exact)) {
      continue;
    }
    low_ = clock_.low();
    // Only an exact time is certainly not before what was written.
    if (exact && !values.empty()) {
      for (PtwriteValue& value : values) {
        value.lo = std::min(value.lo, low_);
        value.hi = std::min(value.hi, low_);
      }
      return true;
    }
    for (size_t i = values.size(); i-- != 0 && values[i].hi == kTimeMax;) {
      values[i].hi = clock_.high();
    }
    if (values.size() >= 65536) {
      return true;
    }
  }
}

}  // namespace tsomon::pt
