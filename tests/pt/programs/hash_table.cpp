// Open addressing in a global table.
#include "traced.h"

static uint64_t keys[1024];
static uint64_t counts[1024];
static uint64_t used;

__attribute__((noinline)) static uint64_t slot_of(uint64_t key) {
  uint64_t slot = (key * 0x9E3779B97F4A7C15ULL) >> 54;
  TRACE_VALUE(slot);
  while (keys[slot] != 0 && keys[slot] != key) {
    slot = (slot + 1) & 1023;
    TRACE_VALUE(slot);
  }
  return slot;
}

int main() {
  begin_trace();
  uint64_t state = 1;
  for (int i = 0; i < 1500; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const uint64_t key = (state >> 33) % 700 + 1;
    const uint64_t slot = slot_of(key);
    if (keys[slot] == 0) {
      keys[slot] = key;
      ++used;
    }
    ++counts[slot];
  }
  end_trace();
  return used == 0;
}
