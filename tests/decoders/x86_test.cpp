// The instruction model, on bytes that the assembler has made.
#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/x86/dataflow.h"
#include "decoders/x86/decode.h"
#include "tests/decoders/x86_code.h"

using namespace tsomon::x86;

namespace {

constexpr uint64_t kAddress = 0x401000;

Instruction decoded(const Code& code) {
  const auto instruction = decode(code.begin, code.size(), kAddress);
  REQUIRE(instruction);
  REQUIRE(instruction->length == code.size());
  return *instruction;
}

RegisterFile registers(std::vector<std::pair<Register, uint64_t>> values) {
  RegisterFile file;
  for (const auto& [name, value] : values) {
    file.set(name, value);
  }
  return file;
}

TSOMON_CODE(load_index, "mov rax, [rbx+rcx*8-16]");
TSOMON_CODE(load_rip, "mov eax, [rip+0x100]");
TSOMON_CODE(load_absolute, "movabs rax, [0x1122334455667788]");
TSOMON_CODE(load_thread, "mov rax, fs:[0x28]");
TSOMON_CODE(load_short, "mov eax, [edi+4]");
TSOMON_CODE(load_byte, "movzx eax, byte ptr [rdi]");
TSOMON_CODE(load_signed, "movsxd rax, dword ptr [rdi]");
TSOMON_CODE(store_immediate, "mov qword ptr [rdi], -2");
TSOMON_CODE(store_byte_high, "mov [rdi], ah");
TSOMON_CODE(add_memory, "add dword ptr [rdi], esi");
TSOMON_CODE(add_locked, "lock add dword ptr [rdi], esi");
TSOMON_CODE(exchange, "xchg [rdi], rsi");
TSOMON_CODE(compare_exchange, "lock cmpxchg16b [rdi]");
TSOMON_CODE(compare_exchange_half, "lock cmpxchg [rdi], ecx");
TSOMON_CODE(exchange_add, "lock xadd [rdi], rsi");
TSOMON_CODE(exchange_add_high, "lock xadd [rdi], ch");
TSOMON_CODE(exchange_add_registers, "xadd rax, rbx");
TSOMON_CODE(push_register, "push rbp");
TSOMON_CODE(push_memory, "push qword ptr [rsp+8]");
TSOMON_CODE(pop_memory, "pop qword ptr [rsp+8]");
TSOMON_CODE(pop_register, "pop rbx");
TSOMON_CODE(call_memory, "call [rip+0x10]");
// Targets relative to the instruction are written differently for each assembler.
TSOMON_CODE(call_direct, ".byte 0xE8, 0x00, 0x01, 0x00, 0x00");
TSOMON_CODE(return_plain, "ret");
TSOMON_CODE(return_more, "ret 0xfff8");
TSOMON_CODE(leave_frame, "leave");
TSOMON_CODE(move_bytes, "rep movsb");
TSOMON_CODE(scan_bytes, "repne scasb");
TSOMON_CODE(compare_once, "cmpsb");
TSOMON_CODE(store_quad, "stosq");
TSOMON_CODE(gather, "vpgatherdd ymm1, [rax+ymm2*4], ymm3");
TSOMON_CODE(masked_store, "vmovups [rax]{k1}, zmm3");
TSOMON_CODE(masked_move, "vmaskmovps [rax], ymm1, ymm2");
TSOMON_CODE(broadcast, "vaddps zmm1, zmm2, dword ptr [rax]{1to16}");
TSOMON_CODE(non_temporal, "movntps [rax], xmm1");
TSOMON_CODE(long_nop, "nop dword ptr [rax+rax]");
TSOMON_CODE(choose_less, "cmovl eax, ecx");
TSOMON_CODE(choose_loaded, "cmovnz rax, [rcx]");
TSOMON_CODE(set_byte, "seta cl");
TSOMON_CODE(prefetch, "prefetcht0 [rax]");
TSOMON_CODE(bit_string, "bts [rax], rcx");
TSOMON_CODE(bit_number, "bt dword ptr [rax], 5");
TSOMON_CODE(save_all, "xsave [rax]");
TSOMON_CODE(write_trace, "ptwrite qword ptr [rax]");
TSOMON_CODE(full_fence, "mfence");
TSOMON_CODE(load_fence, "lfence");
TSOMON_CODE(store_fence, "sfence");
TSOMON_CODE(serialise, "cpuid");
TSOMON_CODE(system_call, "syscall");
TSOMON_CODE(jump_short, ".byte 0xEB, 0x0E");
TSOMON_CODE(jump_table, "jmp [rax*8+0x1000]");
TSOMON_CODE(jump_if, ".byte 0x75, 0x0E");
TSOMON_CODE(count_down, ".byte 0xE2, 0x0E");
TSOMON_CODE(interrupt_return, "iretq");
TSOMON_CODE(load_address, "lea rax, [rbx+rcx*4+3]");
TSOMON_CODE(add_immediate, "add rax, 0x10");
TSOMON_CODE(subtract, "sub rax, rbx");
TSOMON_CODE(zero, "xor eax, eax");
TSOMON_CODE(shift, "shl rax, 4");
TSOMON_CODE(shift_by_one, "sar eax, 1");
TSOMON_CODE(multiply, "imul rax, rbx, 24");
TSOMON_CODE(copy_half, "mov eax, ebx");
TSOMON_CODE(copy_byte, "mov ah, bl");
TSOMON_CODE(choose, "cmovne rax, rbx");
TSOMON_CODE(swap_registers, "xchg rax, rbx");
TSOMON_CODE(thread_base, "wrfsbase rax");
TSOMON_CODE(direction, "cld");

}  // namespace

