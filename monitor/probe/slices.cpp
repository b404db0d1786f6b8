#include "monitor/probe/slices.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include <ucontext.h>

#include "monitor/probe/before_start.h"
#include "monitor/probe/chunks.h"
#include "monitor/probe/guard.h"
#include "monitor/probe/recorded_threads.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/twins.h"

namespace tsomon::probe {

bool controlled = false;
std::atomic<uint32_t> slice{0};
bool quick_units = false;
bool choosy = false;

namespace {

std::atomic<bool> joining{false};
std::atomic<bool> closing{false};
std::atomic<int64_t> closed{0};  // when; 0: not yet
uint64_t most_filled = 0;        // bytes; 0: any
std::atomic<bool> begun{false};  // by the first thread that joined

// Of a slice that begins with the first thread that joins: who switches to all functions.
enum Armed : uint32_t { kNotArmed, kArmed, kSwitching, kSwitched, kRefused };
std::atomic<uint32_t> armed{kNotArmed};

// True: it was armed, and is not any more.
bool switch_to_all() {
  uint32_t expected = kArmed;
  if (!armed.compare_exchange_strong(expected, kSwitching)) {
    return false;
  }
  const int error = errno;
  armed.store(watch_twins(true) ? kSwitched : kRefused);
  errno = error;
  return true;
}

// A handler that was left by a jump ran deeper in the stack than this, or on another one.
bool in_handler() {
  const HandlerPlace& handler = local.handler;
  if (handler.address == 0) {
    return false;
  }
  stack_t now{};
  const bool on_alternate = sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_ONSTACK) != 0;
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  if (on_alternate != handler.on_alternate ? !on_alternate : here > handler.address) {
    local.handler = {};
    return false;
  }
  return true;
}

// A thread that took part before has its context and its chunk.
bool begin_again(Thread* thread, uint32_t number) {
  const ChunkSwitch change(thread, number);
  if (!change.allowed()) {
    return false;
  }
  Context* context = thread->context;
  while (context != nullptr && context->outer != nullptr) {
    Context* const outer = context->outer;
    return_chunk(thread, context);
    context->outer = thread->spare;
    thread->spare = context;
    context = outer;
  }
  if (context == nullptr && (context = thread->spare) != nullptr) {
    thread->spare = context->outer;
  }
  if (context == nullptr && (context = new_context()) == nullptr) {
    return false;
  }
  return_chunk(thread, context);
  context->repeats.word = 0;
  context->repeats.ending = false;
  thread->number = next_number.fetch_add(1, std::memory_order_relaxed);
  thread->sequence.store(0, std::memory_order_relaxed);
  thread->bytes = 0;
  thread->lost.store(0, std::memory_order_relaxed);
  thread->lost_reported = 0;
  thread->muted = false;
  thread->began = stamp();
  thread->ended = 0;
  begin_stream(thread, context);
  return true;
}

// Above a lock that nobody holds long: all threads of the program, those that have ended left out.
template <typename Each>
void for_all_that_take_part(Each each) {
  const Guard guard(&threads_lock);
  for (Thread* thread = all_threads.load(std::memory_order_acquire); thread != nullptr;
       thread = thread->next) {
    if (takes_part(thread)) {
      each(thread);
    }
  }
}

uint32_t open_units(const Thread* thread) {
  const auto* const state = const_cast<const volatile Local*>(thread->state);
  if (state == nullptr || state->thread != thread) {
    return 0;
  }
  const uint32_t units = state->units;
  return units - std::min(units, uint32_t{state->waiting});  // nothing of these was recorded
}

// Where the thread records, outside handlers.
bool may_wait(const Thread* thread) {
  return takes_part(thread) && !finishing() && !thread->muted && local.context == thread->context &&
         local.context->outer == nullptr;
}

// A handler that comes in between finds nowhere to record.
void go_on_recording() {
  asm volatile("" : : : "memory");
  local.context = local.thread->context;
}

}  // namespace

bool join_slice() {
  if (TSOMON_LIKELY(!joining.load(std::memory_order_relaxed)) || local.off || ended_early ||
      local.thread != nullptr || local.units != 0 || in_handler()) {
    return false;
  }
  const uint32_t number = slice.load(std::memory_order_seq_cst);
  // Its stores from before are visible when it begins.
  __builtin_ia32_mfence();
  if (Thread* const known = local.own; known == nullptr) {
    if (Thread* const thread = new_thread(); thread != nullptr) {
      thread->began = stamp();
      begin_thread(thread);
    }
  } else if (begin_again(known, number)) {
    put_point_now(RecordType::kThreadBegin, 0, 0);
    if (local.ignored_loads != 0 || local.ignored_stores != 0) {
      put_ignored(0);
    }
  }
  if (local.thread != nullptr && !begun.exchange(true)) {
    put_kept_ranges();
  }
  // By the thread itself: what it calls from here on is seen.
  if (local.thread != nullptr && armed.load(std::memory_order_relaxed) == kArmed) {
    switch_to_all();
  }
  return local.thread != nullptr && local.context != &inactive;
}

