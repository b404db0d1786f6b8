// Orders that the kernel makes through descriptors: what a thread did before it closed one comes
// before what is done with the next one of that number, what it did before it wrote to a pipe comes
// before what follows the read, and what it did before it changed an epoll set comes before what
// follows a wait there. Reports of races need them: memory that goes with a connection is handed
// over in no other way when its number is given out again.
//
// Records     kSend with a stamp that is taken before the call, kReceive with one that is taken
//             after it, so that all that the kernel can have ordered is in this order. More is: any
//             write comes before any later read of the same pipe, socket or counter, whosever bytes
//             it gets; at a socket the answer of the other end may depend on what was written.
// Start       The numbers of descriptors that were opened before recording began are known when
//             they are closed.
// Signals     As for all hooks: these are functions that handlers may call. A child of vfork has
//             its parent's memory, and records for it.
// Misses      Descriptors that the C library opens and closes itself (fopen, opendir), that fcntl,
//             close_range or system calls by number make or end, pread and pwrite, splice and
//             sendfile, and what two ends tell each other that the process opened apart (a named
//             pipe, a connection to itself).
#include "monitor/probe/descriptors.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/operation.h"
#include "monitor/probe/real.h"

namespace tsomon::probe {
namespace {

// 1 + the number that stands for both ends; 0: the descriptor stands for itself.
constexpr int kPairs = 65536;
std::atomic<uint32_t> pairs[kPairs];

uint64_t channel(int descriptor) {
  const auto number = static_cast<uint32_t>(descriptor);
  if (number < kPairs) {
    if (const uint32_t pair = pairs[number].load(std::memory_order_relaxed); pair != 0) {
      return pair - 1;
    }
  }
  return number;
}
void stands_for(int descriptor, uint32_t pair) {
  if (static_cast<uint32_t>(descriptor) < kPairs) {
    pairs[descriptor].store(pair, std::memory_order_relaxed);
  }
}

bool wanted() { return local.thread != nullptr; }

void send(uint64_t channel, uint64_t pc) { put_point_now(RecordType::kSend, channel, pc); }
void receive(uint64_t channel, uint64_t pc) { put_point_now(RecordType::kReceive, channel, pc); }

// Before the number may be given out again.
void ends(int descriptor, uint64_t pc) {
  if (descriptor < 0 || !wanted()) {
    return;
  }
  const int error = errno;
  drain_before_sleeping(pc);
  const uint64_t known_by = channel(descriptor);
  send(static_cast<uint32_t>(descriptor), pc);
  if (known_by != static_cast<uint32_t>(descriptor)) {
    send(known_by, pc);  // the other end sees that this one is closed
    stands_for(descriptor, 0);
  }
  errno = error;
}

int begins(int descriptor, uint64_t pc) {
  if (descriptor >= 0) {
    descriptor_begins(descriptor, pc);
  }
  return descriptor;
}

int begins(int result, const int* two, uint64_t pc) {
  if (result == 0) {
    begins(two[0], pc);
    begins(two[1], pc);
    const uint32_t pair = static_cast<uint32_t>(two[0]) + 1;
    stands_for(two[0], pair);
    stands_for(two[1], pair);
  }
  return result;
}

int copies(int old, int descriptor, uint64_t pc) {
  begins(descriptor, pc);
  if (descriptor >= 0 && descriptor != old) {
    stands_for(descriptor, static_cast<uint32_t>(channel(old)) + 1);
  }
  return descriptor;
}

}  // namespace

void sends_through(int descriptor, uint64_t pc) {
  if (descriptor >= 0 && wanted()) {
    const int error = errno;
    drain_before_sleeping(pc);
    send(channel(descriptor), pc);
    errno = error;
  }
}

void descriptor_begins(int descriptor, uint64_t pc) {
  stands_for(descriptor, 0);
  receives_through(descriptor, pc);
}

void receives_through(int descriptor, uint64_t pc) {
  if (wanted()) {
    const int error = errno;
    receive(channel(descriptor), pc);
    errno = error;
  }
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

#define TSOMON_LOOKED_UP(NAME)                                               \
  TSOMON_REAL(NAME)                                                          \
  namespace {                                                                \
  __attribute__((constructor(101))) void look_up_##NAME() { next_##NAME(); } \
  }

// The result is the descriptor.
#define TSOMON_BEGINS(NAME, PARAMETERS, ARGUMENTS, ...) \
  TSOMON_LOOKED_UP(NAME)                                \
  TSOMON_HOOK int NAME PARAMETERS __VA_ARGS__ { return begins(real_##NAME ARGUMENTS, TSOMON_PC()); }
#define TSOMON_SENDS(RESULT, NAME, PARAMETERS, ARGUMENTS, DESCRIPTOR, ...) \
  TSOMON_LOOKED_UP(NAME)                                                   \
  TSOMON_HOOK RESULT NAME PARAMETERS __VA_ARGS__ {                         \
    sends_through(DESCRIPTOR, TSOMON_PC());                                \
    return real_##NAME ARGUMENTS;                                          \
  }

TSOMON_LOOKED_UP(close)
TSOMON_HOOK int close(int descriptor) {
  ends(descriptor, TSOMON_PC());
  return real_close(descriptor);
}

// The mode is there when a file may be made.
#define TSOMON_OPENS(NAME, PARAMETERS, ...)                            \
  TSOMON_LOOKED_UP(NAME)                                               \
  TSOMON_HOOK int NAME PARAMETERS {                                    \
    mode_t mode = 0;                                                   \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {  \
      va_list rest;                                                    \
      va_start(rest, flags);                                           \
      mode = va_arg(rest, mode_t);                                     \
      va_end(rest);                                                    \
    }                                                                  \
    return begins(real_##NAME(__VA_ARGS__, flags, mode), TSOMON_PC()); \
  }
TSOMON_OPENS(open, (const char* path, int flags, ...), path)
TSOMON_OPENS(open64, (const char* path, int flags, ...), path)
TSOMON_OPENS(openat, (int folder, const char* path, int flags, ...), folder, path)
TSOMON_OPENS(openat64, (int folder, const char* path, int flags, ...), folder, path)
TSOMON_BEGINS(creat, (const char* path, mode_t mode), (path, mode))
TSOMON_BEGINS(creat64, (const char* path, mode_t mode), (path, mode))

TSOMON_LOOKED_UP(socket)
TSOMON_HOOK int socket(int domain, int type, int protocol) noexcept {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    tsomon::explore::refuse("socket");
  }
  return begins(real_socket(domain, type, protocol), TSOMON_PC());
}
TSOMON_BEGINS(epoll_create, (int size), (size), noexcept)
TSOMON_BEGINS(epoll_create1, (int flags), (flags), noexcept)
TSOMON_BEGINS(eventfd, (unsigned count, int flags), (count, flags), noexcept)
TSOMON_BEGINS(timerfd_create, (clockid_t clock, int flags), (clock, flags), noexcept)

TSOMON_LOOKED_UP(pipe)
TSOMON_HOOK int pipe(int* two) noexcept { return begins(real_pipe(two), two, TSOMON_PC()); }
TSOMON_LOOKED_UP(pipe2)
TSOMON_HOOK int pipe2(int* two, int flags) noexcept {
  return begins(real_pipe2(two, flags), two, TSOMON_PC());
}
TSOMON_LOOKED_UP(socketpair)
TSOMON_HOOK int socketpair(int domain, int type, int protocol, int* two) noexcept {
  return begins(real_socketpair(domain, type, protocol, two), two, TSOMON_PC());
}

TSOMON_LOOKED_UP(dup)
TSOMON_HOOK int dup(int old) noexcept { return copies(old, real_dup(old), TSOMON_PC()); }
TSOMON_LOOKED_UP(dup2)
TSOMON_HOOK int dup2(int old, int descriptor) noexcept {
  ends(descriptor != old ? descriptor : -1, TSOMON_PC());
  return copies(old, real_dup2(old, descriptor), TSOMON_PC());
}
TSOMON_LOOKED_UP(dup3)
TSOMON_HOOK int dup3(int old, int descriptor, int flags) noexcept {
  ends(descriptor != old ? descriptor : -1, TSOMON_PC());
  return copies(old, real_dup3(old, descriptor, flags), TSOMON_PC());
}

TSOMON_SENDS(ssize_t, write, (int file, const void* buffer, size_t size), (file, buffer, size),
             file)
TSOMON_SENDS(ssize_t, writev, (int file, const iovec* buffers, int count), (file, buffers, count),
             file)
TSOMON_SENDS(ssize_t, send, (int socket, const void* buffer, size_t size, int flags),
             (socket, buffer, size, flags), socket)
TSOMON_SENDS(ssize_t, sendto,
             (int socket, const void* buffer, size_t size, int flags, const sockaddr* to,
              socklen_t to_size),
             (socket, buffer, size, flags, to, to_size), socket)
TSOMON_SENDS(ssize_t, sendmsg, (int socket, const msghdr* message, int flags),
             (socket, message, flags), socket)
TSOMON_SENDS(int, shutdown, (int socket, int how), (socket, how), socket, noexcept)
TSOMON_SENDS(int, eventfd_write, (int file, eventfd_t count), (file, count), file)
TSOMON_SENDS(int, epoll_ctl, (int epoll, int operation, int descriptor, epoll_event* event),
             (epoll, operation, descriptor, event), epoll, noexcept)