TEST_CASE("addresses are evaluated from what they need, and only then") {
  const Instruction load = decoded(load_index);
  REQUIRE(load.access_count == 1);
  CHECK(load.accesses[0].kind == AccessKind::kLoad);
  CHECK(load.accesses[0].size == 8);
  CHECK(!evaluate(load.accesses[0], registers({{Register::kRbx, 0x1000}})));
  CHECK(!evaluate(load.accesses[0], registers({{Register::kRcx, 3}})));
  const auto range =
      evaluate(load.accesses[0], registers({{Register::kRbx, 0x1000}, {Register::kRcx, 3}}));
  REQUIRE(range);
  CHECK(range->address == 0x1000 + 24 - 16);

  const Instruction rip = decoded(load_rip);
  CHECK(rip.accesses[0].address.constant());
  CHECK(evaluate(rip.accesses[0], {})->address == kAddress + rip.length + 0x100);
  CHECK(evaluate(decoded(load_absolute).accesses[0], {})->address == 0x1122334455667788);

  const Instruction thread = decoded(load_thread);
  CHECK(!evaluate(thread.accesses[0], {}));
  CHECK(evaluate(thread.accesses[0], registers({{Register::kFsBase, 0x7000}}))->address == 0x7028);
  const Instruction cut = decoded(load_short);
  CHECK(evaluate(cut.accesses[0], registers({{Register::kRdi, 0x1FFFFFFFFULL}}))->address == 3);
}

