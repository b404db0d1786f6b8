// Whose turn it is, and what an operation does when it is.
#include "monitor/explore/runtime/scheduler.h"

#include <linux/futex.h>

#include "monitor/explore/runtime/cells.h"
#include "monitor/explore/runtime/debugger.h"
#include "monitor/explore/runtime/in_place.h"
#include "monitor/explore/runtime/loops.h"
#include "monitor/explore/runtime/plain.h"
#include "monitor/explore/runtime/policy.h"
#include "monitor/explore/runtime/repairs.h"
#include "monitor/explore/runtime/stores.h"
#include "monitor/explore/runtime/waits.h"

namespace tsomon::explore {
namespace {

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
  if (!thread.exists || thread.ended || thread.waits_idle ||
      (thread.in_loop && !loop_may_go_on(thread))) {
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
  keep_blocks_whole();
}

Step* new_step(Choice choice) {
  if (steps >= at_most(channel->max_steps, kMaxSteps)) {
    finish(End::kBound, 0);
  }
  Step* const step = &channel->steps[steps++];
  *step = Step{};
  step->choice = choice;
  step->enabled = enabled_now;
  step->commits = commits_now;
  return step;
}

Step* new_step(uint32_t thread, const Operation& operation) {
  Step* const step = new_step(Choice{static_cast<uint16_t>(thread), 0, 0});
  step->op = operation.op;
  step->size = operation.size;
  step->divisible = operation.divisible;
  step->address = operation.address;
  step->a = operation.a;
  step->b = operation.b;
  step->pc = operation.pc;
  return step;
}

void commit(uint32_t thread) {
  if (channel->show_output) {
    const Buffered& next = threads[thread].buffer[0];
    tsomon_explore_commit(thread, next.address, next.size, static_cast<uint64_t>(next.value));
  }
  Step* const step = new_step(Choice{static_cast<uint16_t>(thread), 1, 0});
  const Buffered oldest = commit_oldest(threads[thread]);
  step->op = Op::kStore;
  step->address = oldest.address;
  step->size = static_cast<uint8_t>(oldest.size);
  step->written = oldest.value;
  publish();
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
    if (thread.in_loop || thread.waits_idle) {
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
    Step* const step = new_step(number, pending);
    step->waits = true;
    step->read = now;
    step->written = now;
    step->initial = initial_of(pending);
    publish();
  }
}

bool could_go_on(uint32_t number) {
  const Thread& thread = threads[number];
  return thread.waits_idle ? idle_wait_may_go_on(thread)
         : thread.in_loop  ? loop_may_go_on(thread)
                           : thread.pending.timed || is_free(number);
}

[[noreturn]] void nobody_can() {
  uint32_t count = 0;
  for (uint32_t number = 0; number < thread_count; ++number) {
    const Thread& thread = threads[number];
    if (thread.exists && !thread.ended) {
      Waiting& waiting = channel->waiting_threads[count++];
      waiting.thread = static_cast<uint16_t>(number);
      waiting.op = thread.pending.op;
      waiting.in_loop = thread.in_loop || thread.waits_idle;
      waiting.can_go_on = could_go_on(number);
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
    if (choice.thread > kMaxThreads || ((mask >> choice.thread) & 1) == 0 ||
        (choice.commit == 0 && !has_answer(threads[choice.thread], choice.answer))) {
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
  return choose_by_policy();
}

void give_turn(uint32_t number) {
  threads[number].turn.store(1, std::memory_order_release);
  futex(&threads[number].turn, FUTEX_WAKE_PRIVATE, 1);
}

// Hands over, or returns when it is this thread's turn.
void schedule(bool wait) {
  for (;;) {
    const Choice choice = choose();
    if (choice.commit != 0) {
      commit(choice.thread);
      continue;
    }
    threads[choice.thread].answer = choice.answer;
    if (wait && choice.thread == self) {
      return;
    }
    if (in_place::is_on()) {
      return in_place::go_to(choice.thread);
    }
    give_turn(choice.thread);
    if (!wait) {
      return;
    }
    wait_for_turn(threads[self]);
    return;
  }
}

Done perform_store(Thread& thread, const Operation& operation, bool told) {
  Done done;
  done.written = operation.a;
  const Value covered = get(operation.address, operation.size);
  put(operation.address, operation.size, operation.a);
  if (told && channel->model == Model::kTso) {
    buffer_store(thread, {operation.address, operation.size, steps - 1, operation.a, covered});
  }
  return done;
}

// `told`: it is a step of the run.
Done perform(Thread& thread, const Operation& operation, bool told) {
  Done done;
  if (operation.op == Op::kLoad) {
    done.read = get(operation.address, operation.size);
  } else if (operation.op == Op::kStore) {
    done = perform_store(thread, operation, told);
  } else if (is_locked(operation.op)) {
    done.read = view(thread, operation);
    const Effect effect =
        apply(operation.op, done.read, operation.a, operation.b, operation.size, self);
    done.written = effect.value;
    if (is_object(operation.op)) {
      object_value(operation) = effect.value;
    } else if (effect.writes) {
      put(operation.address, operation.size, effect.value);
    }
  }
  return done;
}

void stop_before(const Operation& operation) {
  if (channel->show_output) {
    tsomon_explore_step(self, operation.pc);
  }
}

}  // namespace

Step* new_step(Op op) {
  Operation operation;
  operation.op = op;
  stop_before(operation);
  return new_step(self, operation);
}

void publish() { channel->step_count.store(steps, std::memory_order_release); }

void wait_for_turn(Thread& thread) {
  while (thread.turn.load(std::memory_order_acquire) == 0) {
    futex(&thread.turn, FUTEX_WAIT_PRIVATE, 0);
  }
  thread.turn.store(0, std::memory_order_relaxed);
}

Done step(const Operation& operation) {
  Thread& thread = threads[self];
  if (!concurrent) {
    return perform(thread, operation, false);
  }
  settle(thread);
  if (is_repaired()) {
    before_repaired(thread, operation);
  }
  thread.pending = operation;
  if (operation.op == Op::kAnswer) {
    look_for_idle_wait(thread, operation);
  } else if (operation.state != nullptr) {
    look_for_loop(thread, operation);
  }
  take_out(thread);
  schedule(true);
  put_in(thread);
  if (thread.in_loop) {
    begin_loop_anew(thread, operation);
  }
  if (is_repaired()) {
    at_repaired(thread, operation);
  }
  stop_before(operation);
  Step* const step = new_step(self, operation);
  if (has_cell(operation.op)) {
    step->initial = initial_of(operation);
  }
  Done done = perform(thread, operation, true);
  if (operation.op == Op::kAnswer) {
    step->choice.answer = thread.answer;
    step->b = thread.answer;
    step->initial = thread.wait_state;
    done.read = operation.b;
    done.written = thread.answer;
    note_answer(thread, thread.answer);
  }
  step->read = done.read;
  step->written = done.written;
  ++thread.operations;
  publish();
  note_effect_on_loop(thread, operation, done);
  note_effect_on_wakes(thread, operation, done);
  if (operation.op == Op::kEnd) {
    thread.ended = true;
    schedule(false);
  }
  return done;
}

}  // namespace tsomon::explore
