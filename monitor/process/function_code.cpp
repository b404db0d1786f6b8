#include "monitor/process/function_code.h"

#include <algorithm>
#include <set>

#include "decoders/x86/decode.h"

namespace tsomon {

using x86::Branch;
using x86::Instruction;
using x86::Register;

FunctionCode::FunctionCode(const attach::ElfImage& image, uint64_t inside) {
  const attach::Symbol* const found = attach::symbol_around(image.functions(), inside);
  if (found != nullptr && found->size <= kMostCode) {
    range_ = found->range();
    code_ = image.code(range_);
    has_frame_pointer_ = sets_frame_pointer();
  }
}

std::optional<Instruction> FunctionCode::at(uint64_t address) const {
  if (code_.empty() || !range_.contains(address)) {
    return std::nullopt;
  }
  const size_t offset = address - range_.begin;
  auto decoded = x86::decode(code_.data() + offset, code_.size() - offset, address);
  return decoded ? std::optional(*decoded) : std::nullopt;
}

uint64_t FunctionCode::behind_jumps(uint64_t address) const {
  constexpr unsigned kMost = 8;
  for (unsigned i = 0; i < kMost; ++i) {
    const auto next = at(address);
    if (!next || next->branch != Branch::kJump) {
      break;
    }
    address = next->target;
  }
  return address;
}

bool FunctionCode::stores_elsewhere(const Instruction& from) const {
  return from.unlisted_stores ||
         std::any_of(from.begin(), from.end(), [&](const x86::Access& access) {
           return access.kind != x86::AccessKind::kLoad && !access.stack_relative() &&
                  !(has_frame_pointer_ && access.address.base == Register::kRbp);
         });
}

std::vector<Instruction> FunctionCode::straight_to(uint64_t address) const {
  std::set<uint64_t> targets;
  std::vector<Instruction> before;
  for (uint64_t at_address = range_.begin; at_address < range_.end;) {
    const auto next = at(at_address);
    if (!next || next->branch == Branch::kIndirectJump) {
      return {};
    }
    if (next->branch == Branch::kConditional || next->branch == Branch::kJump) {
      targets.insert(next->target);
    }
    if (at_address < address) {
      before.push_back(*next);
    }
    at_address = next->next();
  }
  if (targets.count(address) != 0) {
    return {};
  }
  auto first = before.end();
  while (first != before.begin() && std::prev(first)->branch == Branch::kNone) {
    --first;
    if (targets.count(first->address) != 0) {
      break;
    }
  }
  return {first, before.end()};
}

// At its beginning, perhaps behind a mark for indirect calls and room for a patch.
bool FunctionCode::sets_frame_pointer() const {
  constexpr unsigned kFirst = 16;
  uint64_t address = range_.begin;
  for (unsigned i = 0; i < kFirst; ++i) {
    const auto next = at(address);
    if (!next || next->branch != Branch::kNone) {
      return false;
    }
    if (next->operation == x86::Operation::kMove && next->destination.is_register() &&
        next->destination.reg == Register::kRbp && next->source.is_register() &&
        next->source.reg == Register::kRsp) {
      return true;
    }
    address = next->next();
  }
  return false;
}

}  // namespace tsomon
