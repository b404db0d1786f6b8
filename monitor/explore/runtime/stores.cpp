#include "monitor/explore/runtime/stores.h"

namespace tsomon::explore {

void buffer_store(Thread& thread, const Buffered& store) {
  if (thread.buffered == kBufferSize) {
    end_run(End::kFailed, "more than 64 stores in a store buffer");
  }
  thread.buffer[thread.buffered++] = store;
}

void take_out(Thread& thread) {
  for (uint32_t i = thread.buffered; i-- > 0;) {
    put(thread.buffer[i].address, thread.buffer[i].size, thread.buffer[i].covered);
  }
}

void put_in(Thread& thread) {
  for (uint32_t i = 0; i < thread.buffered; ++i) {
    Buffered& store = thread.buffer[i];
    store.covered = get(store.address, store.size);
    put(store.address, store.size, store.value);
  }
}

Buffered commit_oldest(Thread& thread) {
  const Buffered oldest = thread.buffer[0];
  put(oldest.address, oldest.size, oldest.value);
  --thread.buffered;
  probe::copy(thread.buffer, thread.buffer + 1, thread.buffered * sizeof(Buffered));
  return oldest;
}

}  // namespace tsomon::explore
