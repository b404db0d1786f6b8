#include "monitor/fleet/postgres.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include "monitor/fleet/pause.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon::fleet {
namespace {

constexpr int kBinary = 1;

// Until when something is waited for.
class Patience {
 public:
  // Whether the socket is ready for it; false: there is no patience left.
  bool wait_for(int socket, short events) {
    pollfd state{socket, events, 0};
    while (socket >= 0) {
      if (!stopped_ && stop_asked()) {
        stopped_ = true;
        until_ = std::min(until_, Clock::now() + kAfterStop);
      }
      if (Clock::now() >= until_) {
        return false;
      }
      if (::poll(&state, 1, static_cast<int>(kLook.count())) > 0) {
        return true;
      }
    }
    return false;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point until_ = Clock::now() + std::chrono::seconds(Postgres::kSeconds);
  bool stopped_ = false;
};

// Lines of libpq, as one.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  for (char& c : text) {
    c = c == '\n' ? ' ' : c;
  }
  return printable(text);
}

// An address may hold a password, which is nobody's business.
std::string shown(const std::string& url) {
  const size_t begin = url.find("//");
  const size_t at = url.rfind('@');
  return begin == std::string::npos || at == std::string::npos || at < begin
             ? url
             : url.substr(0, begin + 2) + url.substr(at + 1);
}

}  // namespace

void Rows::Clear::operator()(pg_result* result) const { PQclear(result); }

