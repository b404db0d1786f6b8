#include "monitor/probe/open_chunks.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/copy.h"
#include "monitor/probe/stamp.h"

namespace tsomon::probe {
namespace {

Thread* in_rounds = nullptr;       // threads that have not ended, linked by next_in_round
Thread* last_in_rounds = nullptr;  // the first of threads() when `in_rounds` was made

// Live: what the thread has recorded so far, and what that says about its accesses. False: the
// thread promises nothing now.
//
// All threads passed a full barrier after `since` was taken. What a thread stored before its
// barrier is seen here; so what is not seen was stored after it, and comes after `since`, as do the
// accesses that follow a record. A stamp is taken before it is recorded, and a load of an atomic
// performed: `announced` tells.
bool observe(Thread* thread, uint64_t since) {
  alignas(64) static uint8_t payload[sizeof(capture::OpenEntry) + sizeof(Chunk)];
  if (thread->busy.load(std::memory_order_seq_cst)) {
    return false;
  }
  Context* const context = *const_cast<Context* volatile*>(&thread->context);
  if (context == nullptr) {
    return true;  // not begun, or ended: its chunks are in the queue
  }
  Chunk* const chunk = *const_cast<Chunk* volatile*>(&context->chunk);
  if (chunk == nullptr) {
    return true;  // nothing can be recorded before the next chunk, which begins with a stamp
  }
  const volatile Context& seen = *context;
  const uint32_t announced_at = seen.announced;
  const bool announced = announced_at == seen.encoder.end + 1 || seen.encoder.before != 0 ||
                         thread->unrecorded.load(std::memory_order_relaxed) ||
                         seen.repeats.word != 0;
  capture::Position position;
  if (context->outer != nullptr || !capture::snapshot(context->encoder, &position) ||
      position.count == capture::kMaxCount) {
    return false;
  }
  capture::OpenEntry entry;
  size_t size = sizeof entry;
  const bool changed = thread->told_chunk != chunk->sequence + 1 ||
                       thread->told.end != position.end || thread->told.slot != position.slot ||
                       thread->told.count != position.count;
  if (changed) {
    copy(payload + size, &chunk->start, sizeof chunk->start + position.end);
    size += sizeof chunk->start + position.end;
    if (position.count != 0) {
      size += capture::put_end(payload + size, position);
    }
  }
  const uint64_t sequence = chunk->sequence;
  entry.since = announced ? 0 : since;
  entry.until = stamp();
  copy(payload, &entry, sizeof entry);
  // A chunk that was changed meanwhile has another address: none is used again before drain().
  if (thread->busy.load(std::memory_order_seq_cst) ||
      *const_cast<Context* volatile*>(&thread->context) != context ||
      *const_cast<Chunk* volatile*>(&context->chunk) != chunk) {
    return false;
  }
  drain(true, false);  // what stands before it
  write_labels(true);
  write_chunk(capture::ChunkType::kOpen, thread->number, sequence, payload, size, true);
  thread->told_chunk = sequence + 1;
  thread->told = position;
  return !announced;
}

// Of a thread that fills its chunks slowly: what its chunk, and those of handlers, have got since
// the last look. A chunk is looked at when it is the same as at the look before: what it holds
// may be that old.
void write_parts(Thread* thread) {
  alignas(64) static uint8_t payload[sizeof(capture::PartEntry) + sizeof(Chunk) + kMostHeld];
  for (const Context* context = *const_cast<Context* volatile*>(&thread->context);
       context != nullptr; context = context->outer) {
    Chunk* const chunk = *const_cast<Chunk* volatile*>(&context->chunk);
    capture::Position position;
    if (thread->busy.load(std::memory_order_seq_cst) || chunk == nullptr ||
        !capture::snapshot(context->encoder, &position)) {
      return;
    }
    const uint64_t sequence = chunk->sequence;
    if (chunk->looked != sequence + 1) {
      chunk->looked = sequence + 1;
      chunk->told = {};
      continue;
    }
    const auto size = static_cast<uint32_t>(sizeof chunk->start + position.end);
    const bool holds = context->repeats.word != 0;
    if (!holds && chunk->told.end == size && chunk->told.slot == position.slot &&
        chunk->told.count == position.count) {
      continue;
    }
    capture::PartEntry entry;
    entry.from = chunk->told.end;
    uint8_t* const bytes = payload + sizeof entry;
    copy(bytes, reinterpret_cast<const uint8_t*>(&chunk->start) + entry.from, size - entry.from);
    size_t all = sizeof entry + size - entry.from;
    if (position.count != 0) {
      entry.tail = capture::put_end(payload + all, position);
    } else {
      entry.tail = copy_held(*context, position.end, payload + all);
    }
    all += entry.tail;
    copy(payload, &entry, sizeof entry);
    // None of it is used again before drain(), which this thread does.
    if (thread->busy.load(std::memory_order_seq_cst) ||
        *const_cast<Chunk* volatile*>(&context->chunk) != chunk || chunk->sequence != sequence) {
      return;
    }
    write_labels(true);
    write_chunk(capture::ChunkType::kPart, thread->number, sequence, payload, all, true);
    chunk->told = {size, position.slot, position.count};
  }
}

// The threads of a round. Not all there ever were: programs start millions.
void follow_threads() {
  Thread* const newest = threads();
  for (Thread* thread = newest; thread != last_in_rounds; thread = thread->next) {
    thread->next_in_round = in_rounds;
    in_rounds = thread;
  }
  last_in_rounds = newest;
  for (Thread** link = &in_rounds; *link != nullptr;) {
    if ((*link)->emptied.load(std::memory_order_acquire) == kEnded) {
      *link = (*link)->next_in_round;
    } else {
      link = &(*link)->next_in_round;
    }
  }
}

}  // namespace

void write_open(Thread* thread, const Context& context, bool pack) {
  alignas(64) static uint8_t payload[sizeof(Chunk) + kMostHeld];
  capture::Position position;
  if (context.chunk == nullptr || !capture::snapshot(context.encoder, &position)) {
    return;
  }
  const Chunk& chunk = *context.chunk;
  size_t size = sizeof chunk.start + position.end;
  copy(payload, &chunk.start, size);
  if (position.count != 0) {
    size += capture::put_end(payload + size, position);
  } else {
    size += copy_held(context, position.end, payload + size);
  }
  thread->bytes += size;
  write_chunk(capture::ChunkType::kEvents, thread->number, chunk.sequence, payload, size, pack);
}

void write_round() {
  constexpr uint32_t kMax = 4096;
  alignas(8) static struct {
    capture::RoundEntry entry;
    uint32_t silent[kMax];
  } round;
  round.entry.since = stamp();
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
    return;
  }
  uint32_t count = 0;
  follow_threads();
  for (Thread* thread = in_rounds; thread != nullptr; thread = thread->next_in_round) {
    if (!observe(thread, round.entry.since)) {
      if (count == kMax) {
        return;  // too many to say so
      }
      round.silent[count++] = thread->number;
    }
  }
  drain(true, false);
  write_chunk(capture::ChunkType::kRound, capture::kNoThread, 0, &round,
              sizeof round.entry + count * sizeof(uint32_t), false);
}

void look_at_parts() {
  follow_threads();
  for (Thread* thread = in_rounds; thread != nullptr; thread = thread->next_in_round) {
    const Context* const context = *const_cast<Context* volatile*>(&thread->context);
    if (context != nullptr && (options.live == 0 || context->outer != nullptr)) {
      write_parts(thread);
    }
  }
}

void forget_rounds() {
  in_rounds = nullptr;
  last_in_rounds = nullptr;
}

}  // namespace tsomon::probe
