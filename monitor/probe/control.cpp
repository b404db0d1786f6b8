#include "monitor/probe/control.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/last_thread.h"
#include "monitor/probe/process_clock.h"
#include "monitor/probe/real.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/slices.h"
#include "monitor/probe/twins.h"

namespace tsomon::probe {
namespace {

constexpr int kIdle = 1000;                // milliseconds between looks while nobody asks
constexpr int kPatience = 500;             // ... for a request
constexpr int64_t kStep = 10'000;          // microseconds between looks while a slice is recorded
constexpr int64_t kArmedStep = 1000;       // ... while one is to begin
constexpr int64_t kMostGrace = 1'000'000;  // microseconds for open units to end
constexpr int64_t kLeastGrace = 20'000;
constexpr int64_t kLongest = int64_t{3600} * 1'000'000;
constexpr size_t kMostWords = 96;       // of a request, in bytes
constexpr size_t kMostEntries = 16384;  // ... functions
constexpr size_t kMostRequest = kMostWords + kMostEntries * sizeof(uint64_t);

pthread_t thread{};
std::atomic<bool> ends{false};
// Of start_control(), which waits for it.
std::atomic<int> answer{0};  // 0: not yet; 1: it listens; else an errno value, negative
bool prepared = false;
bool forked = false;
sockaddr_un address{};
socklen_t address_size = 0;

long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  return kernel::call(number, a, b, c, d);
}

bool ready(int fd, int milliseconds) {
  pollfd one{fd, POLLIN, 0};
  return system_call(SYS_poll, reinterpret_cast<long>(&one), 1, milliseconds) == 1;
}

bool hung_up(int fd) {
  pollfd one{fd, POLLRDHUP, 0};
  return system_call(SYS_poll, reinterpret_cast<long>(&one), 1, 0) == 1 &&
         (one.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

__attribute__((format(printf, 2, 3))) void say(int fd, const char* format, ...) {
  char text[256];
  va_list list;
  va_start(list, format);
  const int size = std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const long length =
      size < static_cast<int>(sizeof text) ? size : static_cast<long>(sizeof text) - 1;
  iovec part{text, static_cast<size_t>(length)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  system_call(SYS_sendmsg, fd, reinterpret_cast<long>(&message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool may_ask(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (kernel::call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, reinterpret_cast<long>(&peer),
                   reinterpret_cast<long>(&size)) != 0) {
    return false;
  }
  return peer.uid == 0 || peer.uid == geteuid();
}

struct Request {
  int64_t time = 0;        // microseconds
  int64_t most_bytes = 0;  // of records, from which on the slice ends; 0: as they come
  TwinChoice functions{TwinChoice::kAll};
  bool first = false;  // these functions until a thread takes part, then all
};

// The number that the text goes on with, up to a blank or its end; -1: there is none.
int64_t read_number(char** text) {
  const bool is_one = **text >= '0' && **text <= '9';
  const int64_t value = std::strtoll(*text, text, 10);
  return is_one && (**text == '\0' || **text == ' ') ? value : -1;
}

bool goes_on_with(char** text, const char* word) {
  const size_t size = std::strlen(word);
  const bool is_it = std::strncmp(*text, word, size) == 0;
  *text += is_it ? size : 0;
  return is_it;
}

// control.h has what it may say. The entries stay in `bytes`.
bool understand(char* bytes, size_t size, Request* request) {
  bytes[size] = '\0';
  const size_t words = std::strlen(bytes);
  char* text = bytes;
  if (words >= kMostWords || !goes_on_with(&text, "slice ")) {
    return false;
  }
  const size_t binary = words == size ? 0 : size - words - 1;
  auto* const entries = reinterpret_cast<uint64_t*>(bytes);
  const size_t count = binary / sizeof(uint64_t);
  TwinChoice& functions = request->functions;
  request->time = read_number(&text);
  while (*text != '\0') {
    if (goes_on_with(&text, " bytes=")) {
      request->most_bytes = read_number(&text);
      continue;
    }
    const bool is_named = functions.kind != TwinChoice::kAll;
    request->first = goes_on_with(&text, " first=");
    if (request->first || goes_on_with(&text, " only=")) {
      functions.kind = TwinChoice::kOnly;
    } else if (goes_on_with(&text, " but=")) {
      functions.kind = TwinChoice::kBut;
    } else {
      return false;
    }
    if (is_named || count == 0 || read_number(&text) != static_cast<int64_t>(count)) {
      return false;
    }
  }
  const bool is_named = functions.kind != TwinChoice::kAll;
  if (request->time <= 0 || request->time > kLongest || request->most_bytes < 0 ||
      binary % sizeof(uint64_t) != 0 || is_named != (binary != 0)) {
    return false;
  }
  std::memmove(bytes, bytes + words + 1, binary);
  std::sort(entries, entries + count);
  functions.entries = entries;
  functions.count = count;
  return true;
}

// The request, and the descriptor that came with it, or -1; false: nothing that makes sense.
bool receive(int fd, char* room, Request* request, int* file) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part{room, kMostRequest};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const long size = system_call(SYS_recvmsg, fd, reinterpret_cast<long>(&message),
                                MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  *file = -1;
  if (size <= 0) {
    return false;
  }
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    std::memcpy(file, CMSG_DATA(header), sizeof *file);
  }
  return (message.msg_flags & MSG_TRUNC) == 0 &&
         understand(room, static_cast<size_t>(size), request);
}

// The clock is measured first where it never was.
void prepare() {
  if (!prepared) {
    prepared = true;
    forked ? prepare_clock_after_fork() : prepare_clock();
  }
}

void record_slice(int client, const Request& request, int file) {
  prepare();
  if (const int error = open_slice(file); error != 0) {
    return say(client, "error the file cannot be used: %s", strerrordesc_np(error));
  }
  if (request.first) {
    arm_slice();
  }
  begin_slice(request.functions.kind != TwinChoice::kAll && !request.first,
              static_cast<uint64_t>(request.most_bytes));
  bool watched = watch_twins(request.functions);
  const auto asked_for = [&] { return watched && !ends.load() && !hung_up(client); };
  if (watched && request.first) {
    say(client, "armed");
    while (!somebody_takes_part() && asked_for() && write_slice(kArmedStep)) {
    }
  }
  if (request.first && !somebody_takes_part()) {
    close_slice();  // nobody joins because it is not armed any more
  }
  watched = (!request.first || disarm_slice(somebody_takes_part())) && watched;
  const int64_t begin = now();
  if (watched) {
    say(client, "begun");
  }
  const auto goes_on = [&](int64_t until) {
    const int64_t left = until - now();
    return left > 0 && asked_for() && write_slice(left < kStep ? left : kStep);
  };
  const auto has_room = [&] {
    return request.most_bytes == 0 ||
           (slice_bytes() < static_cast<uint64_t>(request.most_bytes) && !slice_is_closed());
  };
  while (has_room() && goes_on(begin + request.time)) {
  }
  const int64_t watched_for = std::max<int64_t>(close_slice() - begin, 0);
  const int64_t grace = request.time < kLeastGrace  ? kLeastGrace
                        : request.time < kMostGrace ? request.time
                                                    : kMostGrace;
  for (const int64_t closed = now(); units_are_open() && goes_on(closed + grace);) {
  }
  const int error = finish_slice();
  const SliceThreads threads = end_slice();
  watch_twins(false);
  if (!watched) {
    say(client, "error functions cannot be switched: /proc/self/mem cannot be written");
  } else if (error != 0) {
    say(client, "error the capture is not whole: %s", strerrordesc_np(error));
  } else {
    say(client, "ended watched=%lld threads=%u cut=%u bytes=%llu",
        static_cast<long long>(watched_for), threads.joined, threads.cut_units,
        static_cast<unsigned long long>(slice_bytes()));
  }
  let_program_end();
}

void serve(int client, char* room) {
  if (!may_ask(client) || !ready(client, kPatience)) {
    return;
  }
  Request request;
  int file = -1;
  if (!receive(client, room, &request, &file) || file < 0) {
    say(client, "error expected 'slice MICROSECONDS' and the descriptor of a file");
    if (file >= 0) {
      kernel::close(file);
    }
    return;
  }
  record_slice(client, request, file);
}

int listen_at_address() {
  const long fd = system_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -errno;
  }
  struct stat old {};
  if (address.sun_path[0] != '\0' && kernel::stat(address.sun_path, &old) == 0 &&
      S_ISSOCK(old.st_mode)) {
    system_call(SYS_unlink, reinterpret_cast<long>(address.sun_path));
  }
  const bool listens =
      system_call(SYS_bind, fd, reinterpret_cast<long>(&address), address_size) == 0 &&
      system_call(SYS_listen, fd, 4) == 0;
  const int error = errno;
  if (listens && address.sun_path[0] != '\0') {
    system_call(SYS_chmod, reinterpret_cast<long>(address.sun_path), 0600);
  }
  if (!listens) {
    kernel::close(static_cast<int>(fd));
    return -error;
  }
  return static_cast<int>(fd);
}

void* control_thread(void*) {
  local.off = true;
  // Nobody waits for the end of a file that only this thread holds.
  if (system_call(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE) != 0) {
    answer.store(-errno);
    return nullptr;
  }
  auto* const room = static_cast<char*>(take_memory(kMostRequest + 1));
  const int listener = room == nullptr ? -ENOMEM : listen_at_address();
  answer.store(listener >= 0 ? 1 : listener);
  while (listener >= 0 && !ends.load()) {
    if (ready(listener, kIdle) && !ends.load()) {
      const long client = system_call(SYS_accept4, listener, 0, 0, SOCK_CLOEXEC);
      if (client >= 0) {
        serve(static_cast<int>(client), room);
        kernel::close(static_cast<int>(client));
      }
    } else if (only_own_threads(1 + clock_threads())) {
      end_clock();
      kernel::call(SYS_exit, exit_status());
    }
  }
  return nullptr;
}

void name_address() {
  address = {};
  address.sun_family = AF_UNIX;
  const bool abstract = options.control == nullptr;
  char* const at = address.sun_path + (abstract ? 1 : 0);
  const size_t room = sizeof address.sun_path - 1;
  const int size = abstract ? std::snprintf(at, room, "tsomon/%d", getpid())
                            : std::snprintf(at, room, "%s/tsomon.%d", options.control, getpid());
  address_size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + (abstract ? 1 : 0) + size);
}

}  // namespace

bool start_control() {
  if (options.control != nullptr && std::strlen(options.control) > sizeof address.sun_path - 24) {
    warn("control: the path of the folder is too long for a socket: %s", options.control);
    return false;
  }
  name_address();
  prepare_chunk_writer();
  answer.store(0);
  ends.store(false);
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  real_pthread_sigmask(SIG_SETMASK, &all, &old);
  const int failed = real_pthread_create(&thread, nullptr, control_thread, nullptr);
  real_pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (failed != 0) {
    warn("control: no thread: %s", strerrordesc_np(failed));
    return false;
  }
  for (unsigned tries = 0; answer.load() == 0; ++tries) {
    let_others_run(tries);
  }
  if (answer.load() < 0) {
    real_pthread_join(thread, nullptr);
    warn("control: this process cannot be asked to be watched: %s",
         strerrordesc_np(-answer.load()));
    return false;
  }
  return true;
}

// What wakes the thread is somebody who asks.
void end_control() {
  ends.store(true);
  const long fd = system_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    system_call(SYS_connect, fd, reinterpret_cast<long>(&address), address_size);
  }
  real_pthread_join(thread, nullptr);
  if (fd >= 0) {
    kernel::close(static_cast<int>(fd));
  }
  end_clock();
}

void remove_control() {
  if (address_size != 0 && address.sun_path[0] != '\0') {
    system_call(SYS_unlink, reinterpret_cast<long>(address.sun_path));
  }
}

void forget_control() {
  forked = true;
  prepared = false;
  address_size = 0;
  ends.store(true);
}

}  // namespace tsomon::probe