TEST_CASE("accesses: kinds, sizes, order, marks") {
  const auto kinds = [](const Code& code) {
    std::vector<AccessKind> all;
    const Instruction instruction = decoded(code);
    for (const Access& access : instruction) {
      all.push_back(access.kind);
    }
    return all;
  };
  using Kinds = std::vector<AccessKind>;
  CHECK(kinds(add_memory) == Kinds{AccessKind::kLoad, AccessKind::kStore});
  CHECK(kinds(add_locked) == Kinds{AccessKind::kLocked});
  CHECK(kinds(exchange) == Kinds{AccessKind::kLocked});
  CHECK(kinds(compare_exchange) == Kinds{AccessKind::kLocked});
  CHECK(decoded(compare_exchange).accesses[0].size == 16);
  CHECK(kinds(push_memory) == Kinds{AccessKind::kLoad, AccessKind::kStore});
  CHECK(kinds(call_memory) == Kinds{AccessKind::kLoad, AccessKind::kStore});
  CHECK(kinds(move_bytes) == Kinds{AccessKind::kLoad, AccessKind::kStore});
  CHECK(kinds(compare_once) == Kinds{AccessKind::kLoad, AccessKind::kLoad});
  CHECK(kinds(bit_number) == Kinds{AccessKind::kLoad});
  CHECK(kinds(write_trace) == Kinds{AccessKind::kLoad});
  for (const Code& code : {long_nop, prefetch, load_address, full_fence, jump_if}) {
    CHECK(decoded(code).access_count == 0);
  }
  for (const Code& code : {long_nop, prefetch}) {
    CHECK(decoded(code).reads == 0);
  }
  CHECK(decoded(gather).accesses[0].opaque);
  CHECK(decoded(bit_string).accesses[0].opaque);
  CHECK(!decoded(bit_number).accesses[0].opaque);
  CHECK(decoded(masked_store).accesses[0].masked);
  CHECK(decoded(masked_store).accesses[0].size == 64);
  CHECK(decoded(masked_move).accesses[0].masked);
  CHECK(decoded(broadcast).accesses[0].size == 4);
  CHECK(!decoded(broadcast).accesses[0].masked);
  CHECK(decoded(non_temporal).accesses[0].non_temporal);
  CHECK(decoded(non_temporal).accesses[0].vector);
  CHECK(decoded(save_all).accesses[0].size == 0);
  CHECK(decoded(save_all).unlisted_stores);
  CHECK(decoded(write_trace).ptwrite);
  CHECK(decoded(scan_bytes).accesses[0].repeat == Repeat::kUntil);
}

TEST_CASE("the stack") {
  const RegisterFile file = registers({{Register::kRsp, 0x8000}, {Register::kRbp, 0x9000}});
  const auto place = [&](const Code& code, size_t access) {
    const Instruction instruction = decoded(code);
    CHECK(instruction.accesses[access].stack_relative() ==
          (instruction.accesses[access].stack ||
           instruction.accesses[access].address.base == Register::kRsp));
    return evaluate(instruction.accesses[access], file)->address;
  };
  CHECK(place(push_register, 0) == 0x7FF8);
  CHECK(place(push_memory, 0) == 0x8008);
  CHECK(place(push_memory, 1) == 0x7FF8);
  CHECK(place(pop_memory, 0) == 0x8000);
  CHECK(place(pop_memory, 1) == 0x8010);
  CHECK(place(pop_register, 0) == 0x8000);
  CHECK(place(call_direct, 0) == 0x7FF8);
  CHECK(place(return_plain, 0) == 0x8000);
  CHECK(place(leave_frame, 0) == 0x9000);

  const auto after = [&](const Code& code) {
    RegisterFile changed = file;
    step_forward(decoded(code), changed, 0x1234);
    return changed;
  };
  CHECK(after(push_register).get(Register::kRsp) == 0x7FF8);
  CHECK(after(pop_register).get(Register::kRsp) == 0x8008);
  CHECK(after(pop_register).get(Register::kRbx) == 0x1234);
  CHECK(after(pop_memory).get(Register::kRsp) == 0x8008);
  CHECK(after(call_direct).get(Register::kRsp) == 0x7FF8);
  CHECK(after(return_more).get(Register::kRsp) == 0x8000 + 8 + 0xFFF8);
  CHECK(after(leave_frame).get(Register::kRsp) == 0x9008);
  CHECK(after(leave_frame).get(Register::kRbp) == 0x1234);
  CHECK(stored_value(decoded(push_register), file) == 0x9000);
  CHECK(stored_value(decoded(call_direct), file) == kAddress + 5);
}

