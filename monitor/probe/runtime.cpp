#include "monitor/probe/runtime.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/probe/handover.h"

namespace tsomon::probe {

__thread Local local;
Options options;
bool recording = false;

namespace {

std::atomic<bool> active{false};
std::atomic<uint32_t> threads_lock{0};
std::atomic<uint32_t> next_number{0};
std::atomic<Thread*> all_threads{nullptr};

constexpr int kSetMask = SIG_SETMASK;

uint64_t block_signals() {
  const uint64_t all = ~uint64_t{0};
  uint64_t old = 0;
  syscall(SYS_rt_sigprocmask, kSetMask, &all, &old, sizeof old);
  return old;
}
void restore_signals(uint64_t mask) {
  syscall(SYS_rt_sigprocmask, kSetMask, &mask, nullptr, sizeof mask);
}

// Points the thread at a chunk; nullptr: it does not record until there is one.
void use_chunk(Thread* thread, Chunk* chunk) {
  thread->chunk = chunk;
  if (chunk == nullptr) {
    local.end = nullptr;
    local.limit = nullptr;
    publish(nullptr);
    return;
  }
  local.end = chunk->words + kChunkWords;
  publish_stamped(chunk->words, 0);
}

// An empty chunk that continues the thread's stream.
Chunk* open_chunk(Thread* thread) {
  Chunk* const chunk = take_empty_chunk();
  if (chunk != nullptr) {
    chunk->thread = thread->number;
    chunk->first = 0;
    chunk->part_count = 0;
    chunk->open_sequence = thread->sequence.fetch_add(1, std::memory_order_relaxed);
  }
  return chunk;
}

void close_chunk(Thread* thread, Chunk* chunk, const uint64_t* end) {
  Part& last = chunk->parts[chunk->part_count++];
  last.end = static_cast<uint32_t>(end - chunk->words);
  last.sequence = chunk->open_sequence;
  thread->words += static_cast<uint64_t>(end - chunk->words);
  give_full_chunk(thread, chunk);
}

// While one lives, signals are blocked and the thread's chunks may change hands, unless recording
// has ended: finish() waits for it.
class Change {
 public:
  explicit Change(Thread* thread) : thread_(thread), mask_(block_signals()), errno_(errno) {
    thread_->busy.store(true, std::memory_order_seq_cst);
    if (finishing()) {
      thread_->busy.store(false, std::memory_order_seq_cst);
      allowed_ = false;
    }
  }
  ~Change() {
    thread_->busy.store(false, std::memory_order_seq_cst);
    errno = errno_;
    restore_signals(mask_);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  bool allowed() const { return allowed_; }

 private:
  Thread* thread_;
  uint64_t mask_;
  int errno_;
  bool allowed_ = true;
};

// Hands the full chunk over and begins a new one; true when there is one.
bool next_chunk() {
  Thread* const thread = local.thread;
  const Change change(thread);
  if (!change.allowed()) {
    return false;
  }
  if (thread->chunk != nullptr) {
    close_chunk(thread, thread->chunk, local.cur);
  }
  use_chunk(thread, open_chunk(thread));
  if (local.cur == nullptr) {
    return false;
  }
  uint64_t* at = local.cur;
  const uint64_t lost = thread->lost.load(std::memory_order_relaxed);
  if (lost != thread->lost_reported) {
    at = capture::put(at, RecordType::kLost, 0, 0, 0, 0, lost - thread->lost_reported);
    thread->lost_reported = lost;
  }
  // A chunk begins with a stamp: it can be read when the one before it is missing.
  const uint64_t now = stamp();
  publish_stamped(capture::put_stamp(at, now), now);
  return true;
}

void count_lost() {
  Thread* const thread = local.thread;
  thread->lost.store(thread->lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

Guard::Guard(std::atomic<uint32_t>* lock) : lock_(lock), mask_(block_signals()) {
  while (lock_->exchange(1, std::memory_order_acquire) != 0) {
    sched_yield();
  }
}
Guard::~Guard() {
  lock_->store(0, std::memory_order_release);
  restore_signals(mask_);
}

void complain(const char* format, ...) {
  char text[1024];
  int size = std::snprintf(text, sizeof text, "tsomon: ");
  va_list arguments;
  va_start(arguments, format);
  size +=
      std::vsnprintf(text + size, sizeof text - static_cast<size_t>(size) - 1, format, arguments);
  va_end(arguments);
  size = size < static_cast<int>(sizeof text) - 1 ? size : static_cast<int>(sizeof text) - 1;
  text[size++] = '\n';
  (void)!write(STDERR_FILENO, text, static_cast<size_t>(size));
}

uint64_t* room_slow(size_t words) {
  if (TSOMON_LIKELY(local.thread == nullptr)) {
    return nullptr;  // not recording, or not yet
  }
  if (local.cur != nullptr && local.cur + words <= local.end) {
    return local.cur;
  }
  // After a failure nothing is tried until a chunk came back: dropping must not cost system calls.
  Thread* const thread = local.thread;
  if (thread->muted || (local.cur == nullptr && thread->returned == chunks_returned())) {
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
    return nullptr;
  }
  return local.cur;
}

__attribute__((noinline)) void access_slow(uint64_t a, uint64_t b) {
  if (TSOMON_LIKELY(local.thread == nullptr)) {
    return;
  }
  uint64_t* at = room_slow(4);
  if (at == nullptr) {
    return;
  }
  if (at >= local.limit && options.stamp_every != 0) {
    const uint64_t now = stamp();
    at = capture::put_stamp(at, now);
    publish_stamped(at, now);
  }
  at[0] = a;
  at[1] = b;
  publish(at + 2);
}

uint64_t put_point_now(RecordType type, uint64_t address, uint64_t pc) {
  uint64_t* const at = room(3);
  if (at == nullptr) {
    return 0;
  }
  const uint64_t now = stamp();
  publish_stamped(capture::put(at, type, address, pc, 0, capture::kSeparates, now), now);
  return now;
}

void put_boundary(RecordType type, uint64_t address, uint64_t pc) {
  uint64_t* const at = room(3);
  if (at == nullptr) {
    return;
  }
  if (stamped_within(options.share)) {
    publish(capture::put(at, type, address, pc, 0, 0));
  } else {
    const uint64_t now = stamp();
    publish_stamped(capture::put(at, type, address, pc, 0, capture::kSeparates, now), now);
  }
}

void put_range(RecordType type, const volatile void* address, size_t size, uint64_t pc) {
  const auto first = reinterpret_cast<uint64_t>(address);
  if (size == 0) {
    return;
  }
  if (size <= capture::kMaxSize) {
    access(type, address, static_cast<uint32_t>(size), pc);
    return;
  }
  const RecordType range =
      type == RecordType::kRead ? RecordType::kRangeRead : RecordType::kRangeWrite;
  if (uint64_t* const at = room(3)) {
    publish(capture::put(at, range, first, pc, 0, 0, size));
  }
}

Thread* new_thread() {
  if (!recording) {
    return nullptr;
  }
  void* const memory = take_memory(sizeof(Thread));
  if (memory == nullptr) {
    return nullptr;
  }
  auto* const thread = new (memory) Thread;
  thread->number = next_number.fetch_add(1, std::memory_order_relaxed);
  {
    const Guard guard(&threads_lock);
    thread->token = new_token();
    add_chunks(2);
  }
  Thread* head = all_threads.load(std::memory_order_relaxed);
  do {
    thread->next = head;
  } while (!all_threads.compare_exchange_weak(head, thread, std::memory_order_release));
  return thread;
}

void begin_thread(Thread* thread) {
  if (thread == nullptr || local.off || local.thread != nullptr) {
    return;
  }
  {
    const Change change(thread);
    thread->handle = pthread_self();
    if (change.allowed()) {
      use_chunk(thread, open_chunk(thread));
      thread->where = &local;
      local.thread = thread;
    }
  }
  put_point_now(RecordType::kThreadBegin, 0, 0);
}

void end_thread() {
  Thread* const thread = local.thread;
  if (thread == nullptr) {
    return;
  }
  put_point_now(RecordType::kThreadEnd, 0, 0);
  const Change change(thread);
  if (!change.allowed()) {
    // finish() reads this thread's memory: it must not go away before that is over.
    wait_until_finished();
  } else {
    if (thread->chunk != nullptr) {
      close_chunk(thread, thread->chunk, local.cur);
    }
    free_token(thread->token);
    thread->token = nullptr;
  }
  thread->chunk = nullptr;
  thread->where = nullptr;
  local = Local{};
  local.off = true;
}

void abandon_thread(Thread* thread) {
  if (thread != nullptr) {
    thread->gone = true;
  }
}

Thread* threads() { return all_threads.load(std::memory_order_acquire); }

// Only while the process has one thread: nobody races with the first call.
void activate() {
  if (TSOMON_UNLIKELY(recording && !active.load(std::memory_order_relaxed))) {
    active.store(true, std::memory_order_relaxed);
    begin_thread(new_thread());
  }
}

void lock_for_fork() {
  while (threads_lock.exchange(1, std::memory_order_acquire) != 0) {
    sched_yield();
  }
  lock_labels();
}
void unlock_after_fork() {
  unlock_labels();
  threads_lock.store(0, std::memory_order_release);
}
void reset_after_fork() {
  unlock_after_fork();
  local = Local{};
  all_threads.store(nullptr, std::memory_order_relaxed);
  next_number.store(0, std::memory_order_relaxed);
  active.store(false, std::memory_order_relaxed);
}

void enter_handler(HandlerFrame* frame) {
  Thread* const thread = local.thread;
  *frame = {local.cur, local.limit, local.end, thread != nullptr ? thread->chunk : nullptr,
            thread != nullptr && thread->muted};
  if (thread == nullptr || frame->chunk == nullptr || frame->muted) {
    return;
  }
  const Change change(thread);
  if (!change.allowed()) {
    return;
  }
  // The interrupted chunk ends here for now; the handler's own chunks come next in the stream.
  Chunk* const outer = frame->chunk;
  outer->interrupted = frame->cur;
  outer->next = thread->outer;
  thread->outer = outer;
  // One part is left for closing the chunk.
  Chunk* const chunk = outer->part_count + 2 < kMaxParts ? open_chunk(thread) : nullptr;
  use_chunk(thread, chunk);
  thread->muted = chunk == nullptr;
  if (chunk != nullptr) {
    const uint64_t now = stamp();
    publish_stamped(capture::put_stamp(local.cur, now), now);
  }
}

void leave_handler(HandlerFrame* frame) {
  Thread* const thread = local.thread;
  if (frame->chunk == nullptr || frame->muted || thread->outer != frame->chunk) {
    return;
  }
  const Change change(thread);
  if (!change.allowed()) {
    return;
  }
  Chunk* const outer = frame->chunk;
  if (!thread->muted) {
    if (thread->chunk != nullptr) {
      close_chunk(thread, thread->chunk, local.cur);
    }
    Part& part = outer->parts[outer->part_count++];
    part.end = static_cast<uint32_t>(frame->cur - outer->words);
    part.sequence = outer->open_sequence;
    outer->open_sequence = thread->sequence.fetch_add(1, std::memory_order_relaxed);
  }
  thread->muted = false;
  thread->outer = outer->next;
  thread->chunk = outer;
  local.limit = frame->limit;
  local.end = frame->end;
  if (outer->part_count + 4 >= kMaxParts) {
    // The next record begins a new chunk, with room for more interruptions.
    local.limit = frame->cur;
    local.end = frame->cur;
  }
  publish(frame->cur);
}

}  // namespace tsomon::probe
