#include "monitor/explore/runtime/loops.h"

#include "monitor/explore/runtime/cells.h"

namespace tsomon::explore {
// A loop that is entered in its middle comes to its first load with registers of what was before
// it: what the load is called with tells it apart.
uint64_t state_hash(const Thread& thread, const Operation& operation) {
  const State& state = *operation.state;
  uint64_t hash = state.stack ^ state.others;
  const auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  };
  for (const uint64_t word : state.registers) {
    add(word);
  }
  for (const Value value : {Value{operation.address}, operation.a, operation.b}) {
    add(static_cast<uint64_t>(value));
    add(static_cast<uint64_t>(value >> 64));
  }
  for (uint64_t at = state.stack; at + 8 <= thread.stack_end; at += 8) {
    add(*reinterpret_cast<const uint64_t*>(at));
  }
  return hash;
}

bool loop_may_go_on(const Thread& thread) {
  for (uint32_t i = thread.loop_from; i < thread.recent_count; ++i) {
    const LoopRead& read = thread.recent[i];
    if (read.size == 0) {
      continue;  // a fence
    }
    Operation again;
    again.address = read.address;
    again.size = static_cast<uint8_t>(read.size);
    if (view(thread, again) != read.value) {
      return true;
    }
  }
  return false;
}

void look_for_loop(Thread& thread, const Operation& operation) {
  const uint64_t hash = state_hash(thread, operation);
  for (uint32_t i = 0; i < thread.recent_count; ++i) {
    if (thread.recent[i].pc == operation.pc && thread.recent[i].hash == hash) {
      thread.in_loop = true;
      thread.loop_from = i;
      mark(MarkKind::kIteration, thread.recent_count - i);
      return;
    }
  }
  if (thread.recent_count == kRecent) {
    probe::copy(thread.recent, thread.recent + 1, (kRecent - 1) * sizeof(LoopRead));
    --thread.recent_count;
  }
  // The value follows.
  thread.recent[thread.recent_count++] = {operation.pc, operation.address, operation.size, hash, 0};
}

void begin_loop_anew(Thread& thread, const Operation& operation) {
  thread.in_loop = false;
  thread.recent_count = 1;
  thread.recent[0] = {operation.pc, operation.address, operation.size,
                      state_hash(thread, operation), 0};
}

void note_effect_on_loop(Thread& thread, const Operation& operation, const Done& done) {
  const bool changed_nothing =
      operation.state != nullptr && done.read == done.written && is_locked(operation.op);
  if (changed_nothing || (operation.op == Op::kLoad && operation.state != nullptr)) {
    thread.recent[thread.recent_count - 1].value = done.read;
  } else if (operation.op != Op::kFence) {
    thread.recent_count = 0;
  }
}

}  // namespace tsomon::explore
