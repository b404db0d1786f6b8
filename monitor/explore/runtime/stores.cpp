#include "monitor/explore/runtime/stores.h"

namespace tsomon::explore {

void open_store(Thread& thread, const Operation& operation, uint32_t step, Value covered) {
  thread.store_open = true;
  thread.open_address = operation.address;
  thread.open_size = operation.size;
  thread.open_step = step;
  thread.open_covered = covered;
}

void buffer_store(Thread& thread, const Buffered& store) {
  if (thread.buffered == kBufferSize) {
    end_run(End::kFailed, "more than 64 stores in a store buffer");
  }
  thread.buffer[thread.buffered++] = store;
}

void close_store(Thread& thread) {
  if (!thread.store_open) {
    return;
  }
  thread.store_open = false;
  const Value value = get(thread.open_address, thread.open_size);
  channel->steps[thread.open_step].written = value;
  if (channel->model == Model::kTso) {
    buffer_store(thread, {thread.open_address, thread.open_size, thread.open_step, value,
                          thread.open_covered});
  }
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
