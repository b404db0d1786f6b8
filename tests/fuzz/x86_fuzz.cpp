// Any bytes are instructions or none; the model of each holds together, and evaluating it neither
// fails nor knows anything that was not known before.
#include <cstddef>
#include <cstdint>

#include "decoders/x86/dataflow.h"
#include "decoders/x86/decode.h"
#include "tso/support/result.h"

namespace {

using namespace tsomon::x86;

void check(const Instruction& instruction) {
  TSOMON_CHECK(instruction.length >= 1 && instruction.length <= kMaxInstruction, "length");
  TSOMON_CHECK(instruction.access_count <= Instruction::kMaxAccesses, "accesses");
  for (const Access& access : instruction) {
    TSOMON_CHECK((access.address.registers() & ~instruction.reads) == 0,
                 "an address needs a register that is not read");
    const auto range = evaluate(access, {});
    TSOMON_CHECK(!range || access.address.constant(), "an address out of nothing");
  }
  RegisterFile all;
  for (unsigned i = 0; i < kRegisters; ++i) {
    all.set(static_cast<Register>(i), uint64_t{0x0123456789ABCDEF} * (i + 1));
  }
  all.set(Register::kDirection, 0);
  for (const RegisterFile& before : {all, RegisterFile{}}) {
    RegisterFile after = before;
    step_forward(instruction, after, 1);
    for (unsigned i = 0; i < kRegisters; ++i) {
      const auto name = static_cast<Register>(i);
      if ((instruction.writes & mask_of(name)) == 0) {
        TSOMON_CHECK(
            after.get(name) == before.get(name) || instruction.operation == Operation::kSystemCall,
            "a register changes that is not written");
      }
    }
    stored_value(instruction, before, 1);
    loaded_value(instruction, after);
    // What is computed back is what was there.
    step_backward(instruction, after);
    for (unsigned i = 0; i < kRegisters; ++i) {
      const auto name = static_cast<Register>(i);
      if (before.has(name) && after.has(name)) {
        TSOMON_CHECK(after.value(name) == before.value(name), "computed back wrong");
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t address = 0x400000;
  while (size != 0) {
    const auto instruction = decode(data, size, address);
    if (!instruction) {
      TSOMON_CHECK(!instruction.error().message.empty(), "an error without a message");
      return 0;
    }
    check(*instruction);
    data += instruction->length;
    size -= instruction->length;
    address = instruction->next();
  }
  return 0;
}
