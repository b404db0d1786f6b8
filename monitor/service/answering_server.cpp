#include "monitor/service/answering_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "monitor/service/quiet_thread.h"

namespace tsomon::service {
namespace {

constexpr std::chrono::milliseconds kToLeave{500};
constexpr std::chrono::milliseconds kWithoutDescriptors{100};

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

AnsweringServer::AnsweringServer(ListeningSocket socket, Answer answer)
    : socket_(std::move(socket)),
      answer_(std::move(answer)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_.is_open()) {
    throw std::system_error(errno, std::generic_category(), "a server");
  }
  thread_ = quiet_thread([this] { work(); });
}

AnsweringServer::~AnsweringServer() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void AnsweringServer::cut(std::list<Connection>::iterator one) {
  cut_off_ += one->stage != Connection::Stage::kLeaves ? 1 : 0;
  connections_.erase(one);
}

void AnsweringServer::work() {
  for (;;) {
    Clock::time_point now = Clock::now();
    for (auto one = connections_.begin(); one != connections_.end();) {
      const auto each = one++;
      if (each->until <= now) {
        cut(each);
      }
    }
    const bool room =
        connections_.size() < kConnections || connections_.front().since + kGrace <= now;
    const bool accepting = room && accepts_again_ <= now;
    std::vector<pollfd> polled{{stop_.get(), POLLIN, 0},
                               {accepting ? socket_.get() : -1, POLLIN, 0}};
    for (const Connection& each : connections_) {
      polled.push_back(
          {each.socket.get(),
           static_cast<short>(each.stage == Connection::Stage::kIsAnswered ? POLLOUT : POLLIN), 0});
    }
    if (::poll(polled.data(), polled.size(), wait(now, accepting)) < 0) {
      std::this_thread::sleep_for(kWithoutDescriptors);  // no memory
      continue;
    }
    if (polled[0].revents != 0) {
      return;
    }
    size_t at = 2;
    for (auto one = connections_.begin(); one != connections_.end(); ++at) {
      const auto each = one++;
      bool stays = true;
      try {
        stays = polled[at].revents == 0 || go_on(*each);
      } catch (const std::exception&) {  // no memory
        stays = false;
      }
      if (!stays) {
        cut(each);
      }
    }
    if (polled[1].revents != 0) {
      accept_all(Clock::now());
    }
  }
}

// Milliseconds until something is to be done though nobody says anything; -1: nothing is.
int AnsweringServer::wait(Clock::time_point now, bool accepting) {
  Clock::time_point until = Clock::time_point::max();
  for (const Connection& each : connections_) {
    until = std::min(until, each.until);
  }
  if (!accepting) {
    until = std::min(until, std::max(accepts_again_, connections_.empty()
                                                         ? accepts_again_
                                                         : connections_.front().since + kGrace));
  }
  if (until == Clock::time_point::max()) {
    return -1;
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count() + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 1, kPatience.count()));
}

void AnsweringServer::accept_all(Clock::time_point now) {
  for (size_t i = 0; i < kConnections; ++i) {
    if (connections_.size() >= kConnections && connections_.front().since + kGrace > now) {
      return;
    }
    Descriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (!would_block(errno) && errno != ECONNABORTED) {
        accepts_again_ = now + kWithoutDescriptors;
      }
      return;
    }
    if (socket_.address().is_unix() && !peer_is_trusted(socket.get())) {
      ++cut_off_;
      continue;
    }
    if (connections_.size() >= kConnections) {
      cut(connections_.begin());
    }
    Connection& one = connections_.emplace_back();
    one.socket = std::move(socket);
    one.since = now;
    one.until = now + kPatience;
  }
}

// False: it is over.
bool AnsweringServer::go_on(Connection& one) {
  return one.stage == Connection::Stage::kIsAnswered ? write(one) : read(one);
}

bool AnsweringServer::read(Connection& one) {
  std::array<char, kRequestBytes> bytes{};
  const size_t room =
      one.stage == Connection::Stage::kLeaves ? bytes.size() : kRequestBytes - one.text.size();
  const ssize_t size = ::recv(one.socket.get(), bytes.data(), room, 0);
  if (size <= 0) {
    return size < 0 && would_block(errno);
  }
  if (one.stage == Connection::Stage::kLeaves) {
    return true;  // what is not read when a connection ends would take the answer with it
  }
  one.text.append(bytes.data(), static_cast<size_t>(size));
  auto answer = answer_(one.text);
  if (!answer) {
    return one.text.size() < kRequestBytes;
  }
  one.text = std::move(*answer);
  one.stage = Connection::Stage::kIsAnswered;
  return write(one);
}

bool AnsweringServer::write(Connection& one) {
  while (one.sent < one.text.size()) {
    const ssize_t size = ::send(one.socket.get(), one.text.data() + one.sent,
                                one.text.size() - one.sent, MSG_NOSIGNAL);
    if (size < 0) {
      return would_block(errno);
    }
    one.sent += static_cast<size_t>(size);
  }
  ++answered_;
  one.stage = Connection::Stage::kLeaves;
  one.until = std::min(one.until, Clock::now() + kToLeave);
  one.text = {};
  return ::shutdown(one.socket.get(), SHUT_WR) == 0;
}

}  // namespace tsomon::service
