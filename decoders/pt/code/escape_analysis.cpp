#include "decoders/pt/code/escape_analysis.h"

#include <algorithm>

#include "decoders/x86/decode.h"

namespace tsomon::pt {
namespace {

using x86::Branch;
using x86::Instruction;
using x86::Operand;
using x86::Operation;
using x86::Register;
using x86::RegisterMask;

constexpr RegisterMask kStack = x86::mask_of(Register::kRsp);
constexpr int64_t kReturnAddress = 8;  // bytes, the only thing in the frame where it begins

bool is_stack(const Operand& operand) {
  return operand.is_register() && operand.reg == Register::kRsp;
}

// Only moves the stack pointer by a constant, or uses it for addresses.
bool keeps_stack_pointer(const Instruction& instruction) {
  switch (instruction.operation) {
    case Operation::kPush:
    case Operation::kPop:
      return !is_stack(instruction.source) && !is_stack(instruction.destination);
    case Operation::kCall:
      return !is_stack(instruction.source);
    case Operation::kReturn:
      return true;
    default:
      break;
  }
  if (instruction.branch == Branch::kFar && instruction.access_count == 0) {
    return true;  // system calls and breakpoints
  }
  if ((instruction.writes & kStack) != 0) {
    const bool constant =
        instruction.source.kind == Operand::Kind::kImmediate &&
        (instruction.operation == Operation::kAdd || instruction.operation == Operation::kSub);
    const bool beside = instruction.operation == Operation::kLea &&
                        instruction.lea.base == Register::kRsp &&
                        instruction.lea.index == Register::kNone;
    return is_stack(instruction.destination) && instruction.destination.size == 8 &&
           (constant || beside);
  }
  if (is_stack(instruction.source) || is_stack(instruction.destination)) {
    return false;
  }
  RegisterMask addressed = 0;
  for (const x86::Access& access : instruction) {
    addressed |= access.address.registers();
  }
  return (instruction.reads & kStack & ~addressed) == 0;
}

// Bytes that the stack pointer goes down; calls are balanced.
std::optional<int64_t> pushed_by(const Instruction& instruction) {
  switch (instruction.operation) {
    case Operation::kPush:
    case Operation::kPop:
      for (const x86::Access& access : instruction) {
        if (access.stack) {
          return instruction.operation == Operation::kPush ? int64_t{access.size}
                                                           : -int64_t{access.size};
        }
      }
      return std::nullopt;
    case Operation::kCall:
      return 0;
    default:
      break;
  }
  if ((instruction.writes & kStack) == 0 ||
      (instruction.branch == Branch::kFar && instruction.access_count == 0)) {
    return 0;
  }
  if (!keeps_stack_pointer(instruction)) {
    return std::nullopt;
  }
  switch (instruction.operation) {
    case Operation::kSub:
      return instruction.immediate;
    case Operation::kAdd:
      return -instruction.immediate;
    case Operation::kLea:
      return -instruction.lea.displacement;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> EscapeAnalysis::return_address(uint64_t ip) {
  if (constants_ == nullptr) {
    return std::nullopt;
  }
  const auto [known, is_new] = known_.try_emplace(ip);
  if (is_new) {
    known->second = find(ip);
  }
  return known->second;
}

std::optional<int64_t> EscapeAnalysis::find(uint64_t ip) {
  const uint64_t header = constants_->unwind_header(process_, ip);
  if (header == 0) {
    return std::nullopt;
  }
  const auto read = [this](uint64_t address, uint8_t* to, size_t size) {
    return constants_->read(process_, address, to, size);
  };
  const UnwindTable& table = tables_.try_emplace(header, read, header).first->second;
  const auto function = table.find(ip);
  if (!function) {
    return std::nullopt;
  }
  // A part of another function begins with a frame.
  const auto size = table.frame_size(*function, ip);
  if (!size || *size < kReturnAddress ||
      table.frame_size(*function, function->begin) != kReturnAddress) {
    return std::nullopt;
  }
  const auto [known, is_new] = functions_.try_emplace(function->begin);
  if (is_new) {
    known->second = look_at(table, *function);
  }
  const Facts& facts = known->second;
  const auto same = facts.sizes.find(ip);
  const bool closed = facts.read && facts.exposed.count(ip) == 0 && same != facts.sizes.end() &&
                      same->second == *size;
  return closed ? std::optional(*size - kReturnAddress) : std::nullopt;
}

EscapeAnalysis::Facts EscapeAnalysis::look_at(const UnwindTable& table,
                                              const UnwindTable::Function& function) const {
  std::vector<UnwindTable::Function> parts{function};
  Code code;
  for (size_t i = 0; i < parts.size(); ++i) {
    const UnwindTable::Function part = parts[i];
    std::vector<uint64_t> goes_on;
    const auto pads = table.landing_pads(part);
    if (parts.size() > kMostParts || !pads || !read_part(table, part, code, goes_on)) {
      return {};
    }
    code.landing_pads.insert(code.landing_pads.end(), pads->begin(), pads->end());
    goes_on.insert(goes_on.end(), pads->begin(), pads->end());
    for (const uint64_t ip : goes_on) {
      const bool there = std::any_of(parts.begin(), parts.end(), [&](const auto& known) {
        return ip >= known.begin && ip < known.end;
      });
      const auto other = there ? std::nullopt : table.find(ip);
      if (other) {
        parts.push_back(*other);
      } else if (!there) {
        return {};
      }
    }
  }
  for (const auto& [address, site] : code.sites) {
    if ((site.target != 0 && code.sites.count(site.target) == 0) ||
        (site.next != 0 && code.sites.count(site.next) == 0)) {
      return {};  // these bytes are not the instructions that run
    }
  }
  return {true, exposed_by(code), sizes_of(code, function.begin)};
}

// From the function's begin on; what is reached in two ways has to be the same both times.
std::map<uint64_t, int64_t> EscapeAnalysis::sizes_of(const Code& code, uint64_t begin) {
  std::map<uint64_t, int64_t> sizes;
  std::set<uint64_t> different;
  std::vector<std::pair<uint64_t, int64_t>> open{{begin, kReturnAddress}};
  while (!open.empty()) {
    const auto [at, size] = open.back();
    open.pop_back();
    const auto site = code.sites.find(at);
    if (site == code.sites.end()) {
      continue;
    }
    const auto [known, is_new] = sizes.try_emplace(at, size);
    if (!is_new && known->second != size) {
      different.insert(at);
    }
    if (is_new && site->second.pushes) {
      open.emplace_back(site->second.next, size + *site->second.pushes);
      open.emplace_back(site->second.target, size + *site->second.pushes);
    }
  }
  return different.empty() ? sizes : std::map<uint64_t, int64_t>();
}

// Everything that comes after what may have made a pointer.
std::set<uint64_t> EscapeAnalysis::exposed_by(const Code& code) {
  std::set<uint64_t> exposed;
  std::vector<uint64_t> open;
  const auto go_on = [&](const Site& site) {
    open.push_back(site.next);
    open.push_back(site.target);
    if (site.calls) {
      open.insert(open.end(), code.landing_pads.begin(), code.landing_pads.end());
    }
  };
  for (const auto& [address, site] : code.sites) {
    if (site.exposes) {
      go_on(site);
    }
  }
  while (!open.empty()) {
    const uint64_t at = open.back();
    open.pop_back();
    const auto site = code.sites.find(at);
    if (site != code.sites.end() && exposed.insert(at).second) {
      go_on(site->second);
    }
  }
  return exposed;
}

bool EscapeAnalysis::read_part(const UnwindTable& table, const UnwindTable::Function& part,
                               Code& code, std::vector<uint64_t>& goes_on) const {
  const uint64_t size = part.end - part.begin;
  if (part.end <= part.begin || size > kMostCode) {
    return false;
  }
  std::vector<uint8_t> bytes(size);
  if (!constants_->read(process_, part.begin, bytes.data(), size)) {
    return false;
  }
  for (uint64_t at = 0; at < size;) {
    const auto decoded = x86::decode(bytes.data() + at, size - at, part.begin + at);
    if (!decoded || decoded->branch == Branch::kIndirectJump) {
      return false;
    }
    at += decoded->length;
    Site& site = code.sites[decoded->address];
    site.exposes = !keeps_stack_pointer(*decoded);
    site.pushes = pushed_by(*decoded);
    site.next = decoded->next();
    switch (decoded->branch) {
      case Branch::kJump:
        site.next = 0;
        [[fallthrough]];
      case Branch::kConditional:
        if (leaves_for_good(table, part, *decoded)) {
          break;
        }
        site.target = decoded->target;
        if (decoded->target < part.begin || decoded->target >= part.end) {
          goes_on.push_back(decoded->target);
        }
        break;
      case Branch::kReturn:
        site.next = 0;
        break;
      case Branch::kCall:
      case Branch::kIndirectCall:
        site.calls = true;
        if (decoded->target > part.begin && decoded->target < part.end) {
          return false;
        }
        break;
      default:
        break;
    }
    if (at == size && site.calls) {
      site.next = 0;  // it does not return
    } else if (at == size && site.next != 0) {
      goes_on.push_back(site.next);
    }
  }
  return true;
}

// With nothing but the return address left of the frame, to another function.
bool EscapeAnalysis::leaves_for_good(const UnwindTable& table, const UnwindTable::Function& part,
                                     const Instruction& jump) {
  if (jump.target >= part.begin && jump.target < part.end) {
    return false;
  }
  const auto other = table.find(jump.target);
  return other && other->begin == jump.target &&
         table.frame_size(part, jump.address) == kReturnAddress &&
         table.frame_size(*other, other->begin) == kReturnAddress;
}

}  // namespace tsomon::pt
