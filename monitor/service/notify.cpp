#include "monitor/service/notify.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "monitor/process/descriptor.h"

namespace tsomon::service {
namespace {

// 0: there is no such variable, or it holds no number.
uint64_t number_in_environment(const char* name) {
  const char* const text = std::getenv(name);
  uint64_t number = 0;
  if (text != nullptr) {
    std::from_chars(text, text + std::strlen(text), number);
  }
  return number;
}

}  // namespace

bool notify_manager(const std::string& state) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr) {
    return true;
  }
  sockaddr_un address{};
  const size_t length = std::strlen(name);
  if ((name[0] != '/' && name[0] != '@') || length >= sizeof address.sun_path) {
    return false;
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name, length);
  address.sun_path[0] = name[0] == '@' ? '\0' : '/';
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  return socket.is_open() && ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                                      reinterpret_cast<const sockaddr*>(&address),
                                      size) == static_cast<ssize_t>(state.size());
}

std::chrono::microseconds watchdog_time() {
  const uint64_t pid = number_in_environment("WATCHDOG_PID");
  const bool ours = pid == 0 || pid == static_cast<uint64_t>(::getpid());
  constexpr uint64_t kMost = uint64_t{1} << 50;
  const uint64_t time = number_in_environment("WATCHDOG_USEC");
  return std::chrono::microseconds(ours && time < kMost ? time : 0);
}

}  // namespace tsomon::service
