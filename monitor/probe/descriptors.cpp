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
// Ends        What two descriptors have in common is known by one number: of pipes and pairs of
//             sockets the smaller of theirs, of a connection by its two ports or the path, of files
//             and named pipes by the inode. Numbers that are computed may be those of two
//             such things; then more is ordered.
// Start       The numbers of descriptors that were opened before recording began are known when
//             they are closed.
// Signals     As for all hooks: these are functions that handlers may call. A child of vfork has
//             its parent's memory, and records for it.
// Misses      Descriptors that the C library opens and closes itself (opendir, freopen), that fcntl,
//             close_range or system calls by number make or end, splice. Streams: streams.h.
#include "monitor/probe/descriptors.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/buffers.h"
#include "monitor/probe/operation.h"
#include "monitor/probe/real.h"
#include "monitor/probe/signals.h"
#include "tso/model/channels.h"

namespace tsomon::probe {
namespace {

// 1 + the number that stands for both ends; 0: the descriptor stands for itself. Those that are
// computed have the highest bit.
constexpr uint32_t kComputed = 0x80000000U;
constexpr uint32_t kSignalNumber = kComputed;
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

// 1 + the epoll set that watches what is known by a number, by a hash of that; 0: none does.
std::atomic<uint32_t> watchers[kPairs];
std::atomic<uint32_t>& watcher_of(uint64_t channel) {
  return watchers[(channel ^ (channel >> 16)) % kPairs];
}

// What stands for what is known before threads are.
bool is_kept() { return recording; }
bool wanted() { return local.thread != nullptr; }

// Not kSignalNumber, and not so large that 1 + it is 0.
uint32_t computed(uint64_t of) {
  return kComputed | ((static_cast<uint32_t>((of * 0x9E3779B97F4A7C15) >> 33) | 1U) & ~2U);
}

union Address {
  sockaddr any;
  sockaddr_in four;
  sockaddr_in6 six;
  sockaddr_un path;
  sockaddr_storage storage;
};

// The port, or the path as a number; 0: there is none.
uint64_t place_of(const sockaddr* address, socklen_t size) {
  const auto* const all = reinterpret_cast<const Address*>(address);
  if (size < sizeof(sa_family_t)) {
    return 0;
  }
  switch (all->any.sa_family) {
    case AF_INET:
      return ntohs(all->four.sin_port);
    case AF_INET6:
      return ntohs(all->six.sin6_port);
    case AF_UNIX: {
      uint64_t sum = 0;
      const size_t first = offsetof(sockaddr_un, sun_path);
      for (size_t i = first; i < size && i < sizeof(sockaddr_un); ++i) {
        const char c = all->path.sun_path[i - first];
        if (c == 0 && i != first) {
          break;
        }
        sum = sum * 31 + static_cast<unsigned char>(c) + 1;
      }
      return sum << 16;
    }
    default:
      return 0;
  }
}

uint64_t place_here(int descriptor) {
  Address address{};
  socklen_t size = sizeof address;
  return kernel::call(SYS_getsockname, descriptor, reinterpret_cast<long>(&address),
                      reinterpret_cast<long>(&size)) == 0
             ? place_of(&address.any, size)
             : 0;
}
uint64_t place_there(int descriptor) {
  Address address{};
  socklen_t size = sizeof address;
  return kernel::call(SYS_getpeername, descriptor, reinterpret_cast<long>(&address),
                      reinterpret_cast<long>(&size)) == 0
             ? place_of(&address.any, size)
             : 0;
}

// Both ends of a connection compute the same.
void knows_connection(int descriptor) {
  const uint64_t here = place_here(descriptor);
  const uint64_t there = place_there(descriptor);
  if ((here | there) != 0) {
    stands_for(descriptor, computed(here + there + (uint64_t{1} << 63)) + 1);
  }
}
// What is sent there is received through it.
void knows_address(int descriptor) {
  if (const uint64_t here = place_here(descriptor); here != 0) {
    stands_for(descriptor, computed(here) + 1);
  }
}
void knows_file(int descriptor) {
  struct stat status {};
  if (is_kept() && kernel::fstat(descriptor, &status) == 0 &&
      (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode))) {
    stands_for(descriptor, computed(status.st_ino * 31 + status.st_dev + (uint64_t{1} << 62)) + 1);
  }
}

// That the descriptor is there is a byte (tso/model/channels.h).
void access_entry(RecordType type, int descriptor, uint64_t pc) {
  access(type,
         reinterpret_cast<const volatile void*>(kDescriptors + static_cast<uint32_t>(descriptor)),
         1, pc);
}

// Before the number may be given out again. `closes`: whoever uses it then has none.
void ends(int descriptor, bool closes, uint64_t pc) {
  if (descriptor < 0 || !wanted()) {
    return;
  }
  const int error = errno;
  access_entry(closes ? RecordType::kWrite : RecordType::kRead, descriptor, pc);
  const uint64_t known = channel(descriptor);
  put_send(static_cast<uint32_t>(descriptor), pc);
  if (known != static_cast<uint32_t>(descriptor)) {
    put_send(known, pc);  // the other end sees that this one is closed
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

int opens(int descriptor, uint64_t pc) {
  if (descriptor >= 0) {
    const int error = errno;
    descriptor_begins(descriptor, pc);
    knows_file(descriptor);
    errno = error;
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

uint64_t known_by(int descriptor) { return channel(descriptor); }
bool is_watched_by_set(uint64_t channel) {
  return watcher_of(channel).load(std::memory_order_relaxed) != 0;
}

void uses_descriptor(int descriptor, uint64_t pc) {
  if (descriptor >= 0 && wanted()) {
    access_entry(RecordType::kRead, descriptor, pc);
  }
}

void sends_through(int descriptor, uint64_t pc) {
  if (descriptor >= 0 && wanted()) {
    access_entry(RecordType::kRead, descriptor, pc);
    const uint64_t known = channel(descriptor);
    put_send(known, pc);
    if (const uint32_t set = watcher_of(known).load(std::memory_order_relaxed); set != 0) {
      put_send(set - 1, pc);  // who waits there sees that there is something
    }
  }
}

void receives_through(int descriptor, uint64_t pc) {
  if (!wanted()) {
    return;
  }
  const uint64_t known = channel(descriptor);
  if (known == kSignalNumber) {
    receives_signal_by_descriptor(pc);
  }
  put_receive(known, pc);
}

void descriptor_begins(int descriptor, uint64_t pc) {
  stands_for(descriptor, 0);
  receives_through(descriptor, pc);
}

void descriptor_opens(int descriptor, uint64_t pc) { opens(descriptor, pc); }

void descriptor_ends(int descriptor, uint64_t pc) { ends(descriptor, true, pc); }

void gets_signals(int descriptor) { stands_for(descriptor, kSignalNumber + 1); }

void connection_begins(int descriptor, uint64_t pc) {
  if (!is_kept()) {
    return;
  }
  const int error = errno;
  knows_connection(descriptor);
  errno = error;
  receives_through(descriptor, pc);
}

void sends_to(const sockaddr* address, socklen_t size, uint64_t pc) {
  if (wanted()) {
    if (const uint64_t there = place_of(address, size); there != 0) {
      put_send(computed(there), pc);
    }
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
  ends(descriptor, true, TSOMON_PC());
  return real_close(descriptor);
}

// The mode is there when a file may be made.
#define TSOMON_OPENS(NAME, PARAMETERS, ...)                           \
  TSOMON_LOOKED_UP(NAME)                                              \
  TSOMON_HOOK int NAME PARAMETERS {                                   \
    mode_t mode = 0;                                                  \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
      va_list rest;                                                   \
      va_start(rest, flags);                                          \
      mode = va_arg(rest, mode_t);                                    \
      va_end(rest);                                                   \
    }                                                                 \
    return opens(real_##NAME(__VA_ARGS__, flags, mode), TSOMON_PC()); \
  }
TSOMON_OPENS(open, (const char* path, int flags, ...), path)
TSOMON_OPENS(open64, (const char* path, int flags, ...), path)
TSOMON_OPENS(openat, (int folder, const char* path, int flags, ...), folder, path)
TSOMON_OPENS(openat64, (int folder, const char* path, int flags, ...), folder, path)
TSOMON_LOOKED_UP(creat)
TSOMON_HOOK int creat(const char* path, mode_t mode) {
  return opens(real_creat(path, mode), TSOMON_PC());
}
TSOMON_LOOKED_UP(creat64)
TSOMON_HOOK int creat64(const char* path, mode_t mode) {
  return opens(real_creat64(path, mode), TSOMON_PC());
}

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
  ends(descriptor != old ? descriptor : -1, false, TSOMON_PC());
  return copies(old, real_dup2(old, descriptor), TSOMON_PC());
}
TSOMON_LOOKED_UP(dup3)
TSOMON_HOOK int dup3(int old, int descriptor, int flags) noexcept {
  ends(descriptor != old ? descriptor : -1, false, TSOMON_PC());
  return copies(old, real_dup3(old, descriptor, flags), TSOMON_PC());
}

namespace {
// To an address, if there is one.
Transfer::Way sends_to_any(const void* to, socklen_t size, uint64_t pc) {
  if (to == nullptr || size < sizeof(sa_family_t)) {
    return Transfer::Way::kSends;
  }
  sends_to(static_cast<const sockaddr*>(to), size, pc);
  return Transfer::Way::kSendsTo;
}
}  // namespace
#define TSOMON_SENDS_BUFFERS(RESULT, NAME, PARAMETERS, ARGUMENTS, DESCRIPTOR, WAY, PARTS, NOTE) \
  TSOMON_LOOKED_UP(NAME)                                                                        \
  TSOMON_HOOK RESULT NAME PARAMETERS {                                                          \
    return sending(                                                                             \
        DESCRIPTOR, WAY, static_cast<size_t>(PARTS), TSOMON_PC(),                               \
        [=] { return real_##NAME ARGUMENTS; },                                                  \
        [=](Transfer& transfer, RESULT result) {                                                \
          const auto sent = static_cast<size_t>(result);                                        \
          transfer.NOTE;                                                                        \
        });                                                                                     \
  }
TSOMON_SENDS_BUFFERS(ssize_t, write, (int file, const void* buffer, size_t size),
                     (file, buffer, size), file, Transfer::Way::kSends, 1, part(buffer, sent))
TSOMON_SENDS_BUFFERS(ssize_t, writev, (int file, const iovec* buffers, int count),
                     (file, buffers, count), file, Transfer::Way::kSends, count,
                     parts(buffers, static_cast<size_t>(count), sent))
TSOMON_SENDS_BUFFERS(ssize_t, send, (int socket, const void* buffer, size_t size, int flags),
                     (socket, buffer, size, flags), socket, Transfer::Way::kSends, 1,
                     part(buffer, sent))
TSOMON_SENDS_BUFFERS(ssize_t, sendto,
                     (int socket, const void* buffer, size_t size, int flags, const sockaddr* to,
                      socklen_t to_size),
                     (socket, buffer, size, flags, to, to_size), socket,
                     sends_to_any(to, to_size, TSOMON_PC()), 1, part(buffer, sent))
TSOMON_SENDS_BUFFERS(ssize_t, sendmsg, (int socket, const msghdr* message, int flags),
                     (socket, message, flags), socket,
                     message == nullptr
                         ? Transfer::Way::kSends
                         : sends_to_any(message->msg_name, message->msg_namelen, TSOMON_PC()),
                     message == nullptr ? 0 : message->msg_iovlen,
                     parts(message->msg_iov, message->msg_iovlen, sent))
TSOMON_SENDS_BUFFERS(int, sendmmsg, (int socket, mmsghdr* messages, unsigned count, int flags),
                     (socket, messages, count, flags), socket, Transfer::Way::kSendsTo,
                     Transfer::kMostParts, messages(messages, static_cast<int>(sent)))
TSOMON_SENDS_BUFFERS(ssize_t, pwrite, (int file, const void* buffer, size_t size, off_t offset),
                     (file, buffer, size, offset), file, Transfer::Way::kSends, 1,
                     part(buffer, sent))
TSOMON_SENDS(ssize_t, sendfile, (int to, int from, off_t* offset, size_t size),
             (to, from, offset, size), to, noexcept)
TSOMON_SENDS(int, shutdown, (int socket, int how), (socket, how), socket, noexcept)
TSOMON_SENDS(int, listen, (int socket, int count), (socket, count), socket, noexcept)
TSOMON_SENDS(int, eventfd_write, (int file, eventfd_t count), (file, count), file)
TSOMON_LOOKED_UP(epoll_ctl)
TSOMON_HOOK int epoll_ctl(int epoll, int operation, int descriptor, epoll_event* event) noexcept {
  if (is_kept() && epoll >= 0 && operation != EPOLL_CTL_DEL) {
    watcher_of(channel(descriptor))
        .store(static_cast<uint32_t>(epoll) + 1, std::memory_order_relaxed);
  }
  sends_through(epoll, TSOMON_PC());
  return real_epoll_ctl(epoll, operation, descriptor, event);
}
TSOMON_SENDS(int, timerfd_settime, (int timer, int flags, const itimerspec* time, itimerspec* old),
             (timer, flags, time, old), timer, noexcept)
TSOMON_BEGINS(inotify_init, (), (), noexcept)
TSOMON_BEGINS(inotify_init1, (int flags), (flags), noexcept)
TSOMON_SENDS(int, inotify_add_watch, (int notifier, const char* path, uint32_t mask),
             (notifier, path, mask), notifier, noexcept)

// What was done before comes before what is done by whoever accepts.
TSOMON_LOOKED_UP(connect)
TSOMON_HOOK int connect(int socket, const sockaddr* to, socklen_t size) {
  if (!is_kept() || to == nullptr) {
    return real_connect(socket, to, size);
  }
  drain_before_sleeping(TSOMON_PC());
  sends_to(to, size, TSOMON_PC());
  const int result = real_connect(socket, to, size);
  const int error = errno;
  knows_connection(socket);
  put_stamp_now();
  errno = error;
  return result;
}
TSOMON_LOOKED_UP(bind)
TSOMON_HOOK int bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  const int result = real_bind(socket, address, size);
  if (result == 0 && is_kept()) {
    const int error = errno;
    knows_address(socket);
    errno = error;
  }
  return result;
}

// Locks of files: who gets one knows what its last holder did.
TSOMON_LOOKED_UP(flock)
TSOMON_HOOK int flock(int file, int operation) noexcept {
  if ((operation & LOCK_UN) != 0) {
    sends_through(file, TSOMON_PC());
    return real_flock(file, operation);
  }
  drain_before_sleeping(TSOMON_PC());
  const int result = real_flock(file, operation);
  if (result == 0) {
    receives_through(file, TSOMON_PC());
  }
  return result;
}
TSOMON_LOOKED_UP(lockf)
TSOMON_HOOK int lockf(int file, int operation, off_t size) {
  if (operation == F_ULOCK) {
    sends_through(file, TSOMON_PC());
    return real_lockf(file, operation, size);
  }
  drain_before_sleeping(TSOMON_PC());
  const int result = real_lockf(file, operation, size);
  if (result == 0 && operation != F_TEST) {
    receives_through(file, TSOMON_PC());
  }
  return result;
}

// Locks of open files, and copies of descriptors. Locks of the process exclude no thread of it.
#define TSOMON_CONTROLS(NAME)                                                     \
  TSOMON_LOOKED_UP(NAME)                                                          \
  TSOMON_HOOK int NAME(int file, int command, ...) {                              \
    va_list rest;                                                                 \
    va_start(rest, command);                                                      \
    void* const argument = va_arg(rest, void*);                                   \
    va_end(rest);                                                                 \
    const bool locks = command == F_OFD_SETLK || command == F_OFD_SETLKW;         \
    if (locks && static_cast<const struct flock*>(argument)->l_type == F_UNLCK) { \
      sends_through(file, TSOMON_PC());                                           \
    }                                                                             \
    const int result = real_##NAME(file, command, argument);                      \
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {                       \
      return copies(file, result, TSOMON_PC());                                   \
    }                                                                             \
    if (locks && result == 0) {                                                   \
      receives_through(file, TSOMON_PC());                                        \
    }                                                                             \
    return result;                                                                \
  }
TSOMON_CONTROLS(fcntl)
TSOMON_CONTROLS(fcntl64)
