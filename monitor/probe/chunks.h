// How the chunks of a thread, or of a handler that interrupted it, follow one another.
//
// Thread-safety: the thread that they belong to.
#pragma once

#include <cerrno>
#include <cstdint>

#include "monitor/probe/chunk_pool.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/context.h"
#include "monitor/probe/guard.h"
#include "monitor/probe/slices.h"

namespace tsomon::probe {

// Zeroed but for what encoders leave behind.
Context* new_context();

// Continues the thread's stream in an empty chunk. False: there is none.
bool open_chunk(Thread* thread, Context* context);
// `ends`: the thread.
void close_chunk(Thread* thread, Context* context, bool ends = false);

// While one lives, signals are blocked and the thread's chunks may change hands, unless recording
// has ended: finish() waits for it.
class ChunkSwitch {
 public:
  explicit ChunkSwitch(Thread* thread) : thread_(thread), mask_(block_signals()), errno_(errno) {
    thread_->blocked = mask_;
    thread_->busy.store(true, std::memory_order_seq_cst);
    if (finishing() || !takes_part(thread)) {
      thread_->busy.store(false, std::memory_order_seq_cst);
      allowed_ = false;
    }
  }
  // The thread joins this slice (slices.h), if it is still recorded.
  ChunkSwitch(Thread* thread, uint32_t joined)
      : thread_(thread), mask_(block_signals()), errno_(errno) {
    thread_->blocked = mask_;
    thread_->busy.store(true, std::memory_order_seq_cst);
    const uint32_t before = thread->slice.exchange(joined, std::memory_order_seq_cst);
    if (finishing() || !takes_part(thread)) {
      thread->slice.store(before, std::memory_order_seq_cst);
      thread_->busy.store(false, std::memory_order_seq_cst);
      allowed_ = false;
    }
  }
  ~ChunkSwitch() {
    thread_->busy.store(false, std::memory_order_seq_cst);
    errno = errno_;
    restore_signals(mask_);
  }
  ChunkSwitch(const ChunkSwitch&) = delete;
  ChunkSwitch& operator=(const ChunkSwitch&) = delete;
  bool allowed() const { return allowed_; }

 private:
  Thread* thread_;
  uint64_t mask_;
  int errno_;
  bool allowed_ = true;
};

}  // namespace tsomon::probe
