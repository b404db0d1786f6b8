// What a running service shows of itself: addresses, sockets, HTTP, rates, the status as JSON and as text.
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "monitor/service/answering_server.h"
#include "monitor/service/http_metrics.h"
#include "monitor/service/local_socket.h"
#include "monitor/service/observation.h"
#include "monitor/service/status.h"
#include "monitor/service/status_client.h"
#include "monitor/service/status_text.h"
#include "monitor/service/watcher.h"
#include "tests/monitor/folder.h"

using namespace tsomon;
using namespace tsomon::service;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

ListenAddress address_of(const std::string& text) { return parse_listen_address(text).value(); }

Descriptor connect_to_port(uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0);
  return socket;
}

// All that comes until the end; a minute is more than any bound of the server.
std::string rest_of(const Descriptor& socket) {
  ::fcntl(socket.get(), F_SETFL, 0);
  const timeval most{60, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  std::string text;
  std::array<char, 4096> bytes{};
  for (;;) {
    const ssize_t size = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (size <= 0) {
      return text;
    }
    text.append(bytes.data(), static_cast<size_t>(size));
  }
}

void put(const Descriptor& socket, const std::string& text) {
  CHECK(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(text.size()));
}

// Answers a line with itself.
AnsweringServer::Answer echo() {
  return [](std::string_view request) {
    return request.ends_with('\n') ? std::optional(std::string(request)) : std::nullopt;
  };
}

}  // namespace

