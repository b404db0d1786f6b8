#include "decoders/pt/code.h"

#include "decoders/x86/decode.h"

namespace tsomon::pt {
namespace {

// Once the instructions are all there: the rest points into them.
void prepare(CodeBlock& block) {
  for (const x86::Instruction& instruction : block.instructions) {
    for (const x86::Access& access : instruction) {
      block.accesses.push_back({&instruction, &access});
    }
  }
  block.steps =
      steps_of(block.instructions.data(), block.instructions.data() + block.instructions.size());
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
  if (block) {
    prepare(*block);
  }
  return blocks_.emplace(key, std::move(block)).first->second.get();
}

}  // namespace tsomon::pt
