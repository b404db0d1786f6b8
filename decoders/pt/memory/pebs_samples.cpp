#include "decoders/pt/memory/pebs_samples.h"

#include <array>
#include <optional>

#include "decoders/pt/packets/packets.h"
#include "decoders/pt/packets/sched_switches.h"
#include "decoders/pt/packets/times.h"

namespace tsomon::pt {
namespace {

using x86::Register;

constexpr uint64_t kGeneralRegisters = 1;  // types of blocks
constexpr uint64_t kBasic = 4;
constexpr std::string_view kBlockBegin("\x02\x63", 2);
// Items of kGeneralRegisters from number 2 on: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
constexpr uint32_t kFlagsItem = 0;
constexpr uint32_t kIpItem = 1;
constexpr uint32_t kFirstRegister = 2;
constexpr uint64_t kDirectionFlag = 1U << 10;

class PartReader {
 public:
  PartReader(const Input& input, const TraceStream& stream, std::string_view bytes,
             const SchedSwitches& running, PebsSamples& out)
      : stream_(stream), bytes_(bytes), times_(bytes, input.clock), running_(running), out_(out) {}

  void run() {
    PacketReader reader(bytes_);
    std::optional<size_t> start = find_psb(bytes_, 0);
    while (start) {
      reader.set_offset(*start);
      forget();
      Packet packet;
      size_t at = *start;
      while (reader.next(packet) == PacketStatus::kPacket) {
        take(packet, at);
        at = reader.offset();
      }
      start = find_psb(bytes_, at + 1);
    }
  }

 private:
  void forget() {
    type_.reset();
    begin_.reset();
    registers_ = {};
    ip_.reset();
    counted_ip_.reset();
    time_.reset();
  }

  void take(const Packet& packet, size_t at) {
    switch (packet.type) {
      case PacketType::kBbp:
        type_ = packet.payload;
        wide_ = packet.extra == 8;
        begin_ = begin_.value_or(at);
        break;
      case PacketType::kBip:
        if (type_ && wide_) {
          item(packet.extra, packet.payload);
        }
        break;
      case PacketType::kBep:
        finish(at);
        forget();
        break;
      case PacketType::kOvf:
        forget();
        break;
      default:
        break;
    }
  }

  void item(uint32_t which, uint64_t value) {
    if (*type_ == kBasic) {
      if (which == 0) {
        counted_ip_ = value;
      } else if (which == 2) {
        time_ = static_cast<int64_t>(value);
      }
    } else if (*type_ == kGeneralRegisters) {
      if (which == kFlagsItem) {
        registers_.set(Register::kDirection, (value & kDirectionFlag) != 0 ? 1 : 0);
      } else if (which == kIpItem) {
        ip_ = value;
      } else if (which < kFirstRegister + 16) {
        registers_.set(static_cast<Register>(which - kFirstRegister), value);
      }
    }
  }

  void finish(size_t end) {
    if (!begin_ || registers_.known == 0 || (!ip_ && !counted_ip_)) {
      return;
    }
    const int64_t low = times_.written_before(*begin_);
    const int64_t high = times_.written_after(end);
    const auto [process, thread] =
        time_ ? running_.on(stream_, *time_, *time_) : running_.on(stream_, low, high);
    if (thread == 0) {
      ++out_.of_nobody;
      return;
    }
    RegisterSample sample;
    sample.process = process;
    sample.thread = thread;
    sample.registers = registers_;
    sample.ip = ip_.value_or(counted_ip_.value_or(0));
    sample.after = !ip_;
    sample.time = time_.value_or(high);
    sample.earliest = time_.value_or(times_.not_before(*begin_));
    out_.samples.push_back(sample);
  }

  const TraceStream& stream_;
  std::string_view bytes_;
  Times times_;
  const SchedSwitches& running_;
  PebsSamples& out_;
  std::optional<uint64_t> type_;  // of the block that is open
  bool wide_ = false;
  std::optional<size_t> begin_;  // of the first block
  x86::RegisterFile registers_;
  std::optional<uint64_t> ip_;
  std::optional<uint64_t> counted_ip_;
  std::optional<int64_t> time_;
};

}  // namespace

PebsSamples read_pebs_samples(const Input& input) {
  PebsSamples out;
  const SchedSwitches running(input);
  for (const TraceStream& stream : input.streams) {
    for_each_part(stream, [&](std::string_view part) {
      if (part.find(kBlockBegin) != std::string_view::npos) {
        PartReader(input, stream, part, running, out).run();
      }
    });
  }
  return out;
}

}  // namespace tsomon::pt
