// Calls in which a thread may sleep in the kernel: a fence before, a stamp after.
//
// A thread that waits for an event may leave stores in no drain's reach for as long as it sleeps:
// the recording would have to allow that they have not committed yet, and everything that they
// could meet stays open, however long ago it was. In truth they have: no thread is put to sleep
// without locked instructions of the scheduler. No event says so, so the runtime drains the buffer
// itself (MFENCE, a fence in the recording), which costs little beside a system call. The stamp
// after the call keeps what follows from seeming to begin before it. So does a thread that ends,
// which need not be joined.
//
// These are functions that may be called from signal handlers, so the real ones are looked up
// early. Missed: calls that do not go through the dynamic linker, futexes by syscall(2), and the
// checking variants of _FORTIFY_SOURCE.
#include <cerrno>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/buffers.h"
#include "monitor/probe/operation.h"
#include "monitor/probe/real.h"
#include "monitor/probe/signals.h"

using namespace tsomon::probe;

namespace {

template <typename Call>
auto sleeping(uint64_t pc, Call call, bool for_a_while = false) {
  if (local.thread == nullptr) {
    return call();
  }
  drain_before_sleeping(pc, for_a_while);
  Cancellation cancelled([pc] {
    put_stamp_now();
    receives_cancellation(pc);
  });
  const auto result = call();
  cancelled.returned();
  const int after = errno;
  put_stamp_now();
  errno = after;
  return result;
}
// A thread that waits for another one may do so between two looks.
template <typename Call>
auto pausing(uint64_t pc, Call call) {
  return sleeping(pc, call, true);
}
// What worked may have been told something by another thread (descriptors.cpp).
template <typename Call>
auto receiving(int descriptor, uint64_t pc, Call call) {
  uses_descriptor(descriptor, pc);
  const auto result = sleeping(pc, call);
  if (result >= 0) {
    receives_through(descriptor, pc);
  }
  return result;
}

// What is ready has been written to.
int polled(int result, const pollfd* files, nfds_t count, uint64_t pc) {
  for (nfds_t i = 0; result > 0 && i < count; ++i) {
    if (files[i].fd >= 0 && files[i].revents != 0) {
      receives_through(files[i].fd, pc);
    }
  }
  return result;
}
int selected(int result, int count, const fd_set* in, uint64_t pc) {
  for (int file = 0; result > 0 && in != nullptr && file < count; ++file) {
    if (FD_ISSET(file, in)) {
      receives_through(file, pc);
    }
  }
  return result;
}

// The descriptor begins.
template <typename Call>
int accepting(int listening, uint64_t pc, Call call) {
  uses_descriptor(listening, pc);
  const int result = sleeping(pc, call);
  if (result >= 0) {
    descriptor_begins(result, pc);
    receives_through(listening, pc);
    connection_begins(result, pc);
  }
  return result;
}

}  // namespace

void tsomon::probe::drain_before_sleeping(uint64_t pc, bool for_a_while) {
  const int error = errno;
  // Of a fence only the end matters.
  const auto* const sleeps = reinterpret_cast<const char*>(tsomon::capture::kSleepingFence);
  Operation fence(RecordType::kFence, for_a_while ? nullptr : sleeps, 0, 0, pc, kHoweverOld);
  __builtin_ia32_mfence();
  fence.done(true);
  errno = error;
}

// Under control time is virtual: a thread that sleeps goes on when it is scheduled. What waits for
// something outside of the program is refused.
#define TSOMON_PASS(NAME) return 0;
#define TSOMON_REFUSE(NAME) tsomon::explore::refuse(#NAME);

#define TSOMON_SLEEPING(RESULT, NAME, PARAMETERS, ARGUMENTS) \
  TSOMON_IN_FRONT(TSOMON_REFUSE, RESULT, NAME, PARAMETERS, ARGUMENTS, sleeping)
#define TSOMON_PAUSING(RESULT, NAME, PARAMETERS, ARGUMENTS) \
  TSOMON_IN_FRONT(TSOMON_PASS, RESULT, NAME, PARAMETERS, ARGUMENTS, pausing)
#define TSOMON_RECEIVING(RESULT, NAME, PARAMETERS, ARGUMENTS, DESCRIPTOR) \
  TSOMON_IN_FRONT(TSOMON_REFUSE, RESULT, NAME, PARAMETERS, ARGUMENTS, receiving, DESCRIPTOR, )
#define TSOMON_ACCEPTING(NAME, PARAMETERS, ARGUMENTS) \
  TSOMON_IN_FRONT(TSOMON_REFUSE, int, NAME, PARAMETERS, ARGUMENTS, accepting, socket, )
#define TSOMON_LOOKED_UP(NAME)                                               \
  TSOMON_REAL(NAME)                                                          \
  namespace {                                                                \
  __attribute__((constructor(101))) void look_up_##NAME() { next_##NAME(); } \
  }
