#include "monitor/process/control_socket.h"

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "monitor/process/running_programs.h"
#include "tso/support/printable.h"

namespace tsomon::attach {
namespace {

tl::unexpected<Error> problem(pid_t pid, std::string message,
                              ErrorKind kind = ErrorKind::kEnvironment) {
  return tl::unexpected<Error>(Error{kind, fmt::format("process {}", pid), {}, std::move(message)});
}

// The number that the process has for itself, in the namespace it lives in.
pid_t own_number(pid_t pid) {
  const std::string all = status_field(pid, "NSpid");  // the last one is its own
  const size_t begin = all.find_last_of("\t ") + 1;
  pid_t number = pid;
  std::from_chars(all.data() + begin, all.data() + all.size(), number);
  return number;
}

}  // namespace

Result<Descriptor> connect_to_control(pid_t pid, const std::string& folder) {
  if (start_of(pid) == 0) {
    return problem(pid, "there is no such process", ErrorKind::kUnreadable);
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = folder.empty() ? fmt::format("tsomon/{}", own_number(pid))
                                          : fmt::format("{}/tsomon.{}", folder, own_number(pid));
  const size_t at = folder.empty() ? 1 : 0;
  if (name.size() + at >= sizeof address.sun_path) {
    return problem(pid, fmt::format("the path of the folder is too long: {}", printable(folder)),
                   ErrorKind::kUsage);
  }
  std::memcpy(address.sun_path + at, name.data(), name.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + at + name.size());
  if (!socket.is_open() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return problem(
        pid,
        errno == EAGAIN
            ? "others are asking it already: try again"
            : fmt::format("cannot be asked ({}): build it with `tsomon-c++ --dormant` and start "
                          "it with TSOMON_OPTIONS=control=on, or link it with --control",
                          std::strerror(errno)));
  }
  ucred peer{};
  socklen_t peer_size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 ||
      peer.pid != pid) {
    return problem(pid, fmt::format("process {} answers in its place", peer.pid));
  }
  return socket;
}

}  // namespace tsomon::attach
