#include "decoders/pt/packets/snapshot_join.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "decoders/pt/packets/packets.h"

namespace tsomon::pt {
namespace {

// Where in `next` the end of `earlier` lies at the latest, so that all that both then have agrees.
// Knuth, Morris and Pratt's search, from the ends: the first place where all of `earlier` is found,
// or what of it is left when `next` ends.
size_t end_in_next(std::string_view earlier, std::string_view next) {
  const size_t length = earlier.size();
  if (length == 0) {
    return 0;
  }
  const auto wanted = [&](size_t i) { return earlier[length - 1 - i]; };
  std::vector<uint32_t> shorter(length, 0);  // of the first i + 1 bytes: that begin and end alike
  for (size_t i = 1, match = 0; i < length; ++i) {
    while (match != 0 && wanted(match) != wanted(i)) {
      match = shorter[match - 1];
    }
    match += wanted(match) == wanted(i) ? 1 : 0;
    shorter[i] = static_cast<uint32_t>(match);
  }
  size_t match = 0;
  for (size_t at = 0; at < next.size(); ++at) {
    const char byte = next[next.size() - 1 - at];
    while (match != 0 && wanted(match) != byte) {
      match = shorter[match - 1];
    }
    match += wanted(match) == byte ? 1 : 0;
    if (match == length) {
      return next.size() - 1 - at + length;
    }
  }
  return match;
}

bool has_time(std::string_view bytes) {
  PacketReader reader(bytes);
  for (auto psb = find_psb(bytes, 0); psb; psb = find_psb(bytes, *psb + 1)) {
    reader.set_offset(*psb);
    Packet packet;
    reader.next(packet);  // the PSB; another one ends what belongs to it, so no byte is read twice
    while (reader.next(packet) == PacketStatus::kPacket && packet.type != PacketType::kPsbEnd &&
           packet.type != PacketType::kPsb) {
      if (packet.type == PacketType::kTsc) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

SnapshotJoin join_snapshots(std::string_view earlier, std::string_view next) {
  constexpr size_t kMostPadding = 7;
  SnapshotJoin best;
  for (size_t padding = 0; padding <= std::min(kMostPadding, earlier.size()); ++padding) {
    const std::string_view trace = earlier.substr(0, earlier.size() - padding);
    const size_t end = end_in_next(trace, next);
    const size_t common = std::min(end, trace.size());
    const bool certain = has_time(next.substr(end - common, common));
    if (padding == 0 || certain || end > best.from) {
      best = {padding, end, certain};
    }
    if (certain || trace.empty() || trace.back() != '\0') {
      break;
    }
  }
  return best;
}

}  // namespace tsomon::pt
