#include "monitor/probe/chunks.h"

#include "monitor/probe/records.h"

namespace tsomon::probe {
namespace {

// Below, stamp_every counts every access; else cached ones only when their instruction has run
// 127 times.
constexpr uint64_t kSharpest = 256;

}  // namespace

uint32_t chunk_room = kMostRoom;

Context* new_context() { return static_cast<Context*>(take_memory(sizeof(Context))); }

bool open_chunk(Thread* thread, Context* context) {
  Chunk* const chunk = take_empty_chunk(thread);
  context->chunk = chunk;
  if (chunk == nullptr) {
    return false;
  }
  chunk->owner = thread;
  chunk->start = context->start;
  chunk->sequence = thread->sequence.fetch_add(1, std::memory_order_relaxed);
  context->since = 0;
  context->floor = last_stamp(*context);
  context->announced = 0;
  context->stamped = kNowhere;
  context->begun = kNowhere;
  context->owed = kNowhere;
  context->locked = kNowhere;
  context->repeats.end = kNowhere;
  context->encoder.pc_only = options.stamp_every != 0 && options.stamp_every < kSharpest;
  // A hook records what is cached without a look at its address: not where there is a choice.
  context->encoder.filter_mask = options.only_sets ? capture::kFilterMask : 0;
  capture::start_chunk(context->encoder, chunk->tokens, chunk_room);
  return true;
}

void close_chunk(Thread* thread, Context* context, bool ends) {
  record_held(*context);
  Chunk* const chunk = context->chunk;
  if (capture::has_run(context->encoder)) {
    capture::put_nothing(context->encoder);
  }
  chunk->size = static_cast<uint32_t>(sizeof chunk->start + context->encoder.end);
  thread->bytes += chunk->size;
  context->chunk = nullptr;
  give_full_chunk(thread, chunk, ends);
}

namespace {

// Hands the full chunk over and begins a new one; true when there is one.
bool next_chunk() {
  Thread* const thread = local.thread;
  const ChunkSwitch change(thread);
  if (!change.allowed()) {
    return false;
  }
  Context* const context = thread->context;
  if (context->chunk != nullptr) {
    close_chunk(thread, context);
    filled(thread->bytes);
  }
  if (!open_chunk(thread, context)) {
    local.context = &inactive;
    return false;
  }
  const uint64_t lost = thread->lost.load(std::memory_order_relaxed);
  if (lost != thread->lost_reported) {
    capture::put_lost(context->encoder, lost - thread->lost_reported);
    thread->lost_reported = lost;
  }
  // A chunk begins with a stamp: it can be read when the one before it is missing.
  capture::put_stamp(context->encoder, stamp_in_order(*context));
  context->stamped = context->encoder.end;
  local.context = context;
  return true;
}

}  // namespace

void count_lost() {
  Thread* const thread = local.thread;
  if (thread == nullptr) {
    return;
  }
  thread->lost.store(thread->lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// More than whoever records asks room for.
constexpr uint32_t kMostTokens = 80;

Context* writable_slow() {
  Thread* const thread = local.thread;
  if (TSOMON_UNLIKELY(thread != nullptr && controlled && (finishing() || !takes_part(thread))) &&
      !leave_slice()) {
    return nullptr;
  }
  if (TSOMON_LIKELY(local.thread == nullptr)) {
    return controlled && join_slice() ? local.context : nullptr;  // else not recording, or not yet
  }
  record_waiting();
  if (local.context->repeats.word != 0) {
    record_held(*local.context);
  }
  if (capture::has_room(local.context->encoder, kMostTokens)) {
    return local.context;
  }
  if (TSOMON_UNLIKELY(ended_early)) {
    return nullptr;  // and no system call is made
  }
  // After a failure nothing is tried until a chunk came back: dropping must not cost system calls.
  const bool failed = local.context == &inactive;
  if (thread->muted || (failed && thread->returned == chunks_returned())) {
    if (!finishing()) {
      count_lost();
    }
    return nullptr;
  }
  thread->returned = chunks_returned();
  if (!next_chunk()) {
    if (!finishing()) {
      count_lost();
    }
    filled(UINT64_MAX);  // there is no room for more
    return nullptr;
  }
  return local.context;
}

}  // namespace tsomon::probe
