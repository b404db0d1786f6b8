#include "decoders/pt/packets/packets.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tsomon::pt {
namespace {

constexpr std::string_view kPsb("\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82",
                                16);

uint64_t load8(const uint8_t* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// `left`: bytes that may be read there, `size` at least.
uint64_t little_endian(const uint8_t* at, unsigned size, size_t left) {
  if (left >= 8) {
    return size >= 8 ? load8(at) : load8(at) & ((uint64_t{1} << (8 * size)) - 1);
  }
  uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i) {
    value |= uint64_t{at[i]} << (8 * i);
  }
  return value;
}

}  // namespace

std::optional<size_t> find_psb(std::string_view bytes, size_t offset) {
  const size_t found = bytes.find(kPsb, offset);
  return found == std::string_view::npos ? std::nullopt : std::optional(found);
}

PacketStatus PacketReader::address(const uint8_t* at, size_t left, Packet& packet) const {
  // No payload; 16, 32, 48 bits; 48 bits, upper ones kept; reserved; 64 bits; reserved.
  static constexpr std::array<uint8_t, 8> kSizes{0, 2, 4, 6, 6, 0xFF, 8, 0xFF};
  packet.detail = static_cast<uint8_t>(at[0] >> 5);
  const unsigned size = kSizes[packet.detail];
  if (size == 0xFF) {
    return PacketStatus::kBad;
  }
  if (left < 1 + size) {
    return PacketStatus::kEnd;
  }
  packet.payload = little_endian(at + 1, size, left - 1);
  packet.size = static_cast<uint8_t>(1 + size);
  return PacketStatus::kPacket;
}

PacketStatus PacketReader::extended(const uint8_t* at, size_t left, Packet& packet) {
  if (left < 2) {
    return PacketStatus::kEnd;
  }
  const uint8_t code = at[1];
  const auto give = [&](PacketType type, unsigned payload) {
    if (left < 2 + payload) {
      return PacketStatus::kEnd;
    }
    packet.type = type;
    packet.size = static_cast<uint8_t>(2 + payload);
    packet.payload = little_endian(at + 2, std::min(payload, 8U), left - 2);
    return PacketStatus::kPacket;
  };
  switch (code) {
    case 0x82: {
      if (left < kPsb.size()) {
        return PacketStatus::kEnd;
      }
      if (std::memcmp(at, kPsb.data(), kPsb.size()) != 0) {
        return PacketStatus::kBad;
      }
      item_size_ = 0;
      return give(PacketType::kPsb, 14);
    }
    case 0x23:
      return give(PacketType::kPsbEnd, 0);
    case 0xF3:
      item_size_ = 0;
      return give(PacketType::kOvf, 0);
    case 0x83:
      return give(PacketType::kTraceStop, 0);
    case 0xA3: {
      const PacketStatus status = give(PacketType::kTnt, 6);
      if (status == PacketStatus::kPacket) {
        if (packet.payload <= 1) {  // no outcome before the stop bit
          return PacketStatus::kBad;
        }
        const auto stop = static_cast<unsigned>(63 - __builtin_clzll(packet.payload));
        packet.detail = static_cast<uint8_t>(stop);
        packet.payload ^= uint64_t{1} << stop;
      }
      return status;
    }
    case 0x43: {
      const PacketStatus status = give(PacketType::kPip, 6);
      packet.detail = packet.payload & 1U;
      packet.payload = packet.payload >> 1 << 5;
      return status;
    }
    case 0xC8: {
      const PacketStatus status = give(PacketType::kVmcs, 5);
      packet.payload <<= 12;
      return status;
    }
    case 0x03: {
      const PacketStatus status = give(PacketType::kCbr, 2);
      packet.payload &= 0xFF;
      return status;
    }
    case 0x73: {
      const PacketStatus status = give(PacketType::kTma, 5);
      packet.extra = static_cast<uint32_t>(packet.payload >> 24);
      const bool reserved = packet.extra > 0x1FF || (packet.payload & 0xFF0000) != 0;
      packet.payload &= 0xFFFF;
      return status == PacketStatus::kPacket && reserved ? PacketStatus::kBad : status;
    }
    case 0xC3: {
      if (left < 3) {
        return PacketStatus::kEnd;
      }
      if (at[2] != 0x88) {
        return PacketStatus::kBad;
      }
      const PacketStatus status = give(PacketType::kMnt, 9);
      if (status == PacketStatus::kPacket) {
        packet.payload = load8(at + 3);
      }
      return status;
    }
    case 0x62:
    case 0xE2:
      packet.detail = code >> 7;
      return give(PacketType::kExstop, 0);
    case 0xC2: {
      const PacketStatus status = give(PacketType::kMwait, 8);
      packet.extra = static_cast<uint32_t>(packet.payload >> 32);
      packet.payload &= 0xFFFFFFFFU;
      return status;
    }
    case 0x22:
      return give(PacketType::kPwre, 2);
    case 0xA2:
      return give(PacketType::kPwrx, 5);
    case 0x63: {
      const PacketStatus status = give(PacketType::kBbp, 1);
      if (status == PacketStatus::kPacket) {
        packet.extra = (packet.payload & 0x80U) != 0 ? 4 : 8;
        packet.payload &= 0x1FU;
        item_size_ = packet.extra;
      }
      return status;
    }
    case 0x33:
    case 0xB3:
      packet.detail = code >> 7;
      item_size_ = 0;
      return give(PacketType::kBep, 0);
    default:
      break;
  }
  if ((code & 0x1FU) == 0x12) {
    const unsigned size = (code >> 5) & 3U;
    if (size > 1) {
      return PacketStatus::kBad;
    }
    packet.detail = code >> 7;
    packet.extra = size == 0 ? 4 : 8;
    return give(PacketType::kPtw, packet.extra);
  }
  return PacketStatus::kBad;
}

