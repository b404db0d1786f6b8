#include "monitor/attach/hit_values.h"

#include "decoders/x86/dataflow.h"

namespace tsomon::attach {
namespace {

void conclude_read(Values values, PendingAccess& pending, ValueCounts& counts) {
  if (pending.read && pending.memory) {
    ++counts.compared;
    counts.differed += *pending.read != *pending.memory ? 1 : 0;
  }
  if (pending.read) {
    ++counts.registers;
  } else if (pending.memory && pending.memory_exact) {
    pending.read = pending.memory;
    ++counts.memory;
  } else if (pending.memory && values == Values::kMemory) {
    pending.read = pending.memory;
    ++counts.assumed;
  }
}

}  // namespace

void see_registers(const Plan& plan, const Site& site, const Hit& hit,
                   std::vector<PendingAccess>& all) {
  for (PendingAccess& pending : all) {
    // Another stack pointer: a signal handler may run the same code.
    if (pending.function != site.function || pending.instruction >= site.instruction ||
        pending.stack != hit.registers.value(x86::Register::kRsp) ||
        pending.event.kind() == EventKind::kWrite) {
      continue;
    }
    const std::vector<x86::Instruction>& code = plan.functions[site.function].code;
    x86::RegisterFile registers = hit.registers;
    bool straight = true;
    for (uint32_t i = site.instruction; straight && --i >= pending.instruction;) {
      straight = code[i].branch == x86::Branch::kNone && code[i].next() == code[i + 1].address;
      if (i == pending.instruction) {
        break;
      }
      x86::step_backward(code[i], registers);
    }
    if (straight) {
      pending.read = x86::loaded_value(code[pending.instruction], registers);
    }
  }
}

void conclude_values(const Plan& plan, Values values, std::vector<PendingAccess>& all,
                     ValueCounts& counts) {
  const PendingAccess* load = nullptr;
  for (PendingAccess& pending : all) {
    if (pending.function == Interner::kNone) {
      continue;
    }
    const x86::Instruction& instruction =
        plan.functions[pending.function].code[pending.instruction];
    if (pending.event.kind() != EventKind::kWrite) {
      conclude_read(values, pending, counts);
      load = &pending;
    }
    if (pending.event.kind() != EventKind::kRead) {
      const bool same = load != nullptr && load->function == pending.function &&
                        load->instruction == pending.instruction;
      pending.written =
          x86::stored_value(instruction, pending.before, same ? load->read : std::nullopt);
    }
  }
}

}  // namespace tsomon::attach
