#include "monitor/pt/pt_samples.h"

#include <algorithm>
#include <deque>
#include <optional>

namespace tsomon {
namespace {

using x86::Register;

constexpr uint64_t kRegisters64 = 2;  // Registers::abi
constexpr unsigned kIpBit = 8;        // of Registers::mask, as the kernel numbers them
constexpr unsigned kFlagsBit = 9;
constexpr uint64_t kDirectionFlag = 1U << 10;
constexpr uint64_t kEmptying = 1000000;  // ns: a buffer of the processor is emptied in less

std::optional<Register> register_of(unsigned bit) {
  static constexpr Register kLow[] = {Register::kRax, Register::kRbx, Register::kRcx,
                                      Register::kRdx, Register::kRsi, Register::kRdi,
                                      Register::kRbp, Register::kRsp};
  if (bit < 8) {
    return kLow[bit];
  }
  if (bit >= 16 && bit < 24) {
    return static_cast<Register>(bit - 16 + static_cast<unsigned>(Register::kR8));
  }
  return std::nullopt;
}

struct FoundRegisters {
  x86::RegisterFile registers;
  std::optional<uint64_t> ip;
};

FoundRegisters registers_of(const perf::Registers& from) {
  FoundRegisters found;
  size_t at = 0;
  for (uint64_t rest = from.mask; rest != 0 && at < from.values.size(); rest &= rest - 1, ++at) {
    const auto bit = static_cast<unsigned>(__builtin_ctzll(rest));
    if (const auto name = register_of(bit)) {
      found.registers.set(*name, from.values[at]);
    } else if (bit == kIpBit) {
      found.ip = from.values[at];
    } else if (bit == kFlagsBit) {
      found.registers.set(Register::kDirection, (from.values[at] & kDirectionFlag) != 0 ? 1 : 0);
    }
  }
  return found;
}

}  // namespace

void PtSamples::see(const perf::Attribute& attribute, const perf::Record& record) {
  namespace st = perf::sample_type;
  const uint64_t kind = attribute.sample_type & (st::kRegsIntr | st::kRegsUser);
  if (kind == 0 || (attribute.flags & perf::attribute_flag::kAuxOutput) != 0) {
    return;
  }
  const auto sample = parse_sample(attribute, record);
  constexpr uint64_t kNeeded = st::kIp | st::kTid | st::kTime;
  const bool user = (record.misc & perf::misc::kCpuModeMask) == perf::misc::kUser;
  if (!sample || !user || (sample->fields & kNeeded) != kNeeded || sample->tid == 0 ||
      sample->time == 0) {
    ++left_out_;
    return;
  }
  const bool precise = (attribute.flags & perf::attribute_flag::kPrecise) != 0;
  // Only those of the interrupt are the processor's own.
  const bool of_interrupt = (kind & st::kRegsIntr) != 0;
  const perf::Registers& from = of_interrupt ? sample->interrupt_registers : sample->user_registers;
  const FoundRegisters found = registers_of(from);
  if (from.abi != kRegisters64 || found.registers.known == 0 || (precise && !of_interrupt) ||
      (found.ip && *found.ip != sample->ip)) {
    ++left_out_;
    return;
  }
  Seen seen;
  seen.sample.process = static_cast<int>(sample->pid & INT32_MAX);
  seen.sample.thread = static_cast<int>(sample->tid & INT32_MAX);
  seen.sample.ip = sample->ip;
  seen.sample.registers = found.registers;
  seen.sample.after = (record.misc & perf::misc::kExactIp) != 0;
  seen.sample.interrupt = !precise;
  seen.time = sample->time;
  seen.earliest = sample->time;
  seen.event = record.attribute;
  seen.cpu = (sample->fields & st::kCpu) != 0 ? sample->cpu : UINT32_MAX;
  seen.precise = precise;
  samples_.push_back(seen);
}

void PtSamples::set_beginnings() {
  std::stable_sort(samples_.begin(), samples_.end(),
                   [](const Seen& left, const Seen& right) { return left.time < right.time; });
  std::map<std::pair<uint64_t, uint32_t>, std::deque<uint64_t>> recent;  // by event and CPU
  for (Seen& seen : samples_) {
    if (!seen.precise) {
      continue;
    }
    auto& times = recent[{seen.event, seen.cpu}];
    while (times.size() > 1 && times[1] + kEmptying <= seen.time) {
      times.pop_front();
    }
    const bool known =
        seen.cpu != UINT32_MAX && !times.empty() && times.front() + kEmptying <= seen.time;
    seen.earliest = known ? times.front() : 0;
    times.push_back(seen.time);
  }
}

}  // namespace tsomon
