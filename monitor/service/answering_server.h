// Answers requests at a socket, in a thread of its own, whoever asks and however.
//
// Purpose     One request, one answer, and the connection ends. The same for metrics by HTTP (http_metrics.h) and for the status
//             (status.h): prometheus-cpp's Exposer knows ports only, brings a second registry beside metrics.h, and
//             several threads of a whole web server, for a text that is there already.
// Bounds      kConnections at a time, kRequestBytes of a request, kPatience for all of a connection. When there are more, who
//             has been there for kGrace makes room for the next one, the longest first; others wait in the kernel. So
//             many who say nothing do not keep those away who ask.
// Peers       At a Unix socket: this user, or root; others are cut off.
// Never       blocks anybody: who is asked (`Answer`) must have the answer at hand.
// Errors      No thread: std::system_error. All else ends a connection.
// Thread-safety: one owner; the counters can be read at any time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "monitor/process/descriptor.h"
#include "monitor/service/local_socket.h"

namespace tsomon::service {

class AnsweringServer {
 public:
  static constexpr size_t kConnections = 32;
  static constexpr size_t kRequestBytes = 8192;
  static constexpr std::chrono::milliseconds kPatience{5000};
  static constexpr std::chrono::milliseconds kGrace{250};

  // To what has come so far, at most kRequestBytes. Nothing: more is to come; without more it is cut off.
  using Answer = std::function<std::optional<std::string>(std::string_view request)>;

  AnsweringServer(ListeningSocket socket, Answer answer);
  AnsweringServer(const AnsweringServer&) = delete;
  AnsweringServer& operator=(const AnsweringServer&) = delete;
  ~AnsweringServer();  // cuts all off

  const ListenAddress& address() const { return socket_.address(); }
  uint64_t answered() const { return answered_; }
  uint64_t cut_off() const { return cut_off_; }  // before they had their answer

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    enum class Stage { kAsks, kIsAnswered, kLeaves };
    Descriptor socket;
    Clock::time_point since;
    Clock::time_point until;
    Stage stage = Stage::kAsks;
    std::string text;  // the request, then the answer
    size_t sent = 0;
  };

  void work();
  int wait(Clock::time_point now, bool accepting);
  void accept_all(Clock::time_point now);
  bool go_on(Connection& one);
  bool read(Connection& one);
  bool write(Connection& one);
  void cut(std::list<Connection>::iterator one);

  const ListeningSocket socket_;
  const Answer answer_;
  Descriptor stop_;                    // readable: the end
  std::list<Connection> connections_;  // the oldest one first
  Clock::time_point accepts_again_;    // there were no descriptors left
  std::atomic<uint64_t> answered_{0};
  std::atomic<uint64_t> cut_off_{0};
  std::thread thread_;
};

}  // namespace tsomon::service