#define TSOMON_IN_FRONT(EXPLORED, RESULT, NAME, PARAMETERS, ARGUMENTS, HOW, ...) \
  TSOMON_LOOKED_UP(NAME)                                                         \
  TSOMON_HOOK RESULT NAME PARAMETERS {                                           \
    if (TSOMON_UNLIKELY(tsomon::explore::active)) {                              \
      EXPLORED(NAME)                                                             \
    }                                                                            \
    return HOW(__VA_ARGS__ TSOMON_PC(), [&] { return real_##NAME ARGUMENTS; });  \
  }

#define TSOMON_FILLING(RESULT, NAME, PARAMETERS, ARGUMENTS, DESCRIPTOR, PARTS, NOTE) \
  TSOMON_LOOKED_UP(NAME)                                                             \
  TSOMON_HOOK RESULT NAME PARAMETERS {                                               \
    if (TSOMON_UNLIKELY(tsomon::explore::active)) {                                  \
      TSOMON_REFUSE(NAME)                                                            \
    }                                                                                \
    return filling(                                                                  \
        DESCRIPTOR, static_cast<size_t>(PARTS), TSOMON_PC(),                         \
        [=] { return real_##NAME ARGUMENTS; },                                       \
        [=](Transfer& transfer, RESULT result) {                                     \
          const auto got = static_cast<size_t>(result);                              \
          transfer.NOTE;                                                             \
        });                                                                          \
  }

TSOMON_FILLING(int, epoll_wait, (int epoll, epoll_event* events, int most, int timeout),
               (epoll, events, most, timeout), epoll, 1, part(events, got * sizeof *events))
TSOMON_FILLING(int, epoll_pwait,
               (int epoll, epoll_event* events, int most, int timeout, const sigset_t* mask),
               (epoll, events, most, timeout, mask), epoll, 1, part(events, got * sizeof *events))
#define TSOMON_WAITING(NAME, PARAMETERS, ARGUMENTS, SEEN, ...)                             \
  TSOMON_LOOKED_UP(NAME)                                                                   \
  TSOMON_HOOK int NAME PARAMETERS {                                                        \
    if (TSOMON_UNLIKELY(tsomon::explore::active)) {                                        \
      TSOMON_REFUSE(NAME)                                                                  \
    }                                                                                      \
    return SEEN(sleeping(TSOMON_PC(), [&] { return real_##NAME ARGUMENTS; }), __VA_ARGS__, \
                TSOMON_PC());                                                              \
  }
TSOMON_WAITING(poll, (pollfd * files, nfds_t count, int timeout), (files, count, timeout), polled,
               files, count)
TSOMON_WAITING(ppoll, (pollfd * files, nfds_t count, const timespec* timeout, const sigset_t* mask),
               (files, count, timeout, mask), polled, files, count)
TSOMON_WAITING(select, (int count, fd_set* in, fd_set* out, fd_set* other, timeval* timeout),
               (count, in, out, other, timeout), selected, count, in)
TSOMON_WAITING(pselect,
               (int count, fd_set* in, fd_set* out, fd_set* other, const timespec* timeout,
                const sigset_t* mask),
               (count, in, out, other, timeout, mask), selected, count, in)
TSOMON_PAUSING(int, nanosleep, (const timespec* time, timespec* rest), (time, rest))
TSOMON_PAUSING(int, clock_nanosleep,
               (clockid_t clock, int flags, const timespec* time, timespec* rest),
               (clock, flags, time, rest))
TSOMON_PAUSING(int, usleep, (useconds_t time), (time))
TSOMON_PAUSING(unsigned, sleep, (unsigned seconds), (seconds))
TSOMON_SLEEPING(int, pause, (), ())
TSOMON_FILLING(ssize_t, read, (int file, void* buffer, size_t size), (file, buffer, size), file, 1,
               part(buffer, got))
TSOMON_FILLING(ssize_t, readv, (int file, const iovec* buffers, int count), (file, buffers, count),
               file, count, parts(buffers, static_cast<size_t>(count), got))
TSOMON_FILLING(ssize_t, recv, (int socket, void* buffer, size_t size, int flags),
               (socket, buffer, size, flags), socket, 1, part(buffer, got < size ? got : size))
TSOMON_FILLING(ssize_t, recvfrom,
               (int socket, void* buffer, size_t size, int flags, sockaddr* from,
                socklen_t* from_size),
               (socket, buffer, size, flags, from, from_size), socket, 1,
               part(buffer, got < size ? got : size))
TSOMON_FILLING(ssize_t, recvmsg, (int socket, msghdr* message, int flags), (socket, message, flags),
               socket, message == nullptr ? 0 : message->msg_iovlen,
               parts(message->msg_iov, message->msg_iovlen, got))
TSOMON_FILLING(int, recvmmsg,
               (int socket, mmsghdr* messages, unsigned count, int flags, timespec* time),
               (socket, messages, count, flags, time), socket, Transfer::kMostParts,
               messages(messages, static_cast<int>(got)))
TSOMON_FILLING(ssize_t, pread, (int file, void* buffer, size_t size, off_t offset),
               (file, buffer, size, offset), file, 1, part(buffer, got))
TSOMON_RECEIVING(int, eventfd_read, (int file, eventfd_t* count), (file, count), file)
TSOMON_ACCEPTING(accept, (int socket, sockaddr* from, socklen_t* from_size),
                 (socket, from, from_size))
TSOMON_ACCEPTING(accept4, (int socket, sockaddr* from, socklen_t* from_size, int flags),
                 (socket, from, from_size, flags))
TSOMON_SLEEPING(pid_t, wait, (int* status), (status))
TSOMON_SLEEPING(pid_t, waitpid, (pid_t process, int* status, int options),
                (process, status, options))