PacketStatus PacketReader::next(Packet& packet) {
  if (offset_ >= bytes_.size()) {
    return PacketStatus::kEnd;
  }
  const auto* at = reinterpret_cast<const uint8_t*>(bytes_.data()) + offset_;
  const size_t left = bytes_.size() - offset_;
  const uint8_t first = at[0];
  packet = {};
  const auto give = [&](PacketType type, unsigned payload) {
    if (left < 1 + payload) {
      return PacketStatus::kEnd;
    }
    packet.type = type;
    packet.size = static_cast<uint8_t>(1 + payload);
    packet.payload = little_endian(at + 1, payload, left - 1);
    return PacketStatus::kPacket;
  };
  PacketStatus status = PacketStatus::kBad;
  if (first == 0x02) {
    status = extended(at, left, packet);
  } else if (first == 0) {
    status = give(PacketType::kPad, 0);
  } else if (item_size_ != 0 && (first & 7U) == 4) {
    status = give(PacketType::kBip, item_size_);
    packet.extra = first >> 3;
  } else if ((first & 1U) == 0) {
    const auto stop = static_cast<unsigned>(31 - __builtin_clz(first));
    packet.type = PacketType::kTnt;
    packet.detail = static_cast<uint8_t>(stop - 1);
    packet.payload = (first ^ (1U << stop)) >> 1;
    packet.size = 1;
    status = PacketStatus::kPacket;
  } else if ((first & 3U) == 3) {
    uint64_t cycles = first >> 3;
    unsigned shift = 5;
    size_t size = 1;
    status = PacketStatus::kPacket;
    for (bool more = (first & 4U) != 0; more; ++size) {
      if (size >= left) {
        return PacketStatus::kEnd;
      }
      const uint8_t byte = at[size];
      if (shift + 7 > 64) {
        return PacketStatus::kBad;
      }
      cycles |= uint64_t{byte} >> 1 << shift;
      shift += 7;
      more = (byte & 1U) != 0;
    }
    packet.type = PacketType::kCyc;
    packet.payload = cycles;
    packet.size = static_cast<uint8_t>(size);
  } else {
    switch (first & 0x1FU) {
      case 0x0D:
        packet.type = PacketType::kTip;
        status = address(at, left, packet);
        break;
      case 0x11:
        packet.type = PacketType::kTipPge;
        status = address(at, left, packet);
        break;
      case 0x01:
        packet.type = PacketType::kTipPgd;
        status = address(at, left, packet);
        break;
      case 0x1D:
        packet.type = PacketType::kFup;
        status = address(at, left, packet);
        break;
      case 0x19:
        if (first == 0x19) {
          status = give(PacketType::kTsc, 7);
        } else if (first == 0x59) {
          status = give(PacketType::kMtc, 1);
        } else if (first == 0x99) {
          status = give(PacketType::kMode, 1);
          const uint64_t leaf = packet.payload >> 5;
          if (status == PacketStatus::kPacket && leaf > 1) {
            status = PacketStatus::kBad;
          }
        }
        break;
      default:
        break;
    }
  }
  if (status == PacketStatus::kPacket) {
    offset_ += packet.size;
  }
  return status;
}

std::optional<uint64_t> LastAddress::update(const Packet& packet) {
  switch (packet.detail) {
    case 1:
      last_ = (last_ & ~uint64_t{0xFFFF}) | packet.payload;
      break;
    case 2:
      last_ = (last_ & ~uint64_t{0xFFFFFFFF}) | packet.payload;
      break;
    case 3:
      last_ = static_cast<uint64_t>(static_cast<int64_t>(packet.payload << 16) >> 16);
      break;
    case 4:
      last_ = (last_ & ~uint64_t{0xFFFFFFFFFFFF}) | packet.payload;
      break;
    case 6:
      last_ = packet.payload;
      break;
    default:
      return std::nullopt;
  }
  return last_;
}

}  // namespace tsomon::pt