TEST_CASE("branches and fences") {
  const auto branch = [](const Code& code) { return decoded(code).branch; };
  CHECK(branch(jump_short) == Branch::kJump);
  CHECK(decoded(jump_short).target == kAddress + 0x10);
  CHECK(branch(jump_table) == Branch::kIndirectJump);
  CHECK(branch(jump_if) == Branch::kConditional);
  CHECK(branch(count_down) == Branch::kConditional);
  CHECK(branch(call_direct) == Branch::kCall);
  CHECK(decoded(call_direct).target == kAddress + 0x105);
  CHECK(branch(call_memory) == Branch::kIndirectCall);
  CHECK(branch(return_more) == Branch::kReturn);
  CHECK(branch(system_call) == Branch::kFar);
  CHECK(branch(interrupt_return) == Branch::kFar);
  CHECK(branch(add_memory) == Branch::kNone);
  CHECK(decoded(full_fence).ordering == Ordering::kFull);
  CHECK(decoded(load_fence).ordering == Ordering::kLoads);
  CHECK(decoded(store_fence).ordering == Ordering::kStores);
  CHECK(decoded(serialise).ordering == Ordering::kFull);
  CHECK(decoded(add_locked).ordering == Ordering::kNone);
  CHECK(decoded(add_locked).locked());
}

TEST_CASE("values forwards") {
  const RegisterFile file = registers({{Register::kRax, 0xFFFFFFFF00000080ULL},
                                       {Register::kRbx, 0x1122334455667788ULL},
                                       {Register::kRcx, 2}});
  const auto rax = [&](const Code& code, std::optional<uint64_t> loaded = {}) {
    RegisterFile changed = file;
    step_forward(decoded(code), changed, loaded);
    return changed.get(Register::kRax);
  };
  CHECK(rax(load_address) == 0x1122334455667788ULL + 8 + 3);
  CHECK(rax(add_immediate) == 0xFFFFFFFF00000090ULL);
  CHECK(rax(subtract) == 0xFFFFFFFF00000080ULL - 0x1122334455667788ULL);
  CHECK(rax(shift) == 0xFFFFFFF000000800ULL);
  CHECK(rax(shift_by_one) == 0x40);
  CHECK(rax(multiply) == 0x1122334455667788ULL * 24);
  CHECK(rax(copy_half) == 0x55667788);
  CHECK(rax(copy_byte) == 0xFFFFFFFF00008880ULL);
  CHECK(rax(swap_registers) == 0x1122334455667788ULL);
  CHECK(!rax(choose));
  CHECK(!rax(load_byte));
  CHECK(rax(load_byte, 0x1FF) == 0xFF);
  CHECK(rax(load_signed, 0x80000000) == 0xFFFFFFFF80000000ULL);
  RegisterFile nothing;
  step_forward(decoded(zero), nothing);
  CHECK(nothing.get(Register::kRax) == 0);
  step_forward(decoded(add_immediate), nothing);
  CHECK(nothing.get(Register::kRax) == 0x10);

  CHECK(stored_value(decoded(store_immediate), {}) == 0xFFFFFFFFFFFFFFFEULL);
  CHECK(stored_value(decoded(store_byte_high), registers({{Register::kRax, 0x1234}})) == 0x12);
  CHECK(stored_value(decoded(add_memory), registers({{Register::kRsi, 3}}), 0xFFFFFFFE) == 1);
  CHECK(!stored_value(decoded(add_memory), registers({{Register::kRsi, 3}})));
  CHECK(stored_value(decoded(exchange), registers({{Register::kRsi, 3}})) == 3);
  CHECK(loaded_value(decoded(load_index), file) == 0xFFFFFFFF00000080ULL);
  CHECK(loaded_value(decoded(load_byte), file) == 0x80);
  CHECK(!loaded_value(decoded(add_memory), file));
}

// Against the processor, which carries the same instructions out.
template <typename T>
void check_conditions(uint64_t left, uint64_t right) {
  const auto a = static_cast<T>(left);
  const auto b = static_cast<T>(right);
  const auto check = [&](Condition condition, bool expected) {
    CHECK(holds(condition, left, right, sizeof(T)) == expected);
  };
#define TSOMON_CONDITION(name, code)                                         \
  {                                                                          \
    uint8_t set = 0;                                                         \
    asm("cmp %2, %1\n\tset" code " %0" : "=q"(set) : "r"(a), "r"(b) : "cc"); \
    check(Condition::name, set != 0);                                        \
  }
  TSOMON_CONDITION(kEqual, "e")
  TSOMON_CONDITION(kNotEqual, "ne")
  TSOMON_CONDITION(kAbove, "a")
  TSOMON_CONDITION(kNotAbove, "be")
  TSOMON_CONDITION(kBelow, "b")
  TSOMON_CONDITION(kNotBelow, "ae")
  TSOMON_CONDITION(kSign, "s")
  TSOMON_CONDITION(kNotSign, "ns")
  TSOMON_CONDITION(kLess, "l")
  TSOMON_CONDITION(kNotLess, "ge")
  TSOMON_CONDITION(kGreater, "g")
  TSOMON_CONDITION(kNotGreater, "le")
#undef TSOMON_CONDITION
}

