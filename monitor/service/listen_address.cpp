#include "monitor/service/listen_address.h"

#include <charconv>
#include <optional>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

constexpr std::string_view kUnix = "unix:";

std::optional<uint16_t> port_of(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(port)
                                                                  : std::nullopt;
}

// Of this machine alone; as it is to be bound.
std::optional<std::string> loopback(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (host == "localhost") {
    return "127.0.0.1";
  }
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) {
    constexpr uint32_t kLoopbackNet = 127;
    return ntohl(four.s_addr) >> 24 == kLoopbackNet ? std::optional(host) : std::nullopt;
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']' &&
      ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) == 1 &&
      IN6_IS_ADDR_LOOPBACK(&six)) {
    return "::1";
  }
  return std::nullopt;
}

}  // namespace

Result<ListenAddress> parse_listen_address(const std::string& text) {
  ListenAddress address;
  if (text.starts_with(kUnix) && text.size() > kUnix.size() && text.back() != '/' &&
      text.find('\0') == std::string::npos) {
    address.path = text.substr(kUnix.size());
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    const auto host = loopback(text.substr(0, colon));
    const auto port = port_of(std::string_view(text).substr(colon + 1));
    if (host && port) {
      address.host = *host;
      address.port = *port;
      return address;
    }
  }
  return fail(ErrorKind::kUsage, fmt::format("expected {}, an address of this machine alone, found "
                                             "'{}'",
                                             kListenForm, printable(text)));
}

std::string listen_text(const ListenAddress& address) {
  if (address.is_unix()) {
    return std::string(kUnix) + address.path;
  }
  const bool six = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", six ? "[" : "", address.host, six ? "]" : "", address.port);
}

}  // namespace tsomon::service
