#include "monitor/probe/chunk_pool.h"

#include <new>

#include <concurrentqueue/concurrentqueue.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/futex.h"

namespace tsomon::probe {

namespace {

// The queues take their memory from the kernel: the program may have replaced malloc.
struct QueueTraits : moodycamel::ConcurrentQueueDefaultTraits {
  static void* malloc(size_t size) { return take_memory(size); }
  static void free(void*) {
  }  // only at the end of the process, blocks are reused by the queue itself
};
using Queue = moodycamel::ConcurrentQueue<Chunk*, QueueTraits>;

struct Queues {
  Queue full{4096};
  Queue empty{4096};
  moodycamel::ProducerToken returning{empty};  // of the writer thread
  moodycamel::ProducerToken adding{empty};     // of add_chunks
};

alignas(Queues) char storage[sizeof(Queues)];
Queues* queues = nullptr;

// Futex words.
std::atomic<uint32_t> given{0};     // counts full chunks and requests to finish
std::atomic<uint32_t> returned{0};  // counts emptied chunks
std::atomic<uint32_t> unheard{0};   // full chunks of ended threads for which nobody was woken
std::atomic<uint32_t> takers_wait{0};
std::atomic<bool> writer_sleeps{false};

constexpr uint32_t kMostUnheard = 16;

// A thread waits for a chunk with signals blocked: what would end the process does so soon, and
// handlers run in the end, whatever keeps the writer waiting. What cannot be recorded is lost.
constexpr int kMostSlices = 100;  // of 100 ms

bool waits_in_vain(const Thread* thread, int slices) {
  uint64_t pending = 0;
  syscall(SYS_rt_sigpending, &pending, sizeof pending);
  const uint64_t waiting = pending & ~thread->blocked;
  return end_process(waiting) ||
         (slices >= kMostSlices && (waiting != 0 || thread->enters_handler)) || writer_is_gone();
}

}  // namespace

void prepare_chunk_pool() {
  queues = new (storage) Queues;
  writer_sleeps.store(false, std::memory_order_relaxed);
  takers_wait.store(0, std::memory_order_relaxed);
  unheard.store(0, std::memory_order_relaxed);
}

void wake_writer() {
  unheard.store(0, std::memory_order_relaxed);
  given.fetch_add(1, std::memory_order_seq_cst);
  if (writer_sleeps.load(std::memory_order_seq_cst)) {
    futex_wake(&given);
  }
}

void wake_takers() { futex_wake(&returned); }

uint32_t chunks_given() { return given.load(std::memory_order_seq_cst); }

void wait_for_chunks(uint32_t seen, long microseconds) {
  writer_sleeps.store(true, std::memory_order_seq_cst);
  if (given.load(std::memory_order_seq_cst) == seen) {
    futex_wait(&given, seen, microseconds);
  }
  writer_sleeps.store(false, std::memory_order_seq_cst);
}

Chunk* take_full_chunk() {
  Chunk* chunk = nullptr;
  return queues->full.try_dequeue(chunk) ? chunk : nullptr;
}

void recycle_chunk(Chunk* chunk) {
  Chunk* none = nullptr;
  if (!chunk->owner->emptied.compare_exchange_strong(none, chunk, std::memory_order_acq_rel)) {
    queues->empty.enqueue(queues->returning, chunk);
  }
  returned.fetch_add(1, std::memory_order_seq_cst);
  if (takers_wait.load(std::memory_order_seq_cst) != 0) {
    futex_wake(&returned);
  }
}

uint32_t chunks_returned() { return returned.load(std::memory_order_relaxed); }

Chunk* take_empty_chunk(Thread* thread) {
  // One that came back is still in the caches.
  Chunk* chunk = thread->emptied.exchange(nullptr, std::memory_order_acq_rel);
  if (chunk != nullptr) {
    return chunk;
  }
  for (int slices = 0; !queues->empty.try_dequeue(chunk);) {
    if (unheard.load(std::memory_order_relaxed) != 0) {
      wake_writer();
    }
    if (options.drop_when_full || finishing()) {
      return nullptr;
    }
    const uint32_t seen = returned.load(std::memory_order_seq_cst);
    takers_wait.fetch_add(1, std::memory_order_seq_cst);
    chunk = thread->emptied.exchange(nullptr, std::memory_order_acq_rel);
    const bool found = chunk != nullptr || queues->empty.try_dequeue(chunk);
    const bool in_vain =
        !found && !futex_wait(&returned, seen, 100'000) && waits_in_vain(thread, ++slices);
    takers_wait.fetch_sub(1, std::memory_order_seq_cst);
    if (found) {
      break;
    }
    if (in_vain) {
      return nullptr;
    }
  }
  return chunk;
}

void return_chunk(Thread* thread, Context* context) {
  Chunk* const chunk = context->chunk;
  context->chunk = nullptr;
  Chunk* none = nullptr;
  if (chunk != nullptr && !thread->emptied.compare_exchange_strong(none, chunk)) {
    chunk->size = 0;
    give_full_chunk(thread, chunk, true);
  }
}

void give_up_emptied(Thread* thread) {
  Chunk* const chunk = thread->emptied.exchange(kEnded, std::memory_order_acq_rel);
  if (chunk != nullptr) {
    chunk->size = 0;
    give_full_chunk(thread, chunk, true);
  }
}

void give_full_chunk(Thread* thread, Chunk* chunk, bool ends) {
  auto* const token = static_cast<moodycamel::ProducerToken*>(thread->token);
  // The first needs memory only when more chunks are under way than the queue was made for.
  if (token != nullptr) {
    queues->full.enqueue(*token, chunk);
  } else {
    queues->full.enqueue(chunk);
  }
  if (!ends || unheard.fetch_add(1, std::memory_order_relaxed) + 1 >= kMostUnheard ||
      queues->empty.size_approx() < kMostUnheard) {
    wake_writer();
  }
}

void add_chunks(size_t count) {
  if (count == 0) {
    return;
  }
  auto* const memory =
      static_cast<char*>(kernel::mmap(count * sizeof(Chunk), PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1));
  if (memory == MAP_FAILED) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    auto* const chunk = reinterpret_cast<Chunk*>(memory + i * sizeof(Chunk));  // zeroed
    queues->empty.enqueue(queues->adding, chunk);
  }
}

void* new_token(void** memory) {
  if (*memory == nullptr) {
    *memory = take_memory(sizeof(moodycamel::ProducerToken));
  }
  return *memory != nullptr ? new (*memory) moodycamel::ProducerToken(queues->full) : nullptr;
}
void free_token(void* token) {
  if (token != nullptr) {
    static_cast<moodycamel::ProducerToken*>(token)->~ProducerToken();
  }
}

}  // namespace tsomon::probe
