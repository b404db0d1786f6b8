#include "monitor/fleet/open_fleet.h"

#include <fmt/format.h>

#include "monitor/fleet/nats_fleet.h"
#include "monitor/fleet/postgres_fleet.h"
#include "tso/support/printable.h"

namespace tsomon::fleet {

const char* name_of(State state) {
  switch (state) {
    case State::kWaiting:
      return "waiting";
    case State::kRunning:
      return "running";
    case State::kDone:
      return "done";
    case State::kParked:
      return "parked";
    case State::kUnknown:
      break;
  }
  return "unknown";
}

Result<std::unique_ptr<Fleet>> open_fleet(const std::string& url, const Credentials& credentials) {
  if (url.starts_with("postgresql://") || url.starts_with("postgres://")) {
    return open_postgres_fleet(url, credentials);
  }
  if (url.starts_with("nats://") || url.starts_with("tls://")) {
    return open_nats_fleet(url, credentials);
  }
  return fail(ErrorKind::kUsage,
              fmt::format("expected postgresql://HOST/DATABASE or nats://HOST:PORT, found {}",
                          printable(url)));
}

}  // namespace tsomon::fleet
