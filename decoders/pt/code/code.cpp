#include "decoders/pt/code/code.h"

#include <algorithm>

#include "decoders/x86/decode.h"

namespace tsomon::pt {
namespace {

using x86::Instruction;
using x86::Operation;
using x86::Register;

x86::RegisterMask required(const Instruction& instruction) {
  switch (instruction.operation) {
    case Operation::kClobber:
      return CodeBlock::kNever;
    case Operation::kPush:
    case Operation::kPop:
    case Operation::kCall:
    case Operation::kReturn:
      return x86::mask_of(Register::kRsp);
    case Operation::kLeave:
      return x86::mask_of(Register::kRbp);
    case Operation::kMove:
    case Operation::kMoveSigned:
    case Operation::kLea:
    case Operation::kAdd:
    case Operation::kSub:
    case Operation::kAnd:
    case Operation::kOr:
    case Operation::kXor:
    case Operation::kShiftLeft:
    case Operation::kShiftRight:
    case Operation::kShiftRightSigned:
    case Operation::kRotateLeft:
    case Operation::kRotateRight:
    case Operation::kMultiply:
    case Operation::kNot:
    case Operation::kNegate:
    case Operation::kSwapBytes:
      break;
    default:
      return 0;  // say themselves what they need
  }
  if (instruction.source.is_memory() || instruction.destination.is_memory()) {
    return CodeBlock::kNever;
  }
  const bool zero =
      (instruction.operation == Operation::kXor || instruction.operation == Operation::kSub) &&
      instruction.source.is_register() && instruction.source.reg == instruction.destination.reg;
  return zero ? 0 : instruction.reads;
}

// Once the instructions are all there: the rest points into them.
void prepare(CodeBlock& block) {
  block.first = block.instructions.front().address;
  const Instruction& last = block.instructions.back();
  block.jumps_by_word = last.branch == x86::Branch::kIndirectJump && last.access_count == 1 &&
                        last.accesses[0].address.constant();
  for (const Instruction& instruction : block.instructions) {
    block.effects.push_back(
        {instruction.writes == 0 ? CodeBlock::kNever : required(instruction), instruction.writes});
    for (const x86::Access& access : instruction) {
      block.accesses.push_back({&instruction, &access,
                                access.opaque ? CodeBlock::kNever : access.address.registers(),
                                access.repeat == x86::Repeat::kOnce && access.size != 0});
    }
  }
  block.steps =
      steps_of(block.instructions.data(), block.instructions.data() + block.instructions.size());
}

// Nothing in a block depends on the trace: what comes twice comes for ever.
bool loops(const CodeBlock& block) {
  std::vector<uint64_t> addresses;
  addresses.reserve(block.instructions.size());
  for (const Instruction& instruction : block.instructions) {
    addresses.push_back(instruction.address);
  }
  std::sort(addresses.begin(), addresses.end());
  return std::adjacent_find(addresses.begin(), addresses.end()) != addresses.end();
}

}  // namespace

const CodeBlock* CodeCache::find_or_decode(uint64_t image, uint64_t ip, uint32_t count,
                                           const Read& read) {
  const Key key{image, ip, count};
  if (const auto known = blocks_.find(key); known != blocks_.end()) {
    return known->second.get();
  }
  if (full()) {
    return nullptr;
  }
  auto block = std::make_unique<CodeBlock>();
  instructions_ += count;
  uint64_t at = ip;
  for (uint32_t i = 0; i < count; ++i) {
    std::array<uint8_t, x86::kMaxInstruction> bytes{};
    const size_t got = read(at, bytes.data(), bytes.size());
    const auto instruction = x86::decode(bytes.data(), got, at);
    if (!instruction) {
      block = nullptr;
      break;
    }
    block->instructions.push_back(*instruction);
    // Only direct jumps go on inside a block.
    at = instruction->branch == x86::Branch::kJump || instruction->branch == x86::Branch::kCall
             ? instruction->target
             : instruction->next();
  }
  if (block && loops(*block)) {
    block = nullptr;
  }
  if (block) {
    prepare(*block);
  }
  return blocks_.emplace(key, std::move(block)).first->second.get();
}

std::array<uint64_t, 2> CodeBlock::goes_on_at() const {
  const x86::Instruction& last = instructions.back();
  switch (last.branch) {
    case x86::Branch::kNone:
    case x86::Branch::kFar:
      return {last.next(), 0};
    case x86::Branch::kConditional:
      return {last.next(), last.target};
    case x86::Branch::kJump:
    case x86::Branch::kCall:
      return {last.target, 0};
    default:
      return {0, 0};
  }
}

}  // namespace tsomon::pt
