#include "monitor/explore/runtime/waits.h"

#include <cerrno>

#include "monitor/explore/runtime/cells.h"
#include "monitor/explore/runtime/loops.h"

namespace tsomon::explore {
namespace {

constexpr Value bit(uint32_t answer) { return Value{1} << answer; }

bool leaves_no_trace(Op op) {
  switch (op) {
    case Op::kLock:
    case Op::kUnlock:
    case Op::kReadLock:
    case Op::kWriteLock:
    case Op::kReadWriteUnlock:
    case Op::kConditionEnter:
    case Op::kConditionAbandon:
    case Op::kFence:
    case Op::kAnswer:
      return true;
    default:
      return false;
  }
}

}  // namespace

void look_for_idle_wait(Thread& thread, const Operation& operation) {
  thread.wait_state = state_hash(thread, operation);
  for (uint32_t i = 0; i < thread.wakes; ++i) {
    if (thread.wake_states[i] == thread.wait_state) {
      thread.waits_idle = true;
      thread.loop_from = thread.wake_from[i];
      return;
    }
  }
  if (thread.wakes == kMaxWakes) {
    thread.waits_idle = true;
    thread.loop_from = thread.wake_from[0];
    ++channel->cut_waits;
  }
}

void note_answer(Thread& thread, uint8_t answer) {
  if (answer == kWaits || thread.wakes == kMaxWakes) {
    thread.wakes = 0;
    return;
  }
  if (thread.wakes == 0) {
    thread.wake_read_count = 0;
  }
  thread.wake_states[thread.wakes] = thread.wait_state;
  thread.wake_from[thread.wakes++] = thread.wake_read_count;
}

void note_effect_on_wakes(Thread& thread, const Operation& operation, const Done& done) {
  if (thread.wakes == 0 || leaves_no_trace(operation.op)) {
    return;
  }
  const bool silent = is_locked(operation.op) && done.read == done.written;
  if (operation.op != Op::kLoad && !silent) {
    thread.wakes = 0;
  } else if (thread.wake_read_count < kWakeReads) {
    thread.wake_reads[thread.wake_read_count++] = {operation.op, operation.size, operation.address,
                                                   done.read};
  }
}

bool idle_wait_may_go_on(const Thread& thread) {
  if ((thread.pending.b & bit(kTimeOver)) == 0 || thread.wake_read_count == kWakeReads) {
    return true;  // nobody has to wake by itself: the wait itself is another execution
  }
  for (uint32_t i = thread.loop_from; i < thread.wake_read_count; ++i) {
    const WakeRead& read = thread.wake_reads[i];
    Operation again;
    again.op = read.op;
    again.address = read.address;
    again.size = read.size;
    if (view(thread, again) != read.value) {
      return true;
    }
  }
  return false;
}

bool has_answer(const Thread& thread, uint8_t answer) {
  return answer == kWaits || (thread.pending.op == Op::kAnswer &&
                              (static_cast<uint64_t>(thread.pending.b) >> answer & 1) != 0);
}

namespace {

// `conceivable`: without the options that leave some out.
uint32_t ask_answer(Value conceivable, const volatile void* object, const State* state,
                    uint64_t pc) {
  Operation ask;
  ask.op = Op::kAnswer;
  ask.address = reinterpret_cast<uint64_t>(object);
  ask.a = channel->spurious ? conceivable : conceivable & ~bit(kSpurious);
  ask.b = conceivable;
  ask.pc = pc;
  ask.state = state;
  return static_cast<uint32_t>(step(ask).written);
}

}  // namespace

int wait_for_signal(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until,
                    const State* state, uint64_t pc) {
  if (!is_concurrent()) {
    refuse("a wait on a condition variable before the first thread is started");
  }
  object(Op::kConditionEnter, condition, pc);
  mutex_unlock(mutex, pc);
  const Value answers = bit(kWaits) | bit(kSpurious) | (until != nullptr ? bit(kTimeOver) : 0);
  const uint32_t answer = ask_answer(answers, condition, state, pc);
  if (answer == kTimeOver) {
    pass_time_until(*until);
  }
  object(answer == kWaits ? Op::kConditionLeave : Op::kConditionAbandon, condition, pc,
         until != nullptr);
  const int result = mutex_lock(mutex, true, pc);
  return answer == kTimeOver ? ETIMEDOUT : result;
}

int take_in_time(Op op, void* what, const timespec* until, const State* state, uint64_t pc) {
  auto* const mutex = op == Op::kLock ? static_cast<pthread_mutex_t*>(what) : nullptr;
  const bool asks = is_concurrent() && (mutex == nullptr || !keeps(mutex));
  if (!asks || ask_answer(bit(kWaits) | bit(kTimeOver), what, state, pc) == kWaits) {
    return mutex != nullptr           ? mutex_lock(mutex, true, pc, true)
           : op == Op::kSemaphoreWait ? semaphore(op, what, pc, true)
                                      : object(op, what, pc, true);
  }
  pass_time_until(*until);
  Operation over;
  over.op = Op::kTimedOut;
  over.address = reinterpret_cast<uint64_t>(what);
  over.size = 16;
  over.a = static_cast<Value>(op);
  over.timed = true;
  over.pc = pc;
  step(over);
  check_alive(over.address, pc);
  if (op == Op::kSemaphoreWait) {
    errno = ETIMEDOUT;
    return -1;
  }
  return ETIMEDOUT;
}

}  // namespace tsomon::explore
