#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/copy.h"
#include "monitor/probe/messages.h"
#include "monitor/probe/real.h"

extern "C" pid_t _Fork() noexcept;
extern "C" void* __libc_stack_end;
TSOMON_REAL(_Fork)

namespace tsomon::explore {

bool active = false;

namespace {

constexpr uint32_t kBufferSize = 64;
constexpr uint32_t kRecent = 64;
constexpr uint64_t kStackBase = 0x200000000000;
constexpr uint64_t kStackStride = uint64_t{1} << 26;
constexpr uint64_t kStackSize = uint64_t{1} << 20;

struct Buffered {
  uint64_t address;
  uint32_t size;
  uint32_t step;
  Value value;
  Value covered;  // what memory held when it was put there
};

struct LoopRead {
  uint64_t pc;
  uint64_t address;
  uint32_t size;
  uint64_t hash;
  Value value;
};

struct Thread {
  std::atomic<uint32_t> turn{0};
  bool exists = false;
  bool ended = false;
  bool waits_for_good = false;
  bool in_loop = false;
  bool joined = false;
  Operation pending;
  uint32_t buffered = 0;
  Buffered buffer[kBufferSize]{};
  bool store_open = false;  // of the buffer's newest under TSO; its value is not known yet
  uint64_t open_address = 0;
  uint32_t open_size = 0;
  uint32_t open_step = 0;
  Value open_covered = 0;
  uint32_t operations = 0;
  uint32_t children = 0;
  uint32_t units = 0;  // open ones
  uint32_t recent_count = 0;
  LoopRead recent[kRecent]{};
  uint32_t loop_from = 0;  // the iteration: recent[loop_from ...)
  void* (*routine)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  pthread_t handle{};
  uint64_t stack_end = 0;
};

Channel* channel = nullptr;
// They are there before the constructors of this file would run: there is none.
constinit Thread threads[kMaxThreads + 1];
uint32_t thread_count = 1;
__thread uint32_t self = 0;
bool concurrent = false;
uint32_t steps = 0;
uint64_t enabled_now = 0;
uint64_t commits_now = 0;
uint64_t random_state = 1;
pthread_key_t end_key;
uint32_t priorities[2 * (kMaxThreads + 1)];
uint32_t lowest_priority = 0;
uint32_t changes[16];

long futex(void* word, int operation, uint32_t value) {
  return syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

Value get(uint64_t address, uint32_t size) {
  Value value = 0;
  probe::copy(&value, reinterpret_cast<const void*>(address), size);
  return value;
}
void put(uint64_t address, uint32_t size, Value value) {
  probe::copy(reinterpret_cast<void*>(address), &value, size);
}

// Cells that were accessed, and the values of objects.
struct Entry {
  uint64_t address;  // 0: free
  uint8_t size;
  bool object;
  bool begun;  // of an object: it has a value
  bool told;   // it has an initial value
  Value initial;
  Value value;
};
constexpr uint32_t kEntries = 1U << 14;
Entry* entries = nullptr;
uint32_t entry_count = 0;

Entry& entry_of(uint64_t address, uint32_t size, bool is_object) {
  uint32_t at =
      static_cast<uint32_t>(((address ^ (uint64_t{size} << 56)) * 0x9E3779B97F4A7C15ULL) >> 40) &
      (kEntries - 1);
  for (; entries[at].address != 0; at = (at + 1) & (kEntries - 1)) {
    if (entries[at].address == address && entries[at].size == size &&
        entries[at].object == is_object) {
      return entries[at];
    }
  }
  if (++entry_count > kEntries / 2) {
    end_run(End::kFailed, "more than 8192 shared cells");
  }
  entries[at].address = address;
  entries[at].size = static_cast<uint8_t>(size);
  entries[at].object = is_object;
  return entries[at];
}

// What the object was before anything was done to it under control.
Value value_before(const Operation& operation) {
  switch (operation.op) {
    case Op::kSemaphoreWait:
    case Op::kSemaphoreTryWait:
    case Op::kSemaphorePost:
      return get(operation.address, 4);
    default:
      return 0;
  }
}

Entry& object_of(const Operation& operation) {
  Entry& entry = entry_of(operation.address, operation.size, true);
  if (!entry.begun) {
    entry.begun = true;
    entry.value = value_before(operation);
  }
  return entry;
}

// What the cell held before the first operation that is told of.
Value initial_of(const Operation& operation) {
  const bool is_an_object = is_object(operation.op);
  Entry& entry =
      is_an_object ? object_of(operation) : entry_of(operation.address, operation.size, false);
  if (!entry.told) {
    entry.told = true;
    entry.initial = is_an_object ? entry.value : get(operation.address, operation.size);
  }
  return entry.initial;
}

// The value of the cell as `thread` sees it; its buffer is not in memory.
Value view(const Thread& thread, const Operation& operation) {
  if (is_object(operation.op)) {
    return object_of(operation).value;
  }
  Value value = get(operation.address, operation.size);
  for (uint32_t i = 0; i < thread.buffered; ++i) {
    const Buffered& store = thread.buffer[i];
    if (store.address == operation.address && store.size == operation.size) {
      value = store.value;
    }
  }
  return value;
}

bool loop_may_go_on(const Thread& thread) {
  for (uint32_t i = thread.loop_from; i < thread.recent_count; ++i) {
    const LoopRead& read = thread.recent[i];
    if (read.size == 0) {
      continue;  // a fence
    }
    Operation again;
    again.address = read.address;
    again.size = static_cast<uint8_t>(read.size);
    if (view(thread, again) != read.value) {
      return true;
    }
  }
  return false;
}

// The operation's effect would let it go on.
bool is_free(uint32_t number) {
  const Thread& thread = threads[number];
  const Operation& pending = thread.pending;
  if (pending.op == Op::kJoin) {
    return threads[static_cast<uint32_t>(pending.a)].ended;
  }
  if (!is_locked(pending.op)) {
    return true;
  }
  return apply(pending.op, view(thread, pending), pending.a, pending.b, pending.size, number)
      .enabled;
}

bool is_enabled(uint32_t number) {
  const Thread& thread = threads[number];
  if (!thread.exists || thread.ended || (thread.in_loop && !loop_may_go_on(thread))) {
    return false;
  }
  if (drains(thread.pending.op) && thread.buffered != 0) {
    return false;
  }
  return is_free(number);
}

void look_around() {
  enabled_now = 0;
  commits_now = 0;
  for (uint32_t number = 0; number < thread_count; ++number) {
    enabled_now |= is_enabled(number) ? uint64_t{1} << number : 0;
    commits_now |= threads[number].buffered != 0 ? uint64_t{1} << number : 0;
  }
}

Step* new_step(Choice choice) {
  if (steps >= channel->max_steps) {
    finish(End::kBound, 0);
  }
  Step* const step = &channel->steps[steps++];
  *step = Step{};
  step->choice = choice;
  step->enabled = enabled_now;
  step->commits = commits_now;
  return step;
}

// The step is whole, as far as it will be before the next one.
void publish() { channel->step_count.store(steps, std::memory_order_release); }

void commit_oldest(uint32_t number) {
  Thread& thread = threads[number];
  const Buffered oldest = thread.buffer[0];
  Step* const step = new_step({static_cast<uint16_t>(number), 1});
  step->op = Op::kStore;
  step->address = oldest.address;
  step->size = static_cast<uint8_t>(oldest.size);
  step->written = oldest.value;
  put(oldest.address, oldest.size, oldest.value);
  --thread.buffered;
  probe::copy(thread.buffer, thread.buffer + 1, thread.buffered * sizeof(Buffered));
  publish();
}

uint64_t next_random() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

uint32_t bit_at(uint64_t mask, uint32_t place) {
  while (place-- != 0) {
    mask &= mask - 1;
  }
  return static_cast<uint32_t>(__builtin_ctzll(mask));
}

Choice choose_at_random() {
  const auto enabled = static_cast<uint32_t>(__builtin_popcountll(enabled_now));
  const auto commits = static_cast<uint32_t>(__builtin_popcountll(commits_now));
  const auto place = static_cast<uint32_t>(next_random() % (enabled + commits));
  return place < enabled ? Choice{static_cast<uint16_t>(bit_at(enabled_now, place)), 0}
                         : Choice{static_cast<uint16_t>(bit_at(commits_now, place - enabled)), 1};
}

// Priorities of threads and of their buffers, drawn when they are first seen.
Choice choose_by_priority() {
  uint32_t best = UINT32_MAX;
  for (uint32_t actor = 0; actor < 2 * thread_count; ++actor) {
    const uint64_t mask = actor % 2 == 0 ? enabled_now : commits_now;
    if (((mask >> (actor / 2)) & 1) == 0) {
      continue;
    }
    if (priorities[actor] == 0) {
      priorities[actor] = (1U << 20) + static_cast<uint32_t>(next_random() % (1U << 20));
    }
    best = best == UINT32_MAX || priorities[actor] > priorities[best] ? actor : best;
  }
  for (uint32_t i = 0; i + 1 < channel->depth && i < 16; ++i) {
    if (changes[i] == steps) {
      priorities[best] = (1U << 19) - ++lowest_priority;
      changes[i] = UINT32_MAX;
      return choose_by_priority();
    }
  }
  return {static_cast<uint16_t>(best / 2), static_cast<uint16_t>(best % 2)};
}

// Threads that came to wait add no more in this run. Each says so when its turn would have come.
void note_waiting() {
  for (uint32_t number = 0; number < thread_count; ++number) {
    Thread& thread = threads[number];
    if (!thread.exists || thread.ended || thread.waits_for_good) {
      continue;
    }
    if (((channel->waiting >> number) & 1) != 0) {
      thread.waits_for_good = true;
      continue;
    }
    if (thread.in_loop) {
      thread.waits_for_good = true;
      continue;
    }
    if (is_free(number)) {
      return;
    }
    if (thread.pending.op == Op::kJoin) {
      continue;
    }
    thread.waits_for_good = true;
    const Operation& pending = thread.pending;
    const Value now = view(thread, pending);
    Step* const step = new_step({static_cast<uint16_t>(number), 0});
    step->op = pending.op;
    step->waits = true;
    step->size = pending.size;
    step->address = pending.address;
    step->a = pending.a;
    step->b = pending.b;
    step->pc = pending.pc;
    step->read = now;
    step->written = now;
    step->initial = initial_of(pending);
    publish();
  }
}

[[noreturn]] void nobody_can() {
  uint32_t count = 0;
  for (uint32_t number = 0; number < thread_count; ++number) {
    const Thread& thread = threads[number];
    if (thread.exists && !thread.ended) {
      Waiting& waiting = channel->waiting_threads[count++];
      waiting.thread = static_cast<uint16_t>(number);
      waiting.op = thread.pending.op;
      waiting.in_loop = thread.in_loop;
      waiting.can_go_on = thread.in_loop ? loop_may_go_on(thread) : is_free(number);
      waiting.address = thread.pending.address;
      waiting.pc = thread.pending.pc;
    }
  }
  channel->waiting_count = count;
  finish(count == 0 ? End::kFinished : End::kStuck, 0);
}

Choice choose() {
  look_around();
  if (steps < channel->prefix_size) {
    const Choice choice = channel->prefix[steps];
    const uint64_t mask = choice.commit != 0 ? commits_now : enabled_now;
    if (choice.thread > kMaxThreads || ((mask >> choice.thread) & 1) == 0) {
      end_run(End::kDiverged, "the thread that ran then cannot run now");
    }
    return choice;
  }
  if (channel->waiting_is_final) {
    if (commits_now == 0) {
      note_waiting();
    }
    for (uint32_t number = 0; number < thread_count; ++number) {
      if (threads[number].waits_for_good) {
        enabled_now &= ~(uint64_t{1} << number);
      }
    }
  }
  if (enabled_now == 0 && commits_now == 0) {
    nobody_can();
  }
  switch (channel->policy) {
    case Policy::kRandom:
      return choose_at_random();
    case Policy::kPct:
      return choose_by_priority();
    case Policy::kContinue:
      if (commits_now == 0 && ((enabled_now >> self) & 1) != 0) {
        return {static_cast<uint16_t>(self), 0};
      }
      break;
    case Policy::kFirst:
      break;
  }
  return commits_now != 0 ? Choice{static_cast<uint16_t>(__builtin_ctzll(commits_now)), 1}
                          : Choice{static_cast<uint16_t>(__builtin_ctzll(enabled_now)), 0};
}

void wait_for_turn(Thread& thread) {
  while (thread.turn.load(std::memory_order_acquire) == 0) {
    futex(&thread.turn, FUTEX_WAIT_PRIVATE, 0);
  }
  thread.turn.store(0, std::memory_order_relaxed);
}

void give_turn(uint32_t number) {
  threads[number].turn.store(1, std::memory_order_release);
  futex(&threads[number].turn, FUTEX_WAKE_PRIVATE, 1);
}

// The thread has stored what it announced.
void close_store(Thread& thread) {
  if (!thread.store_open) {
    return;
  }
  thread.store_open = false;
  const Value value = get(thread.open_address, thread.open_size);
  channel->steps[thread.open_step].written = value;
  if (channel->model == Model::kTso) {
    if (thread.buffered == kBufferSize) {
      end_run(End::kFailed, "more than 64 stores in a store buffer");
    }
    thread.buffer[thread.buffered++] = {thread.open_address, thread.open_size, thread.open_step,
                                        value, thread.open_covered};
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

// Hands over, or returns when it is this thread's turn.
void schedule(bool wait) {
  for (;;) {
    const Choice choice = choose();
    if (choice.commit != 0) {
      commit_oldest(choice.thread);
      continue;
    }
    if (wait && choice.thread == self) {
      return;
    }
    give_turn(choice.thread);
    if (!wait) {
      return;
    }
    wait_for_turn(threads[self]);
    return;
  }
}

uint64_t hash_of(const State& state, uint64_t end) {
  uint64_t hash = state.stack;
  const auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  };
  for (const uint64_t word : state.registers) {
    add(word);
  }
  for (uint64_t at = state.stack; at + 8 <= end; at += 8) {
    add(*reinterpret_cast<const uint64_t*>(at));
  }
  return hash;
}

// Before a load, or a locked operation: whether the thread was in the same state before.
void look_for_loop(Thread& thread, const Operation& operation) {
  const uint64_t hash = hash_of(*operation.state, thread.stack_end);
  for (uint32_t i = 0; i < thread.recent_count; ++i) {
    if (thread.recent[i].pc == operation.pc && thread.recent[i].hash == hash) {
      thread.in_loop = true;
      thread.loop_from = i;
      mark(MarkKind::kIteration, thread.recent_count - i);
      return;
    }
  }
  if (thread.recent_count == kRecent) {
    probe::copy(thread.recent, thread.recent + 1, (kRecent - 1) * sizeof(LoopRead));
    --thread.recent_count;
  }
  // The value follows.
  thread.recent[thread.recent_count++] = {operation.pc, operation.address, operation.size, hash, 0};
}

Done perform(Thread& thread, const Operation& operation, Step* step) {
  Done done;
  const bool tso = channel->model == Model::kTso;
  if (operation.op == Op::kLoad) {
    done.read = get(operation.address, operation.size);
  } else if (operation.op == Op::kStore) {
    done.written = operation.a;
    const Value covered = get(operation.address, operation.size);
    if (operation.plain) {
      if (step != nullptr) {
        thread.store_open = true;
        thread.open_address = operation.address;
        thread.open_size = operation.size;
        thread.open_step = steps - 1;
        thread.open_covered = covered;
      }
    } else {
      put(operation.address, operation.size, operation.a);
      if (step != nullptr && tso) {
        if (thread.buffered == kBufferSize) {
          end_run(End::kFailed, "more than 64 stores in a store buffer");
        }
        thread.buffer[thread.buffered++] = {operation.address, operation.size, steps - 1,
                                            operation.a, covered};
      }
    }
  } else if (is_locked(operation.op)) {
    done.read = view(thread, operation);
    const Effect effect =
        apply(operation.op, done.read, operation.a, operation.b, operation.size, self);
    done.written = effect.value;
    if (is_object(operation.op)) {
      object_of(operation).value = effect.value;
    } else if (effect.writes) {
      put(operation.address, operation.size, effect.value);
    }
  }
  return done;
}

void note_effect_on_loop(Thread& thread, const Operation& operation, const Done& done) {
  if (operation.state != nullptr && done.read == done.written && is_locked(operation.op)) {
    thread.recent[thread.recent_count - 1].value = done.read;
  } else if (operation.op == Op::kLoad) {
    thread.recent[thread.recent_count - 1].value = done.read;
  } else if (operation.op != Op::kFence) {
    thread.recent_count = 0;
  }
}

void at_end_of_thread(void* rounds) {
  const auto left = reinterpret_cast<uintptr_t>(rounds);
  if (left > 1 && pthread_setspecific(end_key, reinterpret_cast<void*>(left - 1)) == 0) {
    return;
  }
  Operation end;
  end.op = Op::kEnd;
  step(end);
  // Nobody waits for the kernel's thread.
  for (;;) {
    syscall(SYS_pause);
  }
}

void* begin_thread(void* argument) {
  self = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(argument));
  Thread& thread = threads[self];
  thread.stack_end = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  pthread_setspecific(end_key, reinterpret_cast<void*>(uintptr_t{PTHREAD_DESTRUCTOR_ITERATIONS}));
  wait_for_turn(thread);
  Operation begin;
  begin.op = Op::kBegin;
  Step* const step = new_step({static_cast<uint16_t>(self), 0});
  step->op = Op::kBegin;
  publish();
  ++thread.operations;
  thread.result = thread.routine(thread.argument);
  return thread.result;
}

void at_exit(int status, void*) {
  if (!concurrent || self != 0) {
    finish(status == 0 ? End::kFinished : End::kExited, status);
  }
  if (status != 0) {
    finish(End::kExited, status);
  }
  Operation end;
  end.op = Op::kEnd;
  step(end);
  for (;;) {
    syscall(SYS_pause);
  }
}

void begin_run() {
  random_state = channel->seed * 0x9E3779B97F4A7C15ULL + 0x1234567;
  random_state = random_state == 0 ? 1 : random_state;
  for (int i = 0; i < 8; ++i) {
    next_random();
  }
  for (uint32_t& change : changes) {
    change = static_cast<uint32_t>(next_random() % (channel->length == 0 ? 1 : channel->length));
  }
  threads[0].exists = true;
  threads[0].handle = pthread_self();
  threads[0].stack_end = reinterpret_cast<uint64_t>(__libc_stack_end);
  active = true;
  pthread_key_create(&end_key, at_end_of_thread);
  on_exit(at_exit, nullptr);
}

void silence(bool show) {
  if (show) {
    return;
  }
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
  }
}

}  // namespace

uint32_t this_thread() { return self; }
bool is_concurrent() { return concurrent; }
void had_effect() { threads[self].recent_count = 0; }
void note_unsaid() { ++channel->unsaid; }

void finish(End end, int status) {
  channel->end = end;
  channel->status = status;
  publish();
  syscall(SYS_exit_group, 0);
  __builtin_unreachable();
}

void end_run(End end, const char* why) {
  const size_t size = std::strlen(why);
  probe::copy(channel->detail, why,
              size < sizeof channel->detail ? size + 1 : sizeof channel->detail);
  channel->detail[sizeof channel->detail - 1] = 0;
  finish(end, 0);
}

void refuse(const char* function) { end_run(End::kRefused, function); }

void mark(MarkKind kind, uint32_t value) {
  if (kind == MarkKind::kUnitCancel && threads[self].units != 0) {
    --threads[self].units;
  }
  if (!concurrent) {
    return;
  }
  if (channel->mark_count >= kMaxMarks) {
    finish(End::kBound, 0);
  }
  channel->marks[channel->mark_count++] = {kind, static_cast<uint16_t>(self), steps, value,
                                           threads[self].operations};
}

uint32_t label(const char* name, size_t size) {
  char text[kLabelSize] = {};
  probe::copy(text, name, size < kLabelSize - 1 ? size : kLabelSize - 1);
  for (uint32_t i = 0; i < channel->label_count; ++i) {
    if (std::strcmp(channel->labels[i], text) == 0) {
      return i;
    }
  }
  if (channel->label_count == kMaxLabels) {
    return kMaxLabels - 1;
  }
  probe::copy(channel->labels[channel->label_count], text, kLabelSize);
  return channel->label_count++;
}

unsigned enter_unit(const char* name) {
  mark(MarkKind::kUnitBegin, label(name, std::strlen(name)));
  return ++threads[self].units;
}

// One that was cancelled ended then.
void leave_unit(unsigned unit) {
  if (threads[self].units >= unit) {
    mark(MarkKind::kUnitEnd, 0);
    threads[self].units = unit - 1;
  }
}

void say_outcome(const char* text) {
  had_effect();
  const size_t size = std::strlen(text) + 1;
  if (channel->outcome_bytes + size <= kOutcomeBytes) {
    probe::copy(channel->outcomes + channel->outcome_bytes, text, size);
    channel->outcome_bytes += static_cast<uint32_t>(size);
  }
}

Done step(const Operation& operation) {
  Thread& thread = threads[self];
  if (!concurrent) {
    return perform(thread, operation, nullptr);
  }
  close_store(thread);
  thread.pending = operation;
  if (operation.state != nullptr) {
    look_for_loop(thread, operation);
  }
  take_out(thread);
  schedule(true);
  put_in(thread);
  if (thread.in_loop) {
    // It may go on: from here the loop is a new one.
    thread.in_loop = false;
    thread.recent_count = 1;
    thread.recent[0] = {operation.pc, operation.address, operation.size,
                        hash_of(*operation.state, thread.stack_end), 0};
  }
  Step* const step = new_step({static_cast<uint16_t>(self), 0});
  step->op = operation.op;
  step->size = operation.size;
  step->address = operation.address;
  step->a = operation.a;
  step->b = operation.b;
  step->pc = operation.pc;
  if (has_cell(operation.op)) {
    step->initial = initial_of(operation);
  }
  const Done done = perform(thread, operation, step);
  step->read = done.read;
  step->written = done.written;
  ++thread.operations;
  publish();
  note_effect_on_loop(thread, operation, done);
  if (operation.op == Op::kEnd) {
    thread.ended = true;
    schedule(false);
  }
  return done;
}

int create_thread(pthread_t* handle, const pthread_attr_t* attributes, void* (*routine)(void*),
                  void* argument) {
  if (!concurrent) {
    concurrent = true;
    // From here on the thread is under control.
    threads[0].operations = 0;
  }
  Thread& parent = threads[self];
  const uint32_t child = ++parent.children;
  // The number of the thread is that of the same child of the same thread in other runs.
  uint32_t number = 1;
  while (number <= kMaxThreads && channel->threads[number].child != 0 &&
         (channel->threads[number].parent != self || channel->threads[number].child != child)) {
    ++number;
  }
  if (number > kMaxThreads) {
    end_run(End::kFailed, "more than 63 threads");
  }
  channel->threads[number] = {self, child};
  Operation create;
  create.op = Op::kCreate;
  create.a = number;
  create.pc = 0;
  step(create);
  size_t size = kStackSize;
  if (attributes != nullptr) {
    size_t asked = 0;
    pthread_attr_getstacksize(attributes, &asked);
    size = asked > size && asked < kStackStride / 2 && asked != (size_t{8} << 20) ? asked : size;
  }
  Thread& thread = threads[number];
  void* const stack = mmap(
      reinterpret_cast<void*>(kStackBase + number * kStackStride), size, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) {
    end_run(End::kFailed, "no memory for the stack of a thread");
  }
  thread.routine = routine;
  thread.argument = argument;
  thread.pending = {};
  thread.pending.op = Op::kBegin;
  thread.exists = true;
  thread_count = number >= thread_count ? number + 1 : thread_count;
  pthread_attr_t own;
  pthread_attr_init(&own);
  pthread_attr_setstack(&own, stack, size);
  const int result = probe::real_pthread_create(&thread.handle, &own, begin_thread,
                                                reinterpret_cast<void*>(uintptr_t{number}));
  pthread_attr_destroy(&own);
  if (result != 0) {
    end_run(End::kFailed, "a thread cannot be started");
  }
  *handle = thread.handle;
  return 0;
}

void set_thread_result(void* value) { threads[self].result = value; }

int join_thread(pthread_t handle, void** value) {
  for (uint32_t number = 0; number < thread_count; ++number) {
    Thread& thread = threads[number];
    if (!thread.exists || thread.joined || pthread_equal(thread.handle, handle) == 0) {
      continue;
    }
    if (number == self) {
      return EDEADLK;
    }
    Operation join;
    join.op = Op::kJoin;
    join.a = number;
    step(join);
    thread.joined = true;
    if (value != nullptr) {
      *value = thread.result;
    }
    return 0;
  }
  return ESRCH;
}

int detach_thread(pthread_t handle) {
  for (uint32_t number = 0; number < thread_count; ++number) {
    if (threads[number].exists && !threads[number].joined &&
        pthread_equal(threads[number].handle, handle) != 0) {
      threads[number].joined = true;
      return 0;
    }
  }
  return ESRCH;
}

// The runtime's own words are in the channel and in the table of threads.
bool controls_futex(long address) {
  const auto at = static_cast<uint64_t>(address);
  const auto table = reinterpret_cast<uint64_t>(threads);
  const auto begin = reinterpret_cast<uint64_t>(channel);
  return !(at >= table && at < table + sizeof threads) &&
         !(at >= begin && at < begin + sizeof(Channel));
}

bool on_stack(uint64_t address, uint64_t from) {
  return address >= from && address < threads[self].stack_end;
}

Channel* the_channel() { return channel; }

void* take_zeroed(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    end_run(End::kFailed, "no memory for the runtime's tables");
  }
  return memory;
}