TEST_CASE("conditions are what the processor says of a comparison") {
  std::mt19937_64 random(1);
  const auto value = [&] {
    const uint64_t near = random() % 5 - 2;
    return random() % 3 == 0 ? random() : near + (uint64_t{1} << (8 * (random() % 8) + 7));
  };
  for (int i = 0; i < 5000; ++i) {
    const uint64_t a = value();
    const uint64_t b = random() % 4 == 0 ? a : value();
    check_conditions<uint8_t>(a, b);
    check_conditions<uint16_t>(a, b);
    check_conditions<uint32_t>(a, b);
    check_conditions<uint64_t>(a, b);
  }
  CHECK(decoded(choose_less).selects);
  CHECK(decoded(choose_less).condition == Condition::kLess);
  CHECK(decoded(choose_less).source.reg == Register::kRcx);
  CHECK(decoded(choose_loaded).source.is_memory());
  CHECK(decoded(set_byte).selects);
  CHECK(decoded(set_byte).condition == Condition::kAbove);
  CHECK(decoded(set_byte).source.kind == Operand::Kind::kNone);
  RegisterFile file;
  file.set(Register::kRax, 1);
  file.set(Register::kRcx, 1);
  step_forward(decoded(choose_less), file);
  CHECK_FALSE(file.has(Register::kRax));
}

TEST_CASE("values of locked instructions") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    const uint64_t before = random();
    const uint64_t operand = random();
    uint64_t memory = before;
    uint64_t rsi = operand;
    asm volatile("lock xaddq %1, %0" : "+m"(memory), "+r"(rsi));
    const Instruction add = decoded(exchange_add);
    CHECK(loaded_value(add, registers({{Register::kRsi, rsi}})) == before);
    CHECK(stored_value(add, registers({{Register::kRsi, operand}}), before) == memory);
    CHECK(!stored_value(add, registers({{Register::kRsi, operand}})));

    uint8_t byte = static_cast<uint8_t>(before);
    uint64_t rcx = operand;
    asm volatile("lock xaddb %%ch, %0" : "+m"(byte), "+c"(rcx));
    const Instruction high = decoded(exchange_add_high);
    CHECK(loaded_value(high, registers({{Register::kRcx, rcx}})) == (before & 0xFF));
    CHECK(stored_value(high, registers({{Register::kRcx, operand}}), before & 0xFF) == byte);

    uint32_t half = static_cast<uint32_t>(before);
    const uint64_t expected =
        random() % 2 == 0 ? (operand & ~uint64_t{0xFFFFFFFF}) | half : random();
    uint64_t rax = expected;
    asm volatile("lock cmpxchgl %k2, %0" : "+m"(half), "+a"(rax) : "r"(operand));
    const Instruction compare = decoded(compare_exchange_half);
    CHECK(loaded_value(compare, registers({{Register::kRax, rax}})) == (before & 0xFFFFFFFF));
    CHECK(stored_value(compare, registers({{Register::kRax, expected}, {Register::kRcx, operand}}),
                       before & 0xFFFFFFFF) == half);
    CHECK(!stored_value(compare, registers({{Register::kRcx, operand}}), before & 0xFFFFFFFF));

    memory = before;
    rsi = operand;
    asm volatile("xchgq %1, %0" : "+m"(memory), "+r"(rsi));
    const Instruction swap = decoded(exchange);
    CHECK(loaded_value(swap, registers({{Register::kRsi, rsi}})) == before);
    CHECK(stored_value(swap, registers({{Register::kRsi, operand}})) == memory);

    RegisterFile both = registers({{Register::kRax, before}, {Register::kRbx, operand}});
    step_forward(decoded(exchange_add_registers), both);
    CHECK(both.get(Register::kRax) == before + operand);
    CHECK(both.get(Register::kRbx) == before);
    CHECK(!loaded_value(decoded(exchange_add_registers), both));
  }
}

