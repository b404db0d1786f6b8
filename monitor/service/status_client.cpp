#include "monitor/service/status_client.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "monitor/service/local_socket.h"
#include "monitor/service/observation.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon::service {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLook = 50;  // milliseconds between looks whether to stop

// False: not in time, or a stop was asked for.
bool wait_until(int socket, short events, Clock::time_point until) {
  while (Clock::now() < until && !stop_asked()) {
    pollfd polled{socket, events, 0};
    const int ready = ::poll(&polled, 1, kLook);
    if (ready > 0 || (ready < 0 && errno != EINTR)) {
      return ready > 0;
    }
  }
  return false;
}

// All that comes until the other end closes; nothing: not in time, or too much.
std::optional<std::string> ask(int socket, std::string_view request) {
  const auto until = Clock::now() + kClientPatience;
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return std::nullopt;
  }
  std::string answer;
  std::array<char, 65536> bytes{};
  while (answer.size() <= kMostStatusBytes && wait_until(socket, POLLIN, until)) {
    const ssize_t size = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (size == 0) {
      return answer;
    }
    if (size > 0) {
      answer.append(bytes.data(), static_cast<size_t>(size));
    } else if (errno != EAGAIN && errno != EINTR) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

tl::unexpected<Error> status_problem(const std::string& store, ErrorKind kind,
                                     const std::string& message) {
  return tl::unexpected<Error>(Error{kind, printable(store), {}, message});
}

}  // namespace

Result<nlohmann::ordered_json> ask_status(const std::string& store) {
  const std::string path = (std::filesystem::path(store) / std::string(kStatusSocket)).string();
  const auto socket = connect_to_socket(path);
  if (!socket) {
    return socket.error().kind == ErrorKind::kUnreadable
               ? status_problem(store, ErrorKind::kUnreadable, "no tsomon monitor keeps this store")
               : tl::unexpected<Error>(socket.error());
  }
  if (::geteuid() != 0 && !peer_is_trusted(socket->get())) {
    return status_problem(path, ErrorKind::kEnvironment, "another user answers there");
  }
  const auto answer = ask(socket->get(), kStatusRequest);
  if (!answer) {
    return status_problem(path, ErrorKind::kEnvironment,
                          "the monitor does not answer; is it stopped?");
  }
  auto object = nlohmann::ordered_json::parse(*answer, nullptr, false);
  const auto targets = object.is_object() ? object.find("targets") : object.end();
  if (!object.is_object() || targets == object.end() || !targets->is_array()) {
    return status_problem(path, ErrorKind::kMalformed, "expected a status, found something else");
  }
  return object;
}

}  // namespace tsomon::service
