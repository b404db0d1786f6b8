#include "monitor/explore/runtime/plain.h"

namespace tsomon::explore {
namespace {

constexpr uint32_t kWord = 8;

template <typename Visit>
void for_each_part(uint64_t address, uint32_t size, const Visit& visit) {
  if (size <= kWord) {
    return visit(address, size);
  }
  for (uint64_t at = address, end = address + size; at < end;) {
    const uint64_t part_end = end_of_part(at);
    const auto part = static_cast<uint32_t>((part_end < end ? part_end : end) - at);
    visit(at, part);
    at += part;
  }
}

Operation part_of(Op op, const Announced& all, uint64_t address, uint32_t size) {
  Operation operation;
  operation.op = op;
  operation.divisible = all.size > kWord;
  operation.address = address;
  operation.size = static_cast<uint8_t>(size);
  operation.pc = all.pc;
  return operation;
}

void keep_covered(Announced& store) {
  probe::copy(store.covered, reinterpret_cast<const void*>(store.address), store.size);
}

void make_announced(Thread& thread) {
  const Announced& store = thread.announced;
  if (store.size == 0 || thread.store_held) {
    return;
  }
  const Announced made = store;
  thread.announced.size = 0;
  char stored[kMostPlain];
  probe::copy(stored, reinterpret_cast<const void*>(made.address), made.size);
  probe::copy(reinterpret_cast<void*>(made.address), made.covered, made.size);
  for_each_part(made.address, made.size, [&](uint64_t at, uint32_t part) {
    const char* const from = stored + (at - made.address);
    if (is_shared(at, part, true, made.pc)) {
      Operation operation = part_of(Op::kStore, made, at, part);
      probe::copy(&operation.a, from, part);
      step(operation);
      check_alive(at, made.pc);  // others may have freed it
    } else {
      probe::copy(reinterpret_cast<void*>(at), from, part);
    }
  });
}

void end_loads(Thread& thread) {
  while (thread.loaded_count != 0) {
    const Loaded& loaded = thread.loaded[--thread.loaded_count];
    put(loaded.address, loaded.size, loaded.covered);
  }
}

// The length of an instruction that puts something into a register, without a store; 0: it may be
// any other.
uint32_t moves_to_register(const uint8_t* code) {
  const uint32_t prefix = (code[0] & 0xF0) == 0x40 ? 1 : 0;  // REX
  const uint8_t opcode = code[prefix];
  if (opcode >= 0xB8 && opcode <= 0xBF) {  // mov register, immediate
    return prefix + 1 + ((code[0] & 0xF8) == 0x48 && prefix == 1 ? 8 : 4);
  }
  const uint8_t modrm = code[prefix + 1];
  const uint32_t mode = modrm >> 6;
  const bool has_sib = mode != 3 && (modrm & 7) == 4;
  const bool has_base =
      !(mode == 0 && ((modrm & 7) == 5 || (has_sib && (code[prefix + 2] & 7) == 5)));
  const uint32_t displacement = mode == 1 ? 1 : mode == 2 || !has_base ? 4 : 0;
  const uint32_t length = prefix + 2 + (has_sib ? 1 : 0) + (mode == 3 ? 0 : displacement);
  if (opcode == 0x8B || opcode == 0x8D || (opcode == 0x89 && mode == 3)) {
    return length;
  }
  return opcode == 0xC7 && mode == 3 ? length + 4 : 0;
}

// The code from where the store's hook returns to the call of the one that returns to `pc`: the
// program has not stored yet.
bool is_still_to_come(const Announced& store, uint64_t pc) {
  constexpr uint64_t kCall = 5;
  constexpr uint64_t kMostBetween = 48;
  if (store.size == 0 || pc <= store.pc || pc - store.pc > kMostBetween) {
    return false;
  }
  uint64_t at = store.pc;
  while (at < pc - kCall) {
    const uint32_t length = moves_to_register(reinterpret_cast<const uint8_t*>(at));
    if (length == 0) {
      return false;
    }
    at += length;
  }
  return at == pc - kCall && *reinterpret_cast<const uint8_t*>(at) == 0xE8;
}

}  // namespace

void settle(Thread& thread) {
  make_announced(thread);
  end_loads(thread);
}

bool announce_load(uint64_t address, uint32_t size, const State* state, uint64_t pc) {
  Thread& thread = threads[self];
  Announced load{};
  load.size = size;
  load.pc = pc;
  Loaded* const loaded = thread.loading;
  uint32_t count = 0;
  const bool holds = is_still_to_come(thread.announced, pc);
  thread.store_held = holds;
  for_each_part(address, size, [&](uint64_t at, uint32_t part) {
    if (is_shared(at, part, false, pc)) {
      Operation operation = part_of(Op::kLoad, load, at, part);
      operation.state = state;
      const Value value = step(operation).read;
      check_alive(at, pc);  // others may have freed it
      if (state != nullptr) {
        check_written(at, part, value, pc);
      }
      loaded[count++] = {at, part, value};
    } else if (state != nullptr) {
      check_written(at, part, get(at, part), pc);
    }
  });
  if (holds) {
    thread.store_held = false;
    keep_covered(thread.announced);
  }
  for (uint32_t i = 0; i < count; ++i) {
    const Value now = get(loaded[i].address, loaded[i].size);
    if (now != loaded[i].covered) {
      put(loaded[i].address, loaded[i].size, loaded[i].covered);
      thread.loaded[thread.loaded_count++] = {loaded[i].address, loaded[i].size, now};
    }
  }
  return count != 0;
}

bool announce_store(uint64_t address, uint32_t size, uint64_t pc) {
  Thread& thread = threads[self];
  make_announced(thread);
  bool shared = false;
  for_each_part(address, size, [&](uint64_t at, uint32_t part) {
    shared = is_shared(at, part, true, pc) || shared;
  });
  if (shared) {
    thread.announced.address = address;
    thread.announced.size = size;
    thread.announced.pc = pc;
    keep_covered(thread.announced);
  }
  return shared;
}

}  // namespace tsomon::explore
