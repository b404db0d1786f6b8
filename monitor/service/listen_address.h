// Where the service can be asked: a port of this machine, or a socket in a folder.
//
// Form        "127.0.0.1:PORT" (all of 127.0.0.0/8), "localhost:PORT", "[::1]:PORT", "unix:PATH". PORT 0 is a free one. Other
//             machines are no choice: what the numbers say is nobody's business there, and a proxy can ask for them.
// Errors      kUsage: what was expected and what was found.
// Complexity  O(length). Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "tso/support/result.h"

namespace tsomon::service {

struct ListenAddress {
  std::string path;  // of a Unix socket; empty: it is a port of
  std::string host;  // ... this address, "127.0.0.1" or "::1"
  uint16_t port = 0;

  bool is_unix() const { return !path.empty(); }
  bool operator==(const ListenAddress&) const = default;
};

inline constexpr const char* kListenForm = "\"127.0.0.1:PORT\", \"[::1]:PORT\" or \"unix:PATH\"";

Result<ListenAddress> parse_listen_address(const std::string& text);
// As it is parsed.
std::string listen_text(const ListenAddress& address);

}  // namespace tsomon::service
