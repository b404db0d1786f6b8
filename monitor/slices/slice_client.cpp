#include "monitor/slices/slice_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "monitor/process/control_socket.h"
#include "monitor/process/descriptor.h"
#include "monitor/process/descriptor_message.h"
#include "monitor/process/process_access.h"
#include "monitor/process/running_programs.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPatience{2000};
constexpr milliseconds kLook{50};                  // between looks whether to stop
constexpr uint64_t kMostSaid = uint64_t{1} << 40;  // of any number, which a program may make up

tl::unexpected<Error> problem(pid_t pid, std::string message,
                              ErrorKind kind = ErrorKind::kEnvironment) {
  return tl::unexpected<Error>(Error{kind, fmt::format("process {}", pid), {}, std::move(message)});
}

// Also where its parent has not asked for its status yet.
bool has_ended(pid_t pid) { return attach::start_of(pid) == 0; }

const char* word_of(WatchedFunctions::Which which) {
  return which == WatchedFunctions::Which::kOnly  ? "only"
         : which == WatchedFunctions::Which::kBut ? "but"
                                                  : "first";
}

bool send_request(const Descriptor& socket, const SliceRequest& request, int file) {
  std::string text = fmt::format("slice {}", request.time.count());
  if (request.most_bytes != 0) {
    text += fmt::format(" bytes={}", request.most_bytes);
  }
  const WatchedFunctions& functions = request.functions;
  const size_t count = std::min(functions.entries.size(), WatchedFunctions::kMost);
  if (functions.which != WatchedFunctions::Which::kAll && count != 0) {
    text += fmt::format(" {}={}", word_of(functions.which), count);
    text.push_back('\0');
    text.append(reinterpret_cast<const char*>(functions.entries.data()), count * sizeof(uint64_t));
  }
  return send_message(socket.get(), text.data(), text.size(), file);
}

// Empty: the other side is gone, or says nothing until then. From `ends` on, or once a stop is asked for, the slice is to end.
std::string answer(const Descriptor& socket, Clock::time_point until, Clock::time_point ends,
                   bool* stopped) {
  for (;;) {
    if (!*stopped && (stop_asked() || Clock::now() >= ends)) {
      *stopped = true;
      ::shutdown(socket.get(), SHUT_WR);
      until = until == Clock::time_point::max() ? Clock::now() + kPatience : until;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
    const auto look = *stopped || ends - Clock::now() > kLook
                          ? kLook
                          : std::chrono::ceil<milliseconds>(ends - Clock::now());
    pollfd state{socket.get(), POLLIN, 0};
    if (left.count() <= 0) {
      return {};
    }
    if (::poll(&state, 1, static_cast<int>(std::clamp(look, milliseconds(0), left).count())) > 0) {
      std::array<char, 512> text{};
      const ssize_t size = ::recv(socket.get(), text.data(), text.size(), 0);
      return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : std::string();
    }
  }
}

uint64_t field(std::string_view text, std::string_view name) {
  uint64_t value = 0;
  const size_t at = text.find(name);
  if (at != std::string_view::npos) {
    std::from_chars(text.data() + at + name.size(), text.data() + text.size(), value);
  }
  return value;
}

}  // namespace

bool can_be_asked(pid_t pid, const std::string& folder) {
  return attach::connect_to_control(pid, folder).has_value();
}

Result<SliceEnd> record_slice(const SliceRequest& request, int file) {
  const pid_t pid = request.pid;
  auto socket = request.access->connect(pid, request.folder);
  if (!socket) {
    return tl::unexpected<Error>(socket.error());
  }
  if (!send_request(*socket, request, file)) {
    return problem(pid, fmt::format("cannot be asked: {}", std::strerror(errno)));
  }
  // Units that are open get some time, and the clocks are compared.
  const auto grace = std::min<std::chrono::microseconds>(request.time, std::chrono::seconds(1));
  bool stopped = false;
  // It may say anything, but each of these once: nobody waits for it for ever.
  bool may_wait = request.functions.which == WatchedFunctions::Which::kFirst;
  bool begun = false;
  const Clock::time_point sent = Clock::now();
  Clock::time_point ends = Clock::time_point::max();
  for (Clock::time_point until = Clock::now() + kPatience;;) {
    const std::string said = answer(*socket, until, ends, &stopped);
    if (said == "armed" && may_wait) {
      may_wait = false;
      until = Clock::time_point::max();
      ends = request.patience.count() == 0 ? ends : Clock::now() + request.patience;
    } else if (said == "begun" && !begun) {
      begun = true;
      may_wait = false;
      ends = Clock::time_point::max();
      until = Clock::now() + request.time + grace + kPatience;
    } else if (said.rfind("ended ", 0) == 0) {
      const auto most = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - sent);
      return SliceEnd{std::chrono::microseconds(
                          std::min(field(said, "watched="), static_cast<uint64_t>(most.count()))),
                      std::min(field(said, "threads="), kMostSaid),
                      std::min(field(said, "cut="), kMostSaid),
                      std::min(field(said, "bytes="), kMostSaid)};
    } else if (said.rfind("error ", 0) == 0) {
      return problem(pid, printable(said.substr(sizeof "error " - 1)));
    } else {
      return problem(pid, has_ended(pid) ? "ended while it was watched"
                                         : "does not answer: is it stopped, or another user's?");
    }
  }
}

}  // namespace tsomon
