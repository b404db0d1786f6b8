// Load on a memcached at 127.0.0.1, with every reply checked, while a command runs in the middle.
//
//   memcached_load PORT CONNECTIONS SECONDS COMMAND...
//
// SECONDS of load, then COMMAND beside the load until it ends, then SECONDS again. Each connection
// has a thread. It sets and gets keys of its own, whose values it knows, and keys that all use,
// whose values say by themselves whether they are whole; and it increments a counter that must add
// up in the end. Prints a line for each of the three parts; the exit status is 1 when a request
// failed, else 0. The command's own status is printed.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> stop{false};
std::atomic<uint64_t> requests{0};
std::atomic<uint64_t> failures{0};
std::atomic<uint64_t> increments{0};

void report_failure(const std::string& what) {
  static std::mutex lock;
  if (failures.fetch_add(1) < 10) {
    const std::lock_guard<std::mutex> guard(lock);
    std::fprintf(stderr, "memcached_load: %s\n", what.c_str());
  }
}

// One connection; any error is told once and ends it.
class Connection {
 public:
  explicit Connection(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{20, 0};
    const int on = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in server{};
    server.sin_family = AF_INET;
    server.sin_port = htons(port);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    good_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&server), sizeof server) == 0;
    if (!good_) {
      report_failure(std::string("cannot connect: ") + std::strerror(errno));
    }
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(socket_); }
  bool good() const { return good_; }

  void set(const std::string& key, const std::string& value) {
    const std::string reply =
        request("set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n");
    expect(reply == "STORED", "set " + key, reply);
  }

  // nullopt: not there, or a failure that was told.
  std::optional<std::string> get(const std::string& key) {
    const std::string head = request("get " + key + "\r\n");
    if (head == "END") {
      return std::nullopt;
    }
    const std::string expected = "VALUE " + key + " 0 ";
    if (!expect(head.compare(0, expected.size(), expected) == 0, "get " + key, head)) {
      return std::nullopt;
    }
    const size_t length = std::strtoul(head.c_str() + expected.size(), nullptr, 10);
    std::string value = line();
    expect(value.size() == length, "length of " + key, value);
    const std::string end = line();
    expect(end == "END", "end of " + key, end);
    return value;
  }

  void increment(const std::string& key) {
    const std::string reply = request("incr " + key + " 1\r\n");
    if (expect(!reply.empty() && reply.find_first_not_of("0123456789") == std::string::npos,
               "incr " + key, reply)) {
      increments.fetch_add(1);
    }
  }

  bool expect(bool right, const std::string& what, const std::string& found) {
    if (!right && good_) {
      report_failure(what + ": unexpected \"" + found + "\"");
    }
    return right;
  }

 private:
  std::string request(const std::string& text) {
    if (!good_) {
      return {};
    }
    requests.fetch_add(1, std::memory_order_relaxed);
    if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(text.size())) {
      broken("send");
      return {};
    }
    return line();
  }

  // Up to the next end of line, without it; no value has one inside.
  std::string line() {
    while (good_) {
      const size_t end = received_.find("\r\n");
      if (end != std::string::npos) {
        std::string result = received_.substr(0, end);
        received_.erase(0, end + 2);
        return result;
      }
      std::array<char, 4096> buffer{};
      const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), 0);
      if (size <= 0) {
        broken(size == 0 ? "the server closed the connection" : "recv");
        return {};
      }
      received_.append(buffer.data(), static_cast<size_t>(size));
    }
    return {};
  }

  void broken(const std::string& what) {
    report_failure(what + ": " + std::strerror(errno));
    good_ = false;
  }

  int socket_;
  bool good_ = false;
  std::string received_;
};

// A number and as many repetitions of it as fit: a mixture of two values is not one.
std::string value_of(uint64_t number) {
  const std::string word = std::to_string(number) + ",";
  std::string value;
  while (value.size() < 40 + number % 200) {
    value += word;
  }
  return value;
}

bool is_whole(const std::string& value) {
  return value == value_of(std::strtoull(value.c_str(), nullptr, 10));
}

void drive(uint16_t port, int number) {
  constexpr uint64_t kOwnKeys = 64;
  constexpr uint64_t kSharedKeys = 16;
  Connection connection(port);
  std::array<uint64_t, kOwnKeys> own{};  // what was set last; 0: nothing
  const std::string mine = "own" + std::to_string(number) + "_";
  for (uint64_t round = 1; connection.good() && !stop.load(std::memory_order_relaxed); ++round) {
    const uint64_t draw = (round * 2654435761U) >> 7;
    const uint64_t place = draw % kOwnKeys;
    const std::string own_key = mine + std::to_string(place);
    const std::string shared_key = "shared" + std::to_string(draw % kSharedKeys);
    switch (round % 5) {
      case 0:
        connection.set(own_key, value_of(round));
        own[place] = round;
        break;
      case 1:
        connection.set(shared_key, value_of(round));
        break;
      case 2:
        connection.increment("counter");
        break;
      case 3:
        if (const auto value = connection.get(shared_key)) {
          connection.expect(is_whole(*value), shared_key, *value);
        }
        break;
      default:
        const auto value = connection.get(own_key);
        connection.expect(own[place] == 0 ? !value : value == value_of(own[place]), own_key,
                          value.value_or("nothing"));
    }
  }
}

class Part {
 public:
  explicit Part(const char* name) : name_(name) {}
  void print() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const uint64_t count = requests.load() - requests_;
    std::printf("%s: %.1f s, %llu requests, %.0f per second\n", name_, seconds,
                static_cast<unsigned long long>(count), static_cast<double>(count) / seconds);
    std::fflush(stdout);
  }

 private:
  const char* name_;
  Clock::time_point begin_ = Clock::now();
  uint64_t requests_ = requests.load();
};

void run_command(char** command) {
  pid_t pid = 0;
  if (const int error = ::posix_spawnp(&pid, command[0], nullptr, nullptr, command, environ)) {
    report_failure(std::string(command[0]) + ": " + std::strerror(error));
    return;
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  std::printf("command: exit status %d\n",
              WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void check_counter(uint16_t port) {
  Connection connection(port);
  const std::string counted = connection.get("counter").value_or("nothing");
  connection.expect(counted == std::to_string(increments.load()),
                    "the counter after " + std::to_string(increments.load()) + " increments",
                    counted);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: memcached_load PORT CONNECTIONS SECONDS COMMAND...\n");
    return 2;
  }
  const auto port = static_cast<uint16_t>(std::atoi(argv[1]));
  const int connections = std::atoi(argv[2]);
  const std::chrono::duration<double> alone(std::atof(argv[3]));
  {
    Connection connection(port);
    connection.set("counter", "0");
  }
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(connections));
  for (int i = 0; i < connections; ++i) {
    threads.emplace_back([port, i] { drive(port, i); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until all are connected
  const Part before("before");
  std::this_thread::sleep_for(alone);
  before.print();
  const Part during("during");
  run_command(argv + 4);
  during.print();
  const Part after("after");
  std::this_thread::sleep_for(alone);
  after.print();
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  check_counter(port);
  std::printf("failed: %llu\n", static_cast<unsigned long long>(failures.load()));
  return failures.load() == 0 ? 0 : 1;
}
