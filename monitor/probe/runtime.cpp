#include "monitor/explore/runtime/runtime.h"

#include <cerrno>
#include <cstring>
#include <new>

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/probe/handover.h"
#include "monitor/probe/patterns.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/watched.h"

namespace tsomon::probe {

__thread Local local;
Context inactive;
Options options;
bool selective = false;
bool recording = false;

namespace {

std::atomic<bool> active{false};
std::atomic<uint32_t> threads_lock{0};
std::atomic<uint32_t> next_number{0};
std::atomic<Thread*> all_threads{nullptr};
uint32_t generation = 0;  // of processes, by fork
// Under threads_lock: contexts of threads that have ended, linked by `outer`, how many threads live
// or lived at once, and blocks that were given back.
Context* free_contexts = nullptr;
uint64_t live_threads = 0;
void* free_blocks = nullptr;  // each holds the address of the next
uint64_t most_threads = 0;

constexpr int kSetMask = SIG_SETMASK;

// Below, stamp_every counts every access; else foreseen ones only when their instruction has run
// 127 times.
constexpr uint64_t kSharpest = 256;

uint64_t block_signals() {
  const uint64_t all = ~uint64_t{0};
  uint64_t old = 0;
  syscall(SYS_rt_sigprocmask, kSetMask, &all, &old, sizeof old);
  return old;
}
void restore_signals(uint64_t mask) {
  syscall(SYS_rt_sigprocmask, kSetMask, &mask, nullptr, sizeof mask);
}

// Zeroed but for what encoders leave behind.
Context* new_context() { return static_cast<Context*>(take_memory(sizeof(Context))); }

// Continues the thread's stream in an empty chunk. False: there is none.
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
  context->floor =
      context->encoder.stamp > context->floor ? context->encoder.stamp : context->floor;
  context->announced = 0;
  context->stamped = kNowhere;
  context->begun = kNowhere;
  context->owed = kNowhere;
  context->locked = kNowhere;
  context->repeats.end = kNowhere;
  context->encoder.blind = options.stamp_every != 0 && options.stamp_every < kSharpest;
  // A hook records what is foreseen without a look at its address: not where there is a choice.
  context->encoder.disguise = options.only_sets ? capture::kDisguise : 0;
  capture::start_chunk(context->encoder, chunk->tokens, Chunk::kTokens - capture::kMaxToken);
  return true;
}

// `ends`: the thread.
void close_chunk(Thread* thread, Context* context, bool ends = false) {
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
  Context* const context = thread->context;
  if (context->chunk != nullptr) {
    close_chunk(thread, context);
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
  capture::put_stamp(context->encoder, in_order(*context, stamp()));
  context->stamped = context->encoder.end;
  local.context = context;
  return true;
}

}  // namespace

void count_lost() {
  Thread* const thread = local.thread;
  thread->lost.store(thread->lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

Guard::Guard(std::atomic<uint32_t>* lock) : lock_(lock), mask_(block_signals()) {
  while (lock_->exchange(1, std::memory_order_acquire) != 0) {
    sched_yield();
  }
}
Guard::~Guard() {
  lock_->store(0, std::memory_order_release);
  restore_signals(mask_);
}

// More than whoever records asks room for.
constexpr uint32_t kMostTokens = 80;

Context* writable_slow() {
  Thread* const thread = local.thread;
  if (TSOMON_LIKELY(thread == nullptr)) {
    return nullptr;  // not recording, or not yet
  }
  if (Context* const context = local.context; context->repeats.word != 0) {
    record_held(*context);
    if (capture::has_room(context->encoder, kMostTokens)) {
      return context;
    }
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
    return nullptr;
  }
  return local.context;
}

namespace {

bool stamp_due(const Context& context) {
  return options.stamp_every != 0 && context.since >= options.stamp_every;
}

// The stamp that the next record has. Until it is recorded it counts as announced.
uint64_t new_stamp(Context& context) {
  announce_stamp(context);
  context.since = 0;
  return in_order(context, stamp());
}

void put_stamp(Context& context) {
  capture::put_stamp(context.encoder, new_stamp(context));
  context.stamped = context.encoder.end;
}

// Whether nothing was recorded behind `place`.
bool is_last(const Context& context, uint32_t place) {
  return context.encoder.end == place && !capture::has_run(context.encoder);
}

// Before the first access behind a unit's beginning that did not look, or a locked operation.
void look_at_clock(Context& context) {
  context.begun = kNowhere;
  if (owes_stamp(context) || !stamped_within(context, options.share)) {
    put_stamp(context);
  }
}

// The watched parts of one or two ranges. They are recorded before any of them is accessed, so
// neither a stamp nor a chunk's end comes between.
class WatchedParts {
 public:
  void add(RecordType type, uint64_t begin, uint64_t size) {
    const RecordType range = type == RecordType::kRead || type == RecordType::kRangeRead
                                 ? RecordType::kRangeRead
                                 : RecordType::kRangeWrite;
    const uint64_t end = begin + size;
    for (uint64_t at = next_watched(begin, end); at < end; at = next_watched(at, end)) {
      if (count_ == kMost) {
        ++missed_;
        return;
      }
      const uint64_t part = at;
      at = next_watched(at, end, false);
      parts_[count_++] = {range, part, at - part};
    }
  }
  void put(uint64_t pc) const {
    if (count_ == 0) {
      return;
    }
    Context* const context =
        capture::has_room(local.context->encoder, count_ + 1) ? local.context : writable_slow();
    for (uint32_t i = 0; i < missed_; ++i) {
      count_lost();
    }
    if (context == nullptr) {
      return;
    }
    if (context->encoder.end == context->begun) {
      look_at_clock(*context);
    }
    context->since += count_;
    for (uint32_t i = 0; i < count_; ++i) {
      capture::put_record(context->encoder,
                          {parts_[i].type, 0, 0, 1, parts_[i].begin, pc, {parts_[i].size}});
    }
  }

 private:
  // Of a range with more holes the rest is lost. So many records fit into any new chunk.
  static constexpr uint32_t kMost = 64;
  struct Part {
    RecordType type;
    uint64_t begin;
    uint64_t size;
  };
  Part parts_[kMost];
  uint32_t count_ = 0;
  uint32_t missed_ = 0;
};

// outside=stores leaves out plain loads here. Of loads any part may be left out: they hide no store
// and no order that a report relies on. So those that are foreseen need no look.
bool leaves_out_loads() { return options.stores_outside && local.units == 0; }

// What was not foreseen.
__attribute__((noinline)) void record_access(uint64_t address, uint64_t key) {
  Context* const context = writable();
  if (context == nullptr) {
    return;
  }
  if (TSOMON_UNLIKELY(context->encoder.end == context->begun)) {
    look_at_clock(*context);
  } else if (stamp_due(*context)) {
    put_stamp(*context);
  }
  ++context->since;
  capture::put_access(context->encoder, address, key);
}

inline __attribute__((always_inline)) void record_chosen(uint64_t address, uint64_t key) {
  capture::Encoder& encoder = local.context->encoder;
  switch (capture::foresee(encoder, address, key ^ encoder.disguise, 8 * capture::key_slot(key))) {
    case capture::Foreseen::kYes:
      return;
    case capture::Foreseen::kNo:
      return record_access(address, key);
    case capture::Foreseen::kExpired:
      return access_expired();
  }
}

// accesses=sets: an access to several granules, which lies in two pages at most.
__attribute__((noinline)) void select_wide(uint64_t address, uint64_t key) {
  const uint64_t end = address + capture::key_size(key);
  if (!may_be_watched(address) && !may_be_watched(end - 1)) {
    return;
  }
  if (is_watched(address) && next_watched(address, end, false) == end) {
    return record_chosen(address, key);
  }
  WatchedParts parts;
  parts.add(capture::key_type(key), address, end - address);
  parts.put(capture::key_pc(key));
}

}  // namespace

__attribute__((noinline)) void access_slow(uint64_t address, uint64_t key) {
  if (TSOMON_LIKELY(!selective)) {
    return record_access(address, key);
  }
  if (capture::key_type(key) == RecordType::kRead && leaves_out_loads()) {
    return;
  }
  if (options.only_sets) {
    if (TSOMON_UNLIKELY((address ^ (address + capture::key_size(key) - 1)) >= kGranule)) {
      return select_wide(address, key);
    }
    if (!may_be_watched(address) || !is_watched(address)) {
      return;
    }
  }
  record_chosen(address, key);
}

bool would_be_recorded(uint64_t address, uint64_t size, bool store) {
  if (local.thread == nullptr || (!store && leaves_out_loads())) {
    return false;
  }
  return !options.only_sets || any_watched(address, size);
}

void access_always(RecordType type, const volatile void* pointer, uint32_t size, uint64_t pc) {
  if (!selective) {
    return access(type, pointer, size, pc);
  }
  if (local.thread != nullptr) {
    record_access(reinterpret_cast<uint64_t>(pointer), capture::make_key(type, size, pc));
  }
}

// The access is recorded, its instruction has run 127 times since the last token that named it.
__attribute__((noinline)) void access_expired() {
  Context* const context = local.context;
  context->since += capture::kMaxCount;
  if (!capture::has_room(context->encoder)) {
    // Not a new chunk: it begins with a stamp, and this access is still to come. The next one
    // begins it.
    capture::put_nothing(context->encoder);
    capture::foresee_nothing(context->encoder);
  } else if (stamp_due(*context)) {
    capture::put_stamp_before(context->encoder, new_stamp(*context));
  } else {
    capture::put_nothing(context->encoder);
  }
}

uint64_t put_point_now(RecordType type, uint64_t address, uint64_t pc) {
  Context* const context = writable();
  if (context == nullptr) {
    return 0;
  }
  const uint64_t now = new_stamp(*context);
  capture::put_point(context->encoder, type, address, pc, now);
  context->stamped = context->encoder.end;
  return now;
}

uint64_t put_point_after(RecordType type, uint64_t address, uint64_t pc, uint64_t last) {
  Context* const context = writable();
  if (context == nullptr) {
    return 0;
  }
  uint64_t now = new_stamp(*context);
  if (TSOMON_UNLIKELY(now <= last)) {
    note_backwards(last - now);
    now = last + 1;
  }
  capture::put_point(context->encoder, type, address, pc, now);
  context->stamped = context->encoder.end;
  return now;
}

void put_drain(uint64_t released, uint64_t pc) {
  Context* context = local.context;
  if (released == 0) {
    return;
  }
  // Behind a point there is room for another record.
  if (TSOMON_LIKELY(is_last(*context, context->stamped) && context->encoder.stamp == released)) {
    capture::put_drain(context->encoder);
    context->stamped = context->encoder.end;
  } else if ((context = writable()) != nullptr) {
    capture::put_open_fence(context->encoder, pc, released);
  }
}

void put_object(uint64_t address, uint64_t size, uint64_t pc) {
  if (Context* const context = writable()) {
    const uint64_t now = new_stamp(*context);
    capture::put_record(
        context->encoder,
        {RecordType::kAllocate, 0, capture::kSeparates, 3, address, pc, {now, now, size}});
    context->stamped = context->encoder.end;
  }
}

void put_stamp_now() {
  if (Context* const context = writable()) {
    put_stamp(*context);
  }
}

void put_boundary(RecordType type, uint64_t address, uint64_t pc) {
  if (type == RecordType::kUnitBegin) {
    ++local.units;
  } else if (local.units != 0) {
    --local.units;
  }
  Context* const context = writable();
  if (context == nullptr) {
    return;
  }
  if (options.share == 0) {
    put_point_now(type, address, pc);
    return;
  }
  const bool begins = type == RecordType::kUnitBegin;
  const bool stamped = is_last(*context, context->stamped);
  const bool owed = owes_stamp(*context);
  if (!begins && !stamped && (owed || !stamped_within(*context, options.share))) {
    put_point_now(type, address, pc);
    return;
  }
  capture::put_bare(context->encoder, type, address, pc);
  context->stamped = stamped ? context->encoder.end : kNowhere;
  if (begins) {
    context->begun = context->encoder.end;
    context->owed = owed ? context->encoder.end : kNowhere;
    if (capture::foresees_access(context->encoder)) {
      look_at_clock(*context);
    }
  }
}

__attribute__((noinline)) Context* begin_open(bool load) {
  Context* const context = writable();
  const bool repeats = context != nullptr && is_last(*context, context->repeats.end);
  if (context != nullptr && load && is_last(*context, context->locked)) {
    context->load_follows[context->locked_slot] = true;
  }
  if (context != nullptr &&
      (owes_stamp(*context) ? !load : !stamped_within(*context, options.share))) {
    put_stamp(*context);
    context->repeats.end = repeats ? context->encoder.end : kNowhere;
  }
  return context;
}

__attribute__((noinline)) void put_open(Context* context, uint64_t key,
                                        const volatile void* address, uint64_t value) {
  const bool owed = owes_stamp(*context);
  capture::put_open(context->encoder, key, reinterpret_cast<uint64_t>(address), value);
  if (owed) {
    put_stamp(*context);
  }
}

void put_range(RecordType type, const volatile void* address, size_t size, uint64_t pc) {
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::range(type == RecordType::kWrite, address, size, pc);
  }
  if (size == 0) {
    return;
  }
  if (size <= capture::kMaxSize) {
    access(type, address, static_cast<uint32_t>(size), pc);
    return;
  }
  if (TSOMON_UNLIKELY(selective) && type == RecordType::kRead && leaves_out_loads()) {
    return;
  }
  if (TSOMON_UNLIKELY(options.only_sets)) {
    if (local.thread != nullptr) {
      WatchedParts parts;
      parts.add(type, reinterpret_cast<uint64_t>(address), size);
      parts.put(pc);
    }
    return;
  }
  const RecordType range =
      type == RecordType::kRead ? RecordType::kRangeRead : RecordType::kRangeWrite;
  if (Context* const context = writable()) {
    if (context->encoder.end == context->begun) {
      look_at_clock(*context);
    }
    ++context->since;
    capture::put_record(context->encoder,
                        {range, 0, 0, 1, reinterpret_cast<uint64_t>(address), pc, {size}});
  }
}

// Both are recorded before either is performed: neither a stamp nor a chunk's end may come between.
void put_copy(const volatile void* to, const volatile void* from, size_t size, uint64_t pc) {
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::note_unsaid();
    explore::range(false, from, size, pc);
    return explore::range(true, to, size, pc);
  }
  if (TSOMON_UNLIKELY(options.only_sets)) {
    if (local.thread != nullptr) {
      WatchedParts parts;
      if (!leaves_out_loads()) {
        parts.add(RecordType::kRead, reinterpret_cast<uint64_t>(from), size);
      }
      parts.add(RecordType::kWrite, reinterpret_cast<uint64_t>(to), size);
      parts.put(pc);
    }
    return;
  }
  Context* context = local.context;
  if (!capture::has_room(context->encoder, 4)) {
    context = writable_slow();
  }
  put_range(RecordType::kRead, from, size, pc);
  const uint64_t since = context != nullptr ? context->since : 0;
  if (context != nullptr) {
    context->since = 0;
  }
  put_range(RecordType::kWrite, to, size, pc);
  if (context != nullptr) {
    context->since += since;
  }
}

void* take_block() {
  {
    const Guard guard(&threads_lock);
    if (void* const block = free_blocks; block != nullptr) {
      free_blocks = *static_cast<void**>(block);
      return block;
    }
  }
  return take_memory(kBlockSize);
}

void give_block(void* block) {
  const Guard guard(&threads_lock);
  *static_cast<void**>(block) = free_blocks;
  free_blocks = block;
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
  thread->generation = generation;
  thread->number = next_number.fetch_add(1, std::memory_order_relaxed);
  {
    const Guard guard(&threads_lock);
    thread->token = new_token();
    if (++live_threads > most_threads) {
      most_threads = live_threads;
      add_chunks(2);
    }
    thread->spare = free_contexts;
    if (free_contexts != nullptr) {
      free_contexts = free_contexts->outer;
      thread->spare->outer = nullptr;
    }
  }
  if (thread->spare == nullptr && (thread->spare = new_context()) == nullptr) {
    return nullptr;
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
    thread->has_begun = true;
    if (!thread->is_fiber) {
      thread->handle = pthread_self();
      local.own = thread;
    }
    thread->id = gettid();
    if (change.allowed()) {
      Context* const context = thread->spare;
      thread->spare = context->outer;
      context->outer = nullptr;
      context->start = {};
      context->encoder.stamp = 0;
      context->floor = thread->began;
      if (open_chunk(thread, context)) {
        local.context = context;
      }
      thread->context = context;
      local.thread = thread;
    }
  }
  put_point_now(RecordType::kThreadBegin, 0, 0);
}

namespace {

// With signals blocked. A thread that has not begun records nothing yet.
void become(Thread* thread) {
  exchange_calls(local.thread, thread);
  thread->id = local.thread->id;
  Context* const context = thread->context;
  local.thread = thread->has_begun ? thread : nullptr;
  local.context =
      context == nullptr || context->chunk == nullptr || thread->muted ? &inactive : context;
  local.units = thread->units;
}

// Ends what the calling thread runs.
void end_this() {
  Thread* const thread = local.thread;
  if (thread == nullptr || local.off) {
    return;
  }
  thread->ended = put_point_now(RecordType::kThreadEnd, 0, 0);
  const Change change(thread);
  if (!change.allowed()) {
    // finish() reads this thread's memory: it must not go away before that is over.
    wait_until_finished();
  } else {
    Context* free = thread->spare;
    for (Context* context = thread->context; context != nullptr;) {
      if (context->chunk != nullptr) {
        close_chunk(thread, context, true);
      }
      Context* const outer = context->outer;
      context->outer = free;
      free = context;
      context = outer;
    }
    thread->context = nullptr;
    thread->spare = nullptr;
    give_up_emptied(thread);
    free_token(thread->token);
    thread->token = nullptr;
    const Guard guard(&threads_lock);
    --live_threads;
    while (free != nullptr) {
      Context* const next = free->outer;
      free->outer = free_contexts;
      free_contexts = free;
      free = next;
    }
  }
  thread->context = nullptr;
  // Hooks that still come find nowhere to record, and count it.
  thread->muted = true;
  local = Local{};
  local.thread = thread;
  local.off = true;
}

}  // namespace

void end_thread() {
  if (local.own != nullptr && local.thread != local.own && !local.off) {
    drain_before_sleeping(0);
    switch_thread(local.own);
  }
  end_this();
}

void switch_thread(Thread* to) {
  Thread* const from = local.thread;
  if (from == nullptr || to == from || local.off) {
    return;
  }
  const uint64_t mask = block_signals();
  if (local.context->repeats.word != 0) {
    record_held(*local.context);
  }
  from->units = local.units;
  become(to);
  begin_thread(to);
  restore_signals(mask);
}

bool is_of_this_process(const Thread* thread) { return thread->generation == generation; }

void end_fiber(Thread* fiber) {
  Thread* const current = local.thread;
  if (current == nullptr || current == fiber || local.off) {
    return;
  }
  if (!fiber->has_begun) {
    abandon_thread(fiber);
    return;
  }
  const uint64_t mask = block_signals();
  const Local before = local;
  become(fiber);
  leave_calls();
  end_this();
  exchange_calls(fiber, current);
  local = before;
  restore_signals(mask);
}

void abandon_thread(Thread* thread) {
  if (thread != nullptr) {
    thread->gone = true;
    const Guard guard(&threads_lock);
    --live_threads;
    thread->spare->outer = free_contexts;
    free_contexts = thread->spare;
    thread->spare = nullptr;
  }
}

Thread* threads() { return all_threads.load(std::memory_order_acquire); }

// Only while the process has one thread: nobody races with the first call.
void activate() {
  if (TSOMON_UNLIKELY(recording && !active.load(std::memory_order_relaxed))) {
    active.store(true, std::memory_order_relaxed);
    begin_thread(new_thread());
    put_known_objects();
  }
}
bool activated() { return active.load(std::memory_order_relaxed); }

void lock_for_fork() {
  while (threads_lock.exchange(1, std::memory_order_acquire) != 0) {
    sched_yield();
  }
  lock_labels();
  lock_sets();
}
void unlock_after_fork() {
  unlock_sets();
  unlock_labels();
  threads_lock.store(0, std::memory_order_release);
}
void reset_after_fork() {
  unlock_after_fork();
  local = Local{};
  all_threads.store(nullptr, std::memory_order_relaxed);
  next_number.store(0, std::memory_order_relaxed);
  ++generation;
  forget_thread_names();
  live_threads = 0;
  most_threads = 0;
  active.store(false, std::memory_order_relaxed);
}

void enter_handler(HandlerFrame* frame) {
  Thread* const thread = local.thread;
  Context* const outer = local.context;
  frame->context = nullptr;
  if (thread == nullptr || outer == &inactive || thread->muted) {
    return;
  }
  const Change change(thread);
  if (!change.allowed()) {
    return;
  }
  frame->context = outer;
  ++local.interruptions;
  Context* const inner = thread->spare != nullptr ? thread->spare : new_context();
  capture::Position position;
  const bool records = outer->repeats.ending;  // what it held back
  if (!records) {
    record_held(*outer);
  }
  if (inner != nullptr && !records && capture::snapshot(outer->encoder, &position)) {
    Context* const spare = inner->outer;
    inner->start = {outer->chunk->sequence + 1, position.end, static_cast<uint16_t>(position.slot),
                    static_cast<uint16_t>(position.count)};
    inner->encoder.stamp = outer->encoder.stamp;
    inner->floor = outer->floor;
    if (open_chunk(thread, inner)) {
      thread->spare = spare;
      inner->outer = outer;
      thread->context = inner;
      local.context = inner;
      capture::put_stamp(inner->encoder, in_order(*inner, stamp()));
      return;
    }
    thread->spare = inner;
  }
  thread->muted = true;
  local.context = &inactive;
}

void leave_handler(HandlerFrame* frame) {
  Thread* const thread = local.thread;
  // A handler within this one that left with siglongjmp lasts on.
  if (frame->context == nullptr || thread == nullptr ||
      (thread->muted ? thread->context : thread->context->outer) != frame->context) {
    return;
  }
  const Change change(thread);
  if (!change.allowed()) {
    return;
  }
  if (!thread->muted) {
    Context* const inner = thread->context;
    if (inner->chunk != nullptr) {
      close_chunk(thread, inner);
    }
    thread->context = frame->context;
    thread->context->floor =
        inner->encoder.stamp > inner->floor ? inner->encoder.stamp : inner->floor;
    inner->outer = thread->spare;
    thread->spare = inner;
  }
  thread->muted = false;
  local.context = frame->context;
}

}  // namespace tsomon::probe
