#include "decoders/pt/memory/binding.h"

#include <optional>
#include <utility>

namespace tsomon::pt {

using x86::Branch;

bool Binding::block(const CodeBlock& block) {
  static constexpr size_t kNested = 16;
  if (constants_ == nullptr) {
    return false;
  }
  if (std::exchange(moved_, false)) {
    come_back(block.ip());
  }
  const std::optional<uint64_t> loader = constants_->loader_at(process_, block.ip());
  if (std::exchange(entered_, false) && loader && under_way_.size() < kNested) {
    under_way_.push_back({*loader, 0});
  }
  const bool binds = !under_way_.empty() && loader == under_way_.back().loader;
  const x86::Instruction& last = block.instructions.back();
  entered_ = block.jumps_by_word &&
             constants_->is_resolver(process_,
                                     static_cast<uint64_t>(last.accesses[0].address.displacement));
  if (under_way_.empty()) {
    return binds;
  }
  Lookup& innermost = under_way_.back();
  for (const x86::Instruction& instruction : block.instructions) {
    innermost.depth += instruction.branch == Branch::kCall ? 1 : 0;
  }
  switch (entered_ ? Branch::kNone : last.branch) {
    case Branch::kIndirectCall:
      ++innermost.depth;
      break;
    case Branch::kReturn:
      if (innermost.depth-- == 0) {
        under_way_.pop_back();
      }
      break;
    case Branch::kIndirectJump:
      if (innermost.depth == 0) {
        under_way_.pop_back();
      }
      break;
    default:
      break;
  }
  return binds;
}

void Binding::interrupt() {
  static constexpr size_t kMost = 16;
  if (interrupted_.size() == kMost) {
    interrupted_.erase(interrupted_.begin());
  }
  const auto ips = last_ == nullptr ? std::array<uint64_t, 2>{} : last_->goes_on_at();
  interrupted_.push_back({std::move(under_way_), ips, entered_});
  stop();
  moved_ = true;
}

void Binding::come_back(uint64_t ip) {
  for (size_t i = interrupted_.size(); i-- != 0;) {
    Interrupted& interrupted = interrupted_[i];
    if (ip != 0 && (interrupted.ips[0] == ip || interrupted.ips[1] == ip)) {
      under_way_ = std::move(interrupted.under_way);
      entered_ = interrupted.entered;
      interrupted_.resize(i);
      return;
    }
  }
}

void note_loader(std::vector<FoundAccess>& accesses) {
  for (FoundAccess& found : accesses) {
    if (found.source == AddressSource::kUnknown && found.access->kind == x86::AccessKind::kLoad &&
        found.access->address.segment == x86::Register::kNone) {
      found.source = AddressSource::kLoader;
    }
  }
}

}  // namespace tsomon::pt
