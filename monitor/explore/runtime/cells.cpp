#include "monitor/explore/runtime/cells.h"

namespace tsomon::explore {
namespace {

struct Entry {
  uint64_t address;  // 0: free
  uint8_t size;
  bool object;
  bool begun;  // of an object: it has a value
  bool told;   // it has an initial value
  Value initial;
  Value value;
};

constexpr uint32_t kEntries = 1U << 14;
Entry* entries = nullptr;
uint32_t* entry_places = nullptr;  // those that are not free
uint32_t entry_count = 0;
Entry* kept = nullptr;
uint32_t kept_count = 0;

Entry& entry_of(uint64_t address, uint32_t size, bool is_object) {
  uint32_t at =
      static_cast<uint32_t>(((address ^ (uint64_t{size} << 56)) * 0x9E3779B97F4A7C15ULL) >> 40) &
      (kEntries - 1);
  for (; entries[at].address != 0; at = (at + 1) & (kEntries - 1)) {
    if (entries[at].address == address && entries[at].size == size &&
        entries[at].object == is_object) {
      return entries[at];
    }
  }
  if (++entry_count > kEntries / 2) {
    end_run(End::kFailed, "more than 8192 shared cells");
  }
  entry_places[entry_count - 1] = at;
  entries[at].address = address;
  entries[at].size = static_cast<uint8_t>(size);
  entries[at].object = is_object;
  return entries[at];
}

// What the object was before anything was done to it under control.
Value value_before(const Operation& operation) {
  switch (operation.op) {
    case Op::kSemaphoreWait:
    case Op::kSemaphoreTryWait:
    case Op::kSemaphorePost:
      return get(operation.address, 4);
    case Op::kTimedOut:
      return operation.a == Value{static_cast<uint8_t>(Op::kSemaphoreWait)}
                 ? get(operation.address, 4)
                 : 0;
    default:
      return 0;
  }
}

Entry& object_of(const Operation& operation) {
  Entry& entry = entry_of(operation.address, operation.size, true);
  if (!entry.begun) {
    entry.begun = true;
    entry.value = value_before(operation);
  }
  return entry;
}

}  // namespace

void begin_cells() {
  entries = static_cast<Entry*>(take_zeroed(kEntries * sizeof(Entry)));
  entry_places = static_cast<uint32_t*>(take_zeroed(kEntries / 2 * sizeof(uint32_t)));
}

void keep_cells() {
  kept = static_cast<Entry*>(take_zeroed((entry_count + 1) * sizeof(Entry)));
  for (kept_count = 0; kept_count < entry_count; ++kept_count) {
    kept[kept_count] = entries[entry_places[kept_count]];
  }
}

void forget_cells() {
  for (uint32_t i = 0; i < entry_count && i < kEntries / 2; ++i) {
    entries[entry_places[i]] = {};
  }
  entry_count = 0;
  for (uint32_t i = 0; i < kept_count; ++i) {
    entry_of(kept[i].address, kept[i].size, kept[i].object) = kept[i];
  }
}

Value& object_value(const Operation& operation) { return object_of(operation).value; }

Value initial_of(const Operation& operation) {
  const bool is_an_object = is_object(operation.op);
  Entry& entry =
      is_an_object ? object_of(operation) : entry_of(operation.address, operation.size, false);
  if (!entry.told) {
    entry.told = true;
    entry.initial = is_an_object ? entry.value : get(operation.address, operation.size);
  }
  return entry.initial;
}

Value view(const Thread& thread, const Operation& operation) {
  if (is_object(operation.op)) {
    return object_of(operation).value;
  }
  Value value = get(operation.address, operation.size);
  for (uint32_t i = 0; i < thread.buffered; ++i) {
    const Buffered& store = thread.buffer[i];
    if (store.address == operation.address && store.size == operation.size) {
      value = store.value;
      continue;
    }
    // Others' sizes: byte by byte.
    for (uint32_t byte = 0; byte < operation.size; ++byte) {
      const uint64_t at = operation.address + byte;
      if (at >= store.address && at < store.address + store.size) {
        value &= ~(Value{0xFF} << (8 * byte));
        value |= (store.value >> (8 * (at - store.address)) & 0xFF) << (8 * byte);
      }
    }
  }
  return value;
}

}  // namespace tsomon::explore
