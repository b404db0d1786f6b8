#include "decoders/pt/packets/user_packets.h"

#include <optional>
#include <utility>

#include "decoders/pt/packets/packets.h"

namespace tsomon::pt {
namespace {

class Rewriter {
 public:
  explicit Rewriter(std::string_view bytes) : bytes_(bytes) { out_.reserve(bytes.size()); }

  std::string run() {
    PacketReader reader(bytes_);
    std::optional<size_t> start = find_psb(bytes_, 0);
    while (start) {
      reader.set_offset(*start);
      Packet packet;
      size_t at = *start;
      PacketStatus status = PacketStatus::kEnd;
      while ((status = reader.next(packet)) == PacketStatus::kPacket) {
        take(packet, bytes_.substr(at, packet.size));
        at = reader.offset();
      }
      start = find_psb(bytes_, at + 1);
      if (status == PacketStatus::kBad) {
        const size_t end = start.value_or(bytes_.size());
        out_ += bytes_.substr(at, end - at);
      }
      state_ = State::kOff;
      in_psb_ = after_overflow_ = false;
      mode_ = {};
    }
    return std::move(out_);
  }

 private:
  enum class State { kOff, kUser, kKernel };

  void take(const Packet& packet, std::string_view whole) {
    const bool drops_address = std::exchange(drops_address_, false);
    switch (packet.type) {
      case PacketType::kTip:
      case PacketType::kTipPge:
      case PacketType::kTipPgd:
      case PacketType::kFup:
        after_overflow_ = address(packet, last_.update(packet), drops_address) && after_overflow_;
        return;
      case PacketType::kPsb:
        last_.reset();
        in_psb_ = true;
        state_ = State::kOff;
        after_overflow_ = false;
        break;
      case PacketType::kPsbEnd:
        in_psb_ = false;
        break;
      case PacketType::kOvf:
        last_.reset();
        in_psb_ = false;
        after_overflow_ = true;
        state_ = State::kOff;
        mode_ = {};
        break;
      case PacketType::kMode:
        if (!in_psb_ && packet.payload >> 5 == 0) {  // of execution: with the next TIP
          mode_ = whole;
          return;
        }
        [[fallthrough]];
      case PacketType::kTnt:
      case PacketType::kPtw:
      case PacketType::kBbp:
      case PacketType::kBip:
      case PacketType::kBep:
        drops_address_ = packet.type == PacketType::kBep && packet.detail != 0;
        if (!in_psb_ && state_ != State::kUser) {
          return;
        }
        break;
      case PacketType::kPip:
      case PacketType::kVmcs:
        if (!in_psb_) {
          return;
        }
        break;
      case PacketType::kExstop:
        drops_address_ = packet.detail != 0;
        return;
      case PacketType::kMwait:
      case PacketType::kPwre:
      case PacketType::kPwrx:
      case PacketType::kPad:
        return;
      default:  // time
        drops_address_ = drops_address;
        break;
    }
    out_ += whole;
  }

  // Whether an overflow still waits for its address.
  bool address(const Packet& packet, std::optional<uint64_t> ip, bool drops_address) {
    const State target = !ip ? state_ : is_kernel(*ip) ? State::kKernel : State::kUser;
    switch (packet.type) {
      case PacketType::kFup:
        if (in_psb_ || after_overflow_) {
          state_ = target;
        } else if (drops_address) {
          return true;
        }
        if (state_ == State::kUser && ip && target == State::kUser) {
          write(kFup, ip);
        }
        return false;
      case PacketType::kTip:
        if (target == State::kUser) {
          write_mode();
          write(state_ == State::kKernel ? kTipPge : kTip, ip);
        } else if (state_ == State::kUser) {
          write(kTipPgd, std::nullopt);
        }
        state_ = target;
        return false;
      case PacketType::kTipPge:
        if (target == State::kUser) {
          write_mode();
          write(kTipPge, ip);
        }
        state_ = target;
        return false;
      default:
        if (state_ == State::kUser) {
          write(kTipPgd, target == State::kUser ? ip : std::nullopt);
        }
        state_ = State::kOff;
        return false;
    }
  }

  static constexpr uint8_t kTip = 0x0D;
  static constexpr uint8_t kTipPge = 0x11;
  static constexpr uint8_t kTipPgd = 0x01;
  static constexpr uint8_t kFup = 0x1D;

  void write(uint8_t code, std::optional<uint64_t> ip) {
    constexpr uint8_t kFull = 6U << 5;
    out_ += static_cast<char>(ip ? code | kFull : code);
    if (ip) {
      out_.append(reinterpret_cast<const char*>(&*ip), sizeof *ip);
    }
  }

  void write_mode() {
    out_ += mode_;
    mode_ = {};
  }

  std::string_view bytes_;
  std::string out_;
  LastAddress last_;
  State state_ = State::kOff;
  bool in_psb_ = false;
  bool after_overflow_ = false;
  bool drops_address_ = false;  // the FUP of a packet that was left out
  std::string_view mode_;       // the last one that was not written yet
};

}  // namespace

std::string user_packets(std::string_view bytes) { return Rewriter(bytes).run(); }

}  // namespace tsomon::pt