TEST_CASE("values backwards") {
  const auto back = [](const Code& code, RegisterFile after) {
    step_backward(decoded(code), after);
    return after;
  };
  const RegisterFile after =
      registers({{Register::kRax, 100}, {Register::kRbx, 7}, {Register::kRsp, 0x8000}});
  CHECK(back(add_immediate, after).get(Register::kRax) == 84);
  CHECK(back(subtract, after).get(Register::kRax) == 107);
  CHECK(!back(zero, after).has(Register::kRax));
  CHECK(!back(shift, after).has(Register::kRax));
  CHECK(!back(copy_half, after).has(Register::kRax));
  CHECK(back(copy_half, after).get(Register::kRbx) == 7);
  CHECK(back(swap_registers, after).get(Register::kRbx) == 100);
  CHECK(back(push_register, after).get(Register::kRsp) == 0x8008);
  CHECK(back(pop_register, after).get(Register::kRsp) == 0x7FF8);
  CHECK(!back(pop_register, after).has(Register::kRbx));
  CHECK(back(leave_frame, after).get(Register::kRbp) == 0x7FF8);
  CHECK(!back(leave_frame, after).has(Register::kRsp));
  CHECK(back(system_call, after).known == 0);
}

TEST_CASE("string instructions") {
  RegisterFile file = registers({{Register::kRsi, 0x1000},
                                 {Register::kRdi, 0x2000},
                                 {Register::kRcx, 16},
                                 {Register::kRax, 1}});
  const Instruction move = decoded(move_bytes);
  CHECK(!evaluate(move.accesses[0], file));  // up or down?
  step_forward(decoded(direction), file);
  REQUIRE(evaluate(move.accesses[1], file));
  CHECK(evaluate(move.accesses[1], file)->address == 0x2000);
  CHECK(evaluate(move.accesses[1], file)->size == 16);
  RegisterFile down = file;
  down.set(Register::kDirection, 1);
  CHECK(evaluate(move.accesses[1], down)->address == 0x2000 - 15);
  step_forward(decoded(store_quad), down);
  CHECK(down.get(Register::kRdi) == 0x1FF8);
  step_forward(move, file);
  CHECK(file.get(Register::kRsi) == 0x1010);
  CHECK(file.get(Register::kRdi) == 0x2010);
  CHECK(file.get(Register::kRcx) == 0);
  step_forward(decoded(compare_once), file);
  CHECK(file.get(Register::kRsi) == 0x1011);
  step_forward(decoded(scan_bytes), file);
  CHECK(!file.has(Register::kRdi));
  CHECK(file.get(Register::kRsi) == 0x1011);
}

TEST_CASE("system calls keep most registers, but not all of them") {
  RegisterFile file = registers(
      {{Register::kRax, 1}, {Register::kRbx, 2}, {Register::kRcx, 3}, {Register::kFsBase, 4}});
  RegisterFile write = file;
  step_forward(decoded(system_call), write);
  CHECK(write.known == (mask_of(Register::kRbx) | mask_of(Register::kFsBase)));
  RegisterFile sigreturn = file;
  sigreturn.set(Register::kRax, 15);
  step_forward(decoded(system_call), sigreturn);
  CHECK(sigreturn.known == 0);
  RegisterFile base = file;
  base.set(Register::kRax, 158);
  step_forward(decoded(system_call), base);
  CHECK(base.known == mask_of(Register::kRbx));
  step_forward(decoded(thread_base), file);
  CHECK(!file.has(Register::kFsBase));
}

TEST_CASE("bytes that are no instruction, or not all of one") {
  const std::vector<uint8_t> bad{0x06};
  CHECK(!decode(bad.data(), bad.size(), 0));
  CHECK(!decode(bad.data(), 0, 0));
  const Code& code = load_index;
  for (size_t size = 0; size < code.size(); ++size) {
    CHECK(!decode(code.begin, size, 0));
  }
}