void serve_if_asked() {
  const char* const text = std::getenv(kChannelVariable);
  if (text == nullptr) {
    return;
  }
  const int descriptor = std::atoi(text);
  unsetenv(kChannelVariable);
  void* const memory =
      mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    return;
  }
  close(descriptor);
  channel = static_cast<Channel*>(memory);
  entries = static_cast<Entry*>(take_zeroed(kEntries * sizeof(Entry)));
  take_owners();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The threads of an execution run one at a time: on one processor they hand over fastest.
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(sched_getcpu(), &processors);
  sched_setaffinity(0, sizeof processors, &processors);
  Dl_info module{};
  dladdr(reinterpret_cast<void*>(&serve_if_asked), &module);
  channel->load_base = reinterpret_cast<uint64_t>(module.dli_fbase);
  channel->server = getpid();
  channel->magic = kChannelMagic;
  channel->done.store(1, std::memory_order_release);
  futex(&channel->done, FUTEX_WAKE, INT_MAX);
  for (uint32_t served = 0;;) {
    while (channel->request.load(std::memory_order_acquire) == served) {
      futex(&channel->request, FUTEX_WAIT, served);
    }
    ++served;
    const pid_t child = probe::real__Fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      silence(channel->show_output);
      begin_run();
      return;
    }
    channel->child.store(child, std::memory_order_release);
    int status = 0;
    if (child < 0) {
      channel->end = End::kFailed;
      probe::copy(channel->detail, "fork failed", sizeof "fork failed");
    } else {
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
    }
    channel->child.store(0, std::memory_order_release);
    channel->wait_status = status;
    channel->done.fetch_add(1, std::memory_order_release);
    futex(&channel->done, FUTEX_WAKE, INT_MAX);
  }
}

}  // namespace tsomon::explore
