#include "decoders/pt/packets/resync.h"

#include <algorithm>
#include <string_view>

#include "decoders/pt/packets/packets.h"
#include "decoders/pt/packets/user_packets.h"

namespace tsomon::pt {
namespace {

constexpr std::string_view kSyncPoint(
    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82", 16);
constexpr std::string_view kMode64("\x99\x01", 2);
constexpr std::string_view kPsbEnd("\x02\x23", 2);
constexpr char kFullFup = '\xDD';
constexpr char kFullEnable = '\xD1';

std::string with_address(char code, uint64_t ip) {
  std::string packet(1, code);
  packet.append(reinterpret_cast<const char*>(&ip), sizeof ip);
  return packet;
}

}  // namespace

std::optional<Resync> write_resync(std::string& bytes, size_t from, size_t least,
                                   const std::function<bool(uint64_t ip)>& known) {
  const size_t psb = std::string_view(bytes).rfind(kSyncPoint, from);
  if (psb == std::string_view::npos) {
    return std::nullopt;
  }
  PacketReader reader(bytes, psb);
  LastAddress last;
  Packet packet;
  bool after_overflow = false;
  for (size_t at = psb; reader.next(packet) == PacketStatus::kPacket; at = reader.offset()) {
    const bool may = at >= from && reader.offset() > least && at >= kResyncRoom;
    switch (packet.type) {
      case PacketType::kPsb:
        if (may && at != psb) {
          return std::nullopt;
        }
        last.reset();
        continue;
      case PacketType::kOvf:
        last.reset();
        after_overflow = true;
        continue;
      case PacketType::kTip:
      case PacketType::kTipPge:
      case PacketType::kTipPgd:
      case PacketType::kFup:
        break;
      default:
        continue;
    }
    const auto ip = last.update(packet);
    const bool goes_on =
        packet.type == PacketType::kTip || (packet.type == PacketType::kFup && after_overflow);
    const bool enables = packet.type == PacketType::kTipPge;
    after_overflow = false;
    if (!may || !ip || is_kernel(*ip) || !(enables || (goes_on && known(*ip)))) {
      continue;
    }
    std::string group(kSyncPoint);
    group += kMode64;
    group += enables ? std::string() : with_address(kFullFup, *ip);
    group += kPsbEnd;
    group += enables ? with_address(kFullEnable, *ip) : std::string();
    const size_t begin = reader.offset() - group.size();
    bytes.replace(begin, group.size(), group);
    return Resync{begin, at, reader.offset()};
  }
  return std::nullopt;
}

}  // namespace tsomon::pt
