// Waits that may end without what they wait for: by themselves, or because time is over.
//
// Method      The thread says with what its wait may end (Op::kAnswer), and the schedule chooses. Who
//             wakes so, and comes to a wait in the same state again with no effect in between but
//             on locks and on the condition, has done nothing: it could have stayed in the wait
//             where it woke, and wake there later (docs/design/explore.md, "Waits").
//             So it goes no further, and the execution is one of those that are not counted. Where
//             time limits change from round to round the state never is the same: after kMaxWakes
//             rounds the thread stays, and the exploration is not complete (`cut_waits`).
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

// Before the thread asks for an answer: whether it stays (Thread::waits_idle).
void look_for_idle_wait(Thread& thread, const Operation& operation);
void note_answer(Thread& thread, uint8_t answer);
void note_effect_on_wakes(Thread& thread, const Operation& operation, const Done& done);
// Of a thread that stays: what it read is another value now, or it could do without.
bool idle_wait_may_go_on(const Thread& thread);
// The schedule's choice is one.
bool has_answer(const Thread& thread, uint8_t answer);

// runtime.h, with the caller's state.
int wait_for_signal(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until,
                    const State* state, uint64_t pc);
int take_in_time(Op op, void* what, const timespec* until, const State* state, uint64_t pc);

}  // namespace tsomon::explore