TEST_CASE("addresses of this machine alone") {
  CHECK(address_of("127.0.0.1:9464") == ListenAddress{{}, "127.0.0.1", 9464});
  CHECK(address_of("127.3.2.1:0").host == "127.3.2.1");
  CHECK(address_of("localhost:1").host == "127.0.0.1");
  CHECK(address_of("[::1]:65535") == ListenAddress{{}, "::1", 65535});
  CHECK(address_of("unix:/run/a b").path == "/run/a b");
  CHECK(address_of("unix:a").is_unix());
  for (const char* const text : {"127.0.0.1:9464", "[::1]:65535", "unix:/run/a b"}) {
    CHECK(listen_text(address_of(text)) == text);
  }
  for (const char* const text : {"",
                                 "9464",
                                 ":9464",
                                 "0.0.0.0:9464",
                                 "10.0.0.1:9464",
                                 "[::]:9464",
                                 "::1:9464",
                                 "[::1]",
                                 "127.0.0.1",
                                 "127.0.0.1:",
                                 "127.0.0.1:65536",
                                 "127.0.0.1:-1",
                                 "127.0.0.1: 1",
                                 "127.1:80",
                                 "example.org:80",
                                 "unix:",
                                 "unix:/run/",
                                 "Unix:/run/a",
                                 "[::1:80",
                                 "\x1b:1"}) {
    CAPTURE(text);
    const auto none = parse_listen_address(text);
    REQUIRE_FALSE(none);
    CHECK(none.error().kind == ErrorKind::kUsage);
    CHECK(none.error().message.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a Unix socket is its owner's, replaces one that nobody listens at, and goes") {
  const testing::Folder folder;
  const std::string path = folder.write("x", "") + ".sock";
  const ListenAddress address{path, {}, 0};
  struct stat status {};
  {
    const auto first = ListeningSocket::open(address);
    REQUIRE(first);
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK(S_ISSOCK(status.st_mode));
    CHECK((status.st_mode & 0777) == 0600);
    CHECK(ListeningSocket::open(address).error().message == "somebody else listens there");
    const auto connected = connect_to_socket(path);
    REQUIRE(connected);
    CHECK(peer_is_trusted(connected->get()));
    // Of one that was put there meanwhile nothing is removed.
    std::filesystem::rename(path, path + ".old");
    const auto second = ListeningSocket::open(address);
    REQUIRE(second);
    std::filesystem::rename(path, path + ".new");
    std::filesystem::rename(path + ".old", path);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(std::filesystem::exists(path + ".new"));  // not under its name any more
  std::filesystem::rename(path + ".new", path);
  CHECK(connect_to_socket(path).error().kind == ErrorKind::kUnreadable);
  CHECK(ListeningSocket::open(address));
  CHECK(connect_to_socket(path).error().kind == ErrorKind::kUnreadable);
  // What is no socket stays.
  const std::string file = folder.write("file", "text");
  CHECK(ListeningSocket::open({file, {}, 0}).error().message == "is there, and no socket");
  CHECK(std::filesystem::file_size(file) == 4);
  CHECK(ListeningSocket::open({path + "/none/x", {}, 0}).error().kind == ErrorKind::kEnvironment);
  std::filesystem::create_symlink("nowhere", path);
  CHECK_FALSE(ListeningSocket::open(address));
  CHECK(std::filesystem::is_symlink(path));
}

TEST_CASE("a path that is longer than an address of a socket") {
  const testing::Folder folder;
  std::string path = folder.write("x", "");
  path.resize(path.size() - 2);
  for (int i = 0; i < 8; ++i) {
    path += "/" + std::string(50, 'a');
    std::filesystem::create_directory(path);
  }
  REQUIRE(path.size() > sizeof sockaddr_un::sun_path);
  {
    const auto socket = ListeningSocket::open({path + "/s", {}, 0});
    REQUIRE(socket);
    CHECK(connect_to_socket(path + "/s"));
  }
  CHECK_FALSE(std::filesystem::exists(path + "/s"));
  const auto none = ListeningSocket::open({path + "/" + std::string(100, 'b'), {}, 0});
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::kEnvironment);
}

TEST_CASE("a port that is free, and one that is not") {
  const auto first = ListeningSocket::open(address_of("127.0.0.1:0"));
  REQUIRE(first);
  CHECK(first->address().port != 0);
  CHECK_FALSE(ListeningSocket::open(first->address()));
}

TEST_CASE("who asks is answered, however many others say nothing") {
  AnsweringServer server(ListeningSocket::open(address_of("127.0.0.1:0")).value(), echo());
  const uint16_t port = server.address().port;
  std::vector<Descriptor> silent;
  for (size_t i = 0; i < 4 * AnsweringServer::kConnections; ++i) {
    silent.push_back(connect_to_port(port));
  }
  for (int i = 0; i < 3; ++i) {
    const Descriptor one = connect_to_port(port);
    put(one, "hel");
    put(one, "lo\n");
    CHECK(rest_of(one) == "hello\n");
  }
  // The silent ones are cut off, and so is who never ends.
  CHECK(rest_of(silent.front()).empty());
  const Descriptor endless = connect_to_port(port);
  put(endless, std::string(2 * AnsweringServer::kRequestBytes, 'x'));
  CHECK(rest_of(endless).empty());
  CHECK(server.answered() == 3);
  CHECK(server.cut_off() > 0);
}

TEST_CASE("who does not read its answer waits for itself alone") {
  const testing::Folder folder;
  const std::string path = folder.write("x", "") + ".sock";
  const std::string large(size_t{4} << 20, 'a');
  AnsweringServer server(ListeningSocket::open({path, {}, 0}).value(),
                         [&](std::string_view) { return std::optional(large); });
  const auto slow = connect_to_socket(path);
  REQUIRE(slow);
  put(*slow, "x");
  for (int i = 0; i < 3; ++i) {
    const auto one = connect_to_socket(path);
    REQUIRE(one);
    put(*one, "x");
    CHECK(rest_of(*one).size() == large.size());
  }
}

TEST_CASE("requests by HTTP") {
  const auto answer = [](std::string_view request) {
    return http_metrics_answer(request, "a_total 1\n", 100);
  };
  const auto status_of = [&](std::string_view request) {
    const auto text = answer(request);
    return text ? text->substr(9, 3) : std::string("more");
  };
  CHECK(answer("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n") ==
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        "Content-Length: 10\r\nConnection: close\r\n\r\na_total 1\n");
  CHECK(status_of("GET /metrics?x=1 HTTP/1.0\n\n") == "200");
  CHECK(answer("HEAD /metrics HTTP/1.1\r\n\r\n")->ends_with("close\r\n\r\n"));
  CHECK(status_of("GET / HTTP/1.1\r\n\r\n") == "404");
  CHECK(status_of("GET /metricss HTTP/1.1\r\n\r\n") == "404");
  CHECK(status_of("POST /metrics HTTP/1.1\r\n\r\n") == "405");
  CHECK(status_of("GET /metrics SMTP\r\n\r\n") == "400");
  CHECK(status_of("GET\r\n\r\n") == "400");
  CHECK(status_of("\r\n\r\n") == "400");
  CHECK(status_of(std::string_view("\x16\x03\x01", 3)) == "400");  // TLS
  CHECK(status_of("get /metrics") == "400");
  CHECK(status_of("") == "more");
  CHECK(status_of("GE") == "more");
  CHECK(status_of("GET /metrics HTTP/1.1\r\nHost: a\r\n") == "more");
  CHECK(status_of("GET /" + std::string(95, 'a')) == "431");
  CHECK(http_metrics_answer("GET /metrics HTTP/1.1\r\n\r\n", "", 100)->substr(9, 3) == "503");
}

TEST_CASE("rates over the last seconds") {
  RateMeter meter;
  CHECK(meter.rates().seconds == 0);
  TargetCounters counters;
  const RateMeter::Time begin{};
  for (int i = 0; i <= 200; ++i) {
    counters.sampling.kinds[0].slices += i <= 100 ? 10 : 1;
    counters.seen_events += 100;
    meter.add(begin + milliseconds(100 * i), counters);
  }
  const TargetRates rates = meter.rates();
  CHECK(rates.seconds == doctest::Approx(5).epsilon(0.2));
  CHECK(rates.slices == doctest::Approx(10));
  CHECK(rates.events == doctest::Approx(1000));
  CHECK(rates.violations == 0);
}

TEST_CASE("a status in JSON, and for people") {
  ServiceStatus status;
  status.pid = 12;
  status.began = 1'000'000;
  status.time = 91'000'000;
  status.store = "st\nore";
  status.store_bytes = 3 << 20;
  status.store_bound = 16 << 20;
  status.metrics_listen = "127.0.0.1:9464";
  TargetStatus& target = status.targets.emplace_back();
  target.name = "ba\x1b[2Jnk";
  target.situation.state = TargetState::kRefused;
  target.situation.why = "cannot be \xff asked";
  target.situation.pid = 99;
  target.situation.message = "said";
  target.properties = {Property::kSerializability};
  target.sample = 0.2;
  target.counters.sampling.kinds[0].slices = 7;
  target.counters.judged_slices = 5;
  target.counters.sampling.without_threads = 2;
  target.counters.seen_events = 40;
  target.counters.lost_events = 2;
  target.counters.sampling.used = seconds(10);
  target.counters.sampling.cost = seconds(1);
  target.counters.sampling.judging = seconds(2);
  target.counters.sampling.kinds[0].watched = seconds(1);
  target.counters.sampling.elapsed = seconds(10);
  target.counters.judged[{"serializability", "definite"}] = 5;
  target.counters.inconclusive["because"] = 3;
  const auto json = status_json(status);
  CHECK(json["pid"] == 12);
  CHECK(json["up_seconds"] == 90);
  CHECK(json["config"].is_null());
  const auto& one = json["targets"][0];
  CHECK(one["state"] == "refused");
  CHECK(one["events"]["sent"] == 42);
  CHECK(one["slices"]["recorded"] == 7);
  CHECK(one["share"] == doctest::Approx(0.1));
  CHECK(one["cost"]["target"] == doctest::Approx(0.1));
  CHECK(one["cost"]["monitor"] == doctest::Approx(0.2));
  CHECK(one["max_overhead"].is_null());
  const std::string text = status_text(json);
  CAPTURE(text);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("ba\\x1b[2Jnk: refused process 99 since") != std::string::npos);
  CHECK(text.find("7: 5 judged, 2 without threads") != std::string::npos);
  CHECK(text.find("42 sent: 40 seen, 2 lost") != std::string::npos);
  CHECK(text.find("because (3)") != std::string::npos);
  CHECK(text.find("http://127.0.0.1:9464/metrics") != std::string::npos);
  for (const size_t width : {0, 1, 20, 79, 500}) {
    for (const std::string& line : top_lines(json, width)) {
      CHECK((width == 0 || line.size() <= width));
    }
  }
  // Of another version: whatever is there.
  for (const char* const other :
       {"{}", R"({"targets": [1, "a", {}, {"name": 7, "pid": -1, "slices": []}], "store": 3})",
        R"({"targets": [{"verdicts": 1, "inconclusive": "x", "last_message": 4}]})"}) {
    const auto strange = nlohmann::ordered_json::parse(other);
    CHECK_FALSE(status_text(strange).empty());
    CHECK(top_lines(strange, 80).size() >= 4);
  }
}

TEST_CASE("the status of a service with nobody to watch, at the socket in its store") {
  const testing::Folder folder;
  const std::string store = folder.write("x", "") + ".store";
  const auto nobody = ask_status(store);
  REQUIRE_FALSE(nobody);
  CHECK(nobody.error().kind == ErrorKind::kUnreadable);
  std::vector<std::string> messages;
  const std::string configuration = "[service]\nstore = " + Watcher::quoted(store) +
                                    "\nmetrics_listen = \"127.0.0.1:0\"\n[[target]]\nname = "
                                    "\"no\\\"body\"\nprogram = \"tsomon_no_such_program\"\n";
  Watcher watcher(configuration, {{}, [&](const std::string& text) { messages.push_back(text); }});
  CHECK(watcher.targets().empty());
  CHECK(watcher.status().empty());
  REQUIRE(watcher.start());
  CHECK_FALSE(watcher.start());
  CHECK_FALSE(watcher.is_over());
  {
    const auto status = ask_status(store);
    REQUIRE(status);
    CHECK((*status)["pid"] == ::getpid());
    CHECK((*status)["targets"][0]["name"] == "no\"body");
    CHECK((*status)["targets"][0]["state"] == "waiting");
    const auto at = address_of((*status)["metrics_listen"].get<std::string>());
    const Descriptor scrape = connect_to_port(at.port);
    put(scrape, "GET /metrics HTTP/1.1\r\n\r\n");
    const std::string metrics = rest_of(scrape);
    CHECK(metrics.find("200 OK") != std::string::npos);
    CHECK(metrics.find("tsomon_watching{target=\"no\\\"body\"} 0\n") != std::string::npos);
    // Another line is answered, too, and says what was expected.
    const auto odd = connect_to_socket(store + "/status.sock");
    REQUIRE(odd);
    put(*odd, "\xff\x01 status\n");
    CHECK(rest_of(*odd) == "{\"error\":\"expected the line status\"}\n");
  }
  // The store is one watcher's at a time.
  Watcher other(configuration, {});
  CHECK_FALSE(other.start());
  REQUIRE(other.errors().size() == 1);
  watcher.stop();
  watcher.stop();
  CHECK(watcher.is_over());
  REQUIRE(watcher.targets().size() == 1);
  CHECK(watcher.targets()[0].state == "over");
  CHECK(watcher.targets()[0].counters.slices == 0);
  CHECK_FALSE(std::filesystem::exists(store + "/status.sock"));
  CHECK_FALSE(ask_status(store));
  CHECK_FALSE(watcher.start());
  CHECK(messages.empty());
}

TEST_CASE("a watcher leaves the program's signals alone, and says what is wrong") {
  sigset_t before;
  sigset_t after;
  struct sigaction pipe_before {};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ::sigaction(SIGPIPE, nullptr, &pipe_before);
  const testing::Folder folder;
  const std::string store = folder.write("x", "") + ".store";
  Watcher watcher("[service]\nstore = " + Watcher::quoted(store) +
                      "\n[[target]]\nname = \"a\"\npid = 4194000\n",
                  {});
  REQUIRE(watcher.start());
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    CHECK(::sigismember(&before, number) == ::sigismember(&after, number));
  }
  struct sigaction pipe {};
  ::sigaction(SIGPIPE, nullptr, &pipe);
  CHECK((pipe.sa_handler == pipe_before.sa_handler));
  // Its only target is not there, which ends it.
  for (int i = 0; i < 600 && !watcher.is_over(); ++i) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  CHECK(watcher.is_over());
  Watcher wrong("[service]\nmetrics_listen = '0.0.0.0:80'\n", {});
  CHECK_FALSE(wrong.start());
  REQUIRE(wrong.errors().size() == 3);
  CHECK(wrong.errors()[2].starts_with("configuration:2:18: service.metrics_listen: expected "));
}
