// Calls that the kernel allows to processes with one thread alone: unshare(2) and setns(2) of a user namespace, say, with which programs lock
// themselves up when they start. The runtime's threads end for the time of the call and begin again behind it.
// Misses      Calls by number, and what is recorded over a socket.
#include <cerrno>

#include <sched.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/control.h"
#include "monitor/probe/last_thread.h"
#include "monitor/probe/process_clock.h"
#include "monitor/probe/real.h"
#include "monitor/probe/slices.h"

TSOMON_REAL(unshare)
TSOMON_REAL(setns)

using namespace tsomon::probe;

namespace {

// A thread that was joined is the process's for a moment still.
bool awaits_threads(uint32_t count) {
  constexpr unsigned kTries = 200;
  for (unsigned tries = 0; !has_threads(count); ++tries) {
    if (tries == kTries) {
      return false;
    }
    let_others_run(tries);
  }
  return true;
}

bool pauses() {
  const bool ours = controlled || (recording && !finishing());
  if (!ours || local.off || tsomon::explore::active || !awaits_threads(2 + clock_threads())) {
    return false;
  }
  if (controlled) {
    end_control();
  } else if (!pause_chunk_writer()) {
    return false;
  }
  awaits_threads(1);
  return true;
}

void goes_on(bool had_clock) {
  if (!controlled) {
    if (!continue_chunk_writer()) {
      give_up_recording();
    }
    return;
  }
  if (had_clock) {
    continue_clock();
  }
  controlled = start_control();
}

template <typename Call>
int call_alone(Call call) {
  const bool had_clock = clock_threads() != 0;
  if (!pauses()) {
    return call();
  }
  const int result = call();
  const int error = errno;
  goes_on(had_clock);
  errno = error;
  return result;
}

}  // namespace

TSOMON_HOOK int unshare(int flags) noexcept {
  const auto call = [=] { return real_unshare(flags); };
  constexpr int kAlone = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
  return (flags & kAlone) != 0 ? call_alone(call) : call();
}

TSOMON_HOOK int setns(int fd, int kinds) noexcept {
  const auto call = [=] { return real_setns(fd, kinds); };
  return kinds == 0 || (kinds & CLONE_NEWUSER) != 0 ? call_alone(call) : call();
}
