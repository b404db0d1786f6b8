// Intel PT bytes to packets.
//
// Purpose     What time and PTWRITE-only traces need, and packets that control flow decoding does
//             not know: the blocks that PEBS writes into the trace (BBP, BIP, BEP).
// Source      Intel SDM volume 3, chapter "Intel Processor Trace", packet definitions.
// Errors      kEnd: the bytes end before the packet does. kBad: no packet starts so; go on at the
//             next PSB (find_psb).
// Cost        A few ns for each packet.
// Misses      Event trace (CFE, EVD) and trigger packets: they are kBad.
// Thread-safety: none; distinct readers are independent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tsomon::pt {

enum class PacketType : uint8_t {
  kPad,
  kPsb,
  kPsbEnd,
  kOvf,
  kTraceStop,
  kTnt,  // payload: the outcomes, the last one in bit 0; detail: how many
  kTip,  // payload: the bytes of the address; detail: their compression (as FUP, PGE, PGD)
  kTipPge,
  kTipPgd,
  kFup,
  kMode,  // payload: the byte
  kPip,   // payload: CR3; detail: non-root
  kVmcs,  // payload: base address
  kCbr,   // payload: core to bus ratio
  kTsc,
  kTma,  // payload: crystal clock count; detail: fast counter (9 bits in `extra`)
  kMtc,  // payload: 8 bits of the crystal clock count
  kCyc,  // payload: cycles
  kMnt,
  kExstop,  // detail: a FUP follows (as in PTW, BEP)
  kMwait,   // payload: hints; extra: extensions
  kPwre,    // payload: the two bytes
  kPwrx,    // payload: the five bytes
  kPtw,     // extra: payload bytes, 4 or 8
  kBbp,     // payload: type of the block; extra: bytes of its items, 4 or 8
  kBip,     // payload: value; extra: which item
  kBep,
};

struct Packet {
  uint64_t payload = 0;
  uint32_t extra = 0;
  PacketType type = PacketType::kPad;
  uint8_t detail = 0;
  uint8_t size = 0;  // bytes, header included
};

enum class PacketStatus : uint8_t { kPacket, kEnd, kBad };

class PacketReader {
 public:
  explicit PacketReader(std::string_view bytes, size_t offset = 0)
      : bytes_(bytes), offset_(offset) {}

  // Stays where it is unless it gives kPacket.
  PacketStatus next(Packet& packet);
  // Goes past one packet of up to six branches, or of a target, if that is what comes. May say no.
  bool pass_branch() {
    if (bytes_.size() - offset_ < 9 || item_size_ != 0) {
      return false;
    }
    const auto first = static_cast<uint8_t>(bytes_[offset_]);
    size_t size = (first & 1U) == 0 && first > 2 ? 1 : 0;
    if ((first & 0x1FU) == 0x0D) {
      static constexpr std::array<uint8_t, 8> kSizes{1, 3, 5, 7, 7, 0, 9, 0};  // 0: none such
      size = kSizes[first >> 5];
    }
    offset_ += size;
    return size != 0;
  }
  size_t offset() const { return offset_; }
  void set_offset(size_t offset) {
    offset_ = offset;
    item_size_ = 0;
  }

 private:
  PacketStatus extended(const uint8_t* at, size_t left, Packet& packet);
  PacketStatus address(const uint8_t* at, size_t left, Packet& packet) const;

  std::string_view bytes_;
  size_t offset_ = 0;
  unsigned item_size_ = 0;  // inside a PEBS block: bytes of its items
};

// The first PSB at or after `offset`.
std::optional<size_t> find_psb(std::string_view bytes, size_t offset);

// The address that compressed ones are relative to.
class LastAddress {
 public:
  // Nothing when the packet has none.
  std::optional<uint64_t> update(const Packet& packet);
  void reset() { last_ = 0; }

 private:
  uint64_t last_ = 0;
};

}  // namespace tsomon::pt
