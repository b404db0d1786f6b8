// The threads that are recorded: their beginning and end, fork, fibers and signal handlers.
#include "monitor/probe/recorded_threads.h"

#include <cerrno>
#include <new>

#include <sched.h>
#include <ucontext.h>
#include <unistd.h>

#include "monitor/probe/before_start.h"
#include "monitor/probe/chunk_pool.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/chunks.h"
#include "monitor/probe/function_units.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/slices.h"

namespace tsomon::probe {

__thread Local local;
Context inactive;
Options options;
bool selective = false;
bool simple_atomics = false;
bool recording = false;
bool ended_early = false;
std::atomic<uint32_t> threads_lock{0};
std::atomic<uint32_t> next_number{0};
std::atomic<Thread*> all_threads{nullptr};

namespace {

std::atomic<bool> active{false};
bool reports_nothing = false;    // of no thread anything is to be reported
Thread* free_threads = nullptr;  // under threads_lock: of earlier slices, linked by `next`
uint32_t generation = 0;         // of processes, by fork
// Under threads_lock: contexts of threads that have ended, linked by `outer`, how many threads live
// or lived at once, and blocks that were given back.
Context* free_contexts = nullptr;
uint64_t live_threads = 0;
void* free_blocks = nullptr;  // each holds the address of the next
uint64_t most_threads = 0;

}  // namespace

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

namespace {

Thread* new_entry() {
  uint32_t life = 0;
  void* memory = nullptr;
  void* token = nullptr;
  {
    const Guard guard(&threads_lock);
    if (Thread* const old = free_threads; old != nullptr) {
      free_threads = old->next;
      life = old->life + 1;
      token = old->token_memory;
      memory = old;
    }
  }
  memory = memory != nullptr ? memory : take_memory(sizeof(Thread));
  if (memory == nullptr) {
    return nullptr;
  }
  auto* const thread = new (memory) Thread;
  thread->life = life;
  thread->token_memory = token;
  return thread;
}

}  // namespace

Thread* new_thread() {
  if (!recording) {
    return nullptr;
  }
  Thread* const thread = new_entry();
  if (thread == nullptr) {
    return nullptr;
  }
  thread->generation = generation;
  thread->slice.store(slice.load());
  thread->number = next_number.fetch_add(1, std::memory_order_relaxed);
  {
    const Guard guard(&threads_lock);
    thread->token = new_token(&thread->token_memory);
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

void begin_stream(Thread* thread, Context* context) {
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

void begin_thread(Thread* thread) {
  if (thread == nullptr || local.off || local.thread != nullptr || ended_early) {
    return;
  }
  {
    const ChunkSwitch change(thread);
    thread->has_begun = true;
    if (!thread->is_fiber) {
      thread->handle = pthread_self();
      local.own = thread;
      const Guard guard(&threads_lock);
      thread->state = &local;
    }
    thread->id = gettid();
    if (change.allowed()) {
      Context* const context = thread->spare;
      thread->spare = context->outer;
      begin_stream(thread, context);
    } else if (controlled) {
      return;  // the slice is over
    }
  }
  put_point_now(RecordType::kThreadBegin, 0, 0);
  if (reports_nothing && !thread->is_fiber) {
    ++local.ignored_loads;
    ++local.ignored_stores;
  }
  if (local.ignored_loads != 0 || local.ignored_stores != 0) {
    put_ignored(0);
  }
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

// What it held goes to the next one.
void give_up(Thread* thread, bool recorded) {
  Context* free = thread->spare;
  for (Context* context = thread->context; context != nullptr;) {
    if (context->chunk != nullptr && recorded) {
      close_chunk(thread, context, true);
    } else if (context->chunk != nullptr) {
      return_chunk(thread, context);
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
  thread->state = nullptr;
  --live_threads;
  while (free != nullptr) {
    Context* const next = free->outer;
    free->outer = free_contexts;
    free_contexts = free;
    free = next;
  }
}

// Ends what the calling thread runs.
void end_this() {
  Thread* const thread = local.thread != nullptr ? local.thread : local.own;
  if (thread == nullptr || local.off) {
    return;
  }
  if (ended_early) {
    local = Local{};
    local.off = true;
    return;
  }
  local.off = controlled;  // it joins no slice any more
  if (local.thread != nullptr) {
    thread->ended = put_point_now(RecordType::kThreadEnd, 0, 0);
  }
  {
    const ChunkSwitch change(thread);
    if (!change.allowed()) {
      // finish() reads this thread's memory: it must not go away before that is over.
      wait_until_finished();
    }
    if (change.allowed() || controlled) {
      give_up(thread, change.allowed());
    }
    thread->context = nullptr;
    // Hooks that still come find nowhere to record, and count it.
    thread->muted = true;
    local = Local{};
    local.thread = controlled ? nullptr : thread;
    local.off = true;
  }
  thread->over.store(true, std::memory_order_release);
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
  record_waiting();
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
  record_waiting();
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
    thread->over.store(true, std::memory_order_release);
  }
}

Thread* threads() { return all_threads.load(std::memory_order_acquire); }

// Without slices only while the process has one thread: nobody races with the first call.
void activate(uint64_t pc) {
  if (TSOMON_UNLIKELY(controlled)) {
    return join_or_leave(pc);
  }
  if (TSOMON_UNLIKELY(recording && !active.load(std::memory_order_relaxed))) {
    active.store(true, std::memory_order_relaxed);
    reports_nothing = asks_for_no_reports();
    begin_thread(new_thread());
    put_known_objects();
    put_kept();
  }
}
bool activated() { return active.load(std::memory_order_relaxed); }

// The newest stays: others are put in front of it meanwhile.
void forget_ended_threads() {
  const Guard guard(&threads_lock);
  Thread* kept = all_threads.load(std::memory_order_acquire);
  while (kept != nullptr && kept->next != nullptr) {
    Thread* const thread = kept->next;
    if (thread->over.load(std::memory_order_acquire)) {
      kept->next = thread->next;
      thread->next = free_threads;
      free_threads = thread;
    } else {
      kept = thread;
    }
  }
}

namespace {

uint64_t mask_before_fork = 0;  // of the thread that holds the locks

}  // namespace

// With signals blocked: a handler that forks would wait for the locks of the fork that it interrupts.
void lock_for_fork() {
  const uint64_t mask = ended_early ? 0 : block_signals();
  for (unsigned tries = 0; threads_lock.exchange(1, std::memory_order_acquire) != 0; ++tries) {
    let_others_run(tries);
  }
  mask_before_fork = mask;
  lock_labels();
  lock_sets();
}
void unlock_after_fork() {
  unlock_sets();
  unlock_labels();
  const uint64_t mask = mask_before_fork;
  threads_lock.store(0, std::memory_order_release);
  if (!ended_early) {
    restore_signals(mask);
  }
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
  free_threads = nullptr;
  forget_slices();
}

namespace {

constexpr int kMostHandlers = 16;  // within one another: each holds a chunk

// What the signal has interrupted, and where its handler runs.
struct Interruption {
  uint64_t stack_pointer;
  bool was_on_alternate;
  HandlerPlace handler;
};

Interruption interruption_of(const HandlerFrame* frame, const void* interrupted) {
  const auto* const context = static_cast<const ucontext_t*>(interrupted);
  const auto begin = reinterpret_cast<uint64_t>(context->uc_stack.ss_sp);
  const auto is_alternate = [&](uint64_t address) {
    return address - begin < context->uc_stack.ss_size;
  };
  const auto pointer = static_cast<uint64_t>(context->uc_mcontext.gregs[REG_RSP]);
  const auto place = reinterpret_cast<uint64_t>(frame);
  return {pointer, is_alternate(pointer), {place, is_alternate(place)}};
}

// The frame of an earlier handler lies where the stack has ended when the signal came.
bool was_left(const HandlerPlace& handler, const Interruption& now) {
  if (handler.on_alternate && !now.was_on_alternate) {
    return true;
  }
  return handler.on_alternate == now.was_on_alternate && now.stack_pointer > handler.address;
}

void go_back_to(Thread* thread, Context* outer) {
  if (!thread->muted) {
    Context* const inner = thread->context;
    if (inner->chunk != nullptr) {
      close_chunk(thread, inner);
    }
    thread->context = outer;
    outer->floor = last_stamp(*inner);
    inner->outer = thread->spare;
    thread->spare = inner;
  }
  thread->muted = false;
  local.context = outer;
}

// Otherwise each would keep its chunk, until there is none to take.
void leave_those_left(Thread* thread, const Interruption& now) {
  if (thread->muted && was_left(thread->muted_in, now)) {
    go_back_to(thread, thread->context);
  }
  while (!thread->muted && thread->context->outer != nullptr &&
         was_left(thread->context->handler, now)) {
    go_back_to(thread, thread->context->outer);
  }
}

// Whether what the interrupted context records next, but for loads of atomics, has not been done
// yet, nor been stamped.
bool is_settled(const Context& outer) {
  return outer.encoder.before == 0 && outer.announced != outer.encoder.end + 1 &&
         local.unrecorded == 0;
}

// With signals blocked. One that a thread left behind, or a new one.
Context* take_context() {
  {
    const Guard guard(&threads_lock);
    if (Context* const context = free_contexts; context != nullptr) {
      free_contexts = context->outer;
      context->outer = nullptr;
      return context;
    }
  }
  return new_context();
}

int handlers_within(const Context* context) {
  int count = 0;
  for (; context->outer != nullptr; context = context->outer) {
    ++count;
  }
  return count;
}

}  // namespace

void enter_handler(HandlerFrame* frame, const void* interrupted) {
  Thread* const thread = local.thread;
  frame->context = nullptr;
  if (thread == nullptr || thread->context == nullptr) {
    return;
  }
  record_waiting();
  const ChunkSwitch change(thread);
  if (!change.allowed()) {
    return;
  }
  const Interruption now = interruption_of(frame, interrupted);
  leave_those_left(thread, now);
  Context* const outer = local.context;
  if (outer == &inactive || thread->muted) {
    return;
  }
  frame->context = outer;
  ++local.interruptions;
  const bool too_many = handlers_within(outer) >= kMostHandlers;
  Context* const inner = too_many                   ? nullptr
                         : thread->spare != nullptr ? thread->spare
                                                    : take_context();
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
    inner->handler = now.handler;
    thread->enters_handler = true;
    const bool opened = open_chunk(thread, inner);
    thread->enters_handler = false;
    if (opened) {
      thread->spare = spare;
      inner->outer = outer;
      thread->context = inner;
      local.context = inner;
      if (is_settled(*outer)) {
        capture::put_nothing(inner->encoder);
      }
      capture::put_stamp(inner->encoder, stamp_in_order(*inner));
      return;
    }
    thread->spare = inner;
  } else if (inner != nullptr) {
    thread->spare = inner;
  }
  thread->muted = true;
  thread->muted_in = now.handler;
  local.context = &inactive;
}

void leave_handler(HandlerFrame* frame) {
  Thread* const thread = local.thread;
  // A handler within this one that left with siglongjmp lasts on.
  if (frame->context == nullptr || thread == nullptr ||
      (thread->muted ? thread->context : thread->context->outer) != frame->context) {
    return;
  }
  if (ended_early) {
    local.context = frame->context;
    return;
  }
  const ChunkSwitch change(thread);
  if (change.allowed()) {
    go_back_to(thread, frame->context);
  }
}

}  // namespace tsomon::probe