bool Rows::is_good() const {
  const ExecStatusType status = PQresultStatus(result_.get());
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

int Rows::size() const { return PQntuples(result_.get()); }
bool Rows::is_null(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

std::string Rows::text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

int64_t Rows::number(int row, int column) const {
  const std::string digits = text(row, column);
  int64_t value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return end.ec == std::errc() ? value : 0;
}

std::string Rows::bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

uint64_t Rows::changed() const {
  const std::string_view digits = PQcmdTuples(result_.get());
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

void Postgres::Close::operator()(pg_conn* connection) const { PQfinish(connection); }

tl::unexpected<Error> Postgres::problem(const std::string& message) const {
  return tl::unexpected<Error>(Error{ErrorKind::kEnvironment, name_, {}, message});
}

Result<Postgres> Postgres::connect(const std::string& url, const Credentials& credentials) {
  char* why = nullptr;
  PQconninfoOption* const parsed = PQconninfoParse(url.c_str(), &why);
  if (parsed == nullptr) {
    const std::string message = why == nullptr ? "is no address" : one_line(why);
    PQfreemem(why);
    return tl::unexpected<Error>(Error{ErrorKind::kUsage, shown(url), {}, message});
  }
  PQconninfoFree(parsed);

  std::vector<std::pair<const char*, const char*>> given = {{"application_name", "tsomon"},
                                                            {"client_encoding", "UTF8"}};
  const auto give = [&](const char* key, const std::string& value) {
    if (!value.empty()) {
      given.emplace_back(key, value.c_str());
    }
  };
  give("user", credentials.user);
  give("password", credentials.password);
  give("sslrootcert", credentials.ca);
  give("sslcert", credentials.certificate);
  give("sslkey", credentials.key);
  if (credentials.tls || !credentials.ca.empty()) {
    given.emplace_back("sslmode", credentials.ca.empty() ? "require" : "verify-full");
  }
  // What the address says comes first, what is given overrides it.
  std::vector<const char*> keys = {"dbname"};
  std::vector<const char*> values = {url.c_str()};
  for (const auto& [key, value] : given) {
    keys.push_back(key);
    values.push_back(value);
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  Postgres made(shown(url), PQconnectStartParams(keys.data(), values.data(), kBinary));
  if (!made.settle(true)) {
    return made.problem(made.last_problem());
  }
  return made;
}

// The values of a statement, as libpq takes them.
struct Postgres::Parameters {
  Parameters(std::initializer_list<Value> values) {
    kept.reserve(values.size());
    for (const Value& value : values) {
      std::string_view bytes;
      if (const auto* number = std::get_if<int64_t>(&value)) {
        bytes = kept.emplace_back(std::to_string(*number));
      } else if (const auto* text = std::get_if<std::string_view>(&value)) {
        bytes = kept.emplace_back(*text);  // with a zero behind it
      } else {
        bytes = std::get<Bytes>(value).bytes;
      }
      texts.push_back(bytes.data());
      sizes.push_back(static_cast<int>(bytes.size()));
      forms.push_back(std::holds_alternative<Bytes>(value) ? kBinary : 0);
    }
  }
  std::vector<std::string> kept;
  std::vector<const char*> texts;
  std::vector<int> sizes;
  std::vector<int> forms;
};

bool Postgres::settle(bool is_new) {
  PGconn* const connection = connection_.get();
  Patience patience;
  PostgresPollingStatusType state = PGRES_POLLING_WRITING;
  is_silent_ = false;
  while (state == PGRES_POLLING_WRITING || state == PGRES_POLLING_READING) {
    if (PQstatus(connection) == CONNECTION_BAD) {
      return false;
    }
    if (!patience.wait_for(PQsocket(connection),
                           state == PGRES_POLLING_READING ? POLLIN : POLLOUT)) {
      is_silent_ = true;
      return false;
    }
    state = is_new ? PQconnectPoll(connection) : PQresetPoll(connection);
  }
  if (state != PGRES_POLLING_OK) {
    return false;
  }
  PQsetNoticeProcessor(
      connection, [](void*, const char*) {}, nullptr);
  PQsetnonblocking(connection, 1);
  // What nobody waits for any more is not to run on.
  const std::string sql = fmt::format("SET statement_timeout = '{}s'", kSeconds);
  return ask(sql.c_str(), {}, Form::kText).is_good();
}

bool Postgres::begin_anew() { return PQresetStart(connection_.get()) == 1 && settle(false); }

Rows Postgres::ask(const char* sql, const Parameters& parameters, Form form) {
  PGconn* const connection = connection_.get();
  Patience patience;
  bool runs = PQsendQueryParams(connection, sql, static_cast<int>(parameters.texts.size()), nullptr,
                                parameters.texts.data(), parameters.sizes.data(),
                                parameters.forms.data(), form == Form::kBinary ? kBinary : 0) == 1;
  for (int left = 1; runs && left == 1;) {
    left = PQflush(connection);
    if (left == 1) {
      is_silent_ = !patience.wait_for(PQsocket(connection), POLLIN | POLLOUT);
      runs = !is_silent_ && PQconsumeInput(connection) == 1;
    }
  }
  while (runs && PQisBusy(connection) == 1) {
    is_silent_ = !patience.wait_for(PQsocket(connection), POLLIN);
    runs = !is_silent_ && PQconsumeInput(connection) == 1;
  }
  if (!runs) {
    return Rows();
  }
  Rows rows(PQgetResult(connection));
  for (PGresult* more = PQgetResult(connection); more != nullptr; more = PQgetResult(connection)) {
    PQclear(more);
  }
  return rows;
}

std::string Postgres::last_problem() const {
  return is_silent_ ? "does not answer" : one_line(PQerrorMessage(connection_.get()));
}

Result<Rows> Postgres::run(const char* sql, std::initializer_list<Value> values, Form form) {
  const Parameters parameters(values);
  for (int time = 0; time < 2; ++time) {
    if (is_silent_ || PQstatus(connection_.get()) != CONNECTION_OK) {
      if (!begin_anew()) {
        break;
      }
    }
    Rows rows = ask(sql, parameters, form);
    if (rows.is_good()) {
      return rows;
    }
    if (is_silent_ || PQstatus(connection_.get()) == CONNECTION_OK) {
      break;
    }
  }
  return problem(last_problem());
}

std::string Postgres::server() const {
  const char* const version = PQparameterStatus(connection_.get(), "server_version");
  return fmt::format("PostgreSQL {}", version == nullptr ? "" : printable(version));
}

}  // namespace tsomon::fleet