bool may_begin_slice(uint64_t pc) {
  return TSOMON_LIKELY(armed.load(std::memory_order_relaxed) != kArmed) || is_in_watched_twin(pc);
}

bool leave_slice() {
  if (in_handler()) {
    return false;
  }
  local.context = &inactive;
  local.thread = nullptr;
  local.waiting = 0;
  return true;
}

bool wait_with_boundary(RecordType type, uint64_t label, uint64_t pc) {
  const uint32_t waiting = local.waiting;
  const bool begins = type == RecordType::kUnitBegin;
  if (local.thread == nullptr || local.units != waiting || (!begins && waiting == 0)) {
    return false;
  }
  if (!begins) {
    --local.units;
    local.waiting = waiting - 1;
    if (waiting == 1) {
      go_on_recording();
    }
    return true;
  }
  if (!choosy || waiting == kMostWaiting || (waiting == 0 && !may_wait(local.thread)) ||
      is_in_watched_twin(pc)) {
    return false;
  }
  local.context = &inactive;
  local.waits[waiting] = {static_cast<uint32_t>(label), pc};
  asm volatile("" : : : "memory");
  ++local.units;
  local.waiting = waiting + 1;
  return true;
}

void record_waiting() {
  const uint32_t waiting = local.waiting;
  if (waiting == 0 || local.thread == nullptr) {
    return;
  }
  local.waiting = 0;
  go_on_recording();
  for (uint32_t i = 0; i < waiting; ++i) {
    put_boundary_now(RecordType::kUnitBegin, local.waits[i].label, local.waits[i].pc);
  }
}

void join_or_leave(uint64_t pc) {
  if (local.thread == nullptr) {
    if (may_begin_slice(pc)) {
      join_slice();
    }
  } else if (local.units == 0 && (closing.load(std::memory_order_relaxed) || finishing())) {
    leave_slice();
  }
}

HandlerPlace enter_signal(const void* interrupted) {
  const HandlerPlace before = local.handler;
  if (before.address == 0) {
    const stack_t& alternate = static_cast<const ucontext_t*>(interrupted)->uc_stack;
    const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    local.handler = {here, here - reinterpret_cast<uint64_t>(alternate.ss_sp) < alternate.ss_size};
  }
  return before;
}

void leave_signal(const HandlerPlace& before) { local.handler = before; }

void begin_slice(bool chooses, uint64_t most_bytes) {
  forget_ended_threads();
  next_number.store(0, std::memory_order_relaxed);
  forget_thread_names();
  begun.store(false);
  closing.store(false);
  slice.fetch_add(1, std::memory_order_seq_cst);
  // Not before: a thread that still has its chunk of the last slice would hand it over in this one.
  take_chunks();
  closed.store(0);
  most_filled = most_bytes;
  choosy = chooses;
  constexpr uint64_t kChunks = 8;  // of all threads, about, that such a slice has
  chunk_room = most_bytes == 0 ? kMostRoom
                               : static_cast<uint32_t>(std::clamp<uint64_t>(most_bytes / kChunks,
                                                                            kLeastRoom, kMostRoom));
  quick_units = simple_atomics && !chooses;
  recording = true;
  joining.store(true, std::memory_order_seq_cst);
}

void arm_slice() { armed.store(kArmed); }

bool disarm_slice(bool watched) {
  if (!watched) {
    uint32_t expected = kArmed;
    armed.compare_exchange_strong(expected, kSwitched);
  }
  switch_to_all();
  for (unsigned tries = 0; armed.load() == kSwitching; ++tries) {
    let_others_run(tries);
  }
  return armed.exchange(kNotArmed) == kSwitched;
}

bool somebody_takes_part() { return next_number.load(std::memory_order_relaxed) != 0; }

int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000 + time.tv_nsec / 1000;
}

void filled(uint64_t bytes) {
  if (most_filled != 0 && bytes >= most_filled) {
    close_slice();
  }
}

bool slice_is_closed() { return closed.load(std::memory_order_relaxed) != 0; }

int64_t close_slice() {
  int64_t when = 0;
  if (const int64_t this_moment = now(); closed.compare_exchange_strong(when, this_moment)) {
    when = this_moment;
  }
  joining.store(false, std::memory_order_seq_cst);
  quick_units = false;
  closing.store(true, std::memory_order_seq_cst);
  return when;
}

bool units_are_open() {
  bool open = false;
  for_all_that_take_part([&](const Thread* thread) { open |= open_units(thread) != 0; });
  return open;
}

SliceThreads end_slice() {
  recording = false;
  SliceThreads threads;
  for_all_that_take_part([&](Thread* thread) {
    threads.cut_units += open_units(thread) != 0 ? 1 : 0;
    for (Context* context = thread->context; context != nullptr; context = context->outer) {
      *const_cast<volatile uint32_t*>(&context->encoder.capacity) = 0;
    }
  });
  threads.joined = next_number.load(std::memory_order_relaxed);
  return threads;
}

void forget_slices() {
  armed.store(kNotArmed);
  joining.store(false);
  closing.store(false);
}

}  // namespace tsomon::probe
