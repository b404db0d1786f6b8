// PostgreSQL's client library, with errors as values.
//
// Again       A connection that breaks is made again, and its statement is run again, once: statements are such that this does no
//             harm (postgres_fleet.cpp).
// Waiting     kSeconds at most for a connection, and for an answer of the server; once a stop was asked for (tso/support/work.h), half
//             a second. A server that does not answer is asked over a new connection the next time.
// Errors      kUsage: the address is none. kEnvironment: all else, with what the server says.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "monitor/fleet/credentials.h"
#include "tso/support/result.h"

struct pg_conn;
struct pg_result;

namespace tsomon::fleet {

struct Bytes {
  std::string_view bytes;
};

class Rows {
 public:
  explicit Rows(pg_result* result = nullptr) : result_(result) {}
  bool is_good() const;
  int size() const;
  bool is_null(int row, int column) const;
  std::string text(int row, int column) const;
  // 0: it is none.
  int64_t number(int row, int column) const;
  std::string bytes(int row, int column) const;  // of a bytea, as Form::kBinary
  uint64_t changed() const;                      // rows

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

class Postgres {
 public:
  static constexpr int kSeconds = 20;
  using Value = std::variant<int64_t, std::string_view, Bytes>;
  enum class Form : uint8_t { kText, kBinary };  // of what it answers

  // `url`: postgresql://...
  static Result<Postgres> connect(const std::string& url, const Credentials& credentials);
  Result<Rows> run(const char* sql, std::initializer_list<Value> values = {},
                   Form form = Form::kText);
  std::string server() const;  // "PostgreSQL 15.4"

 private:
  struct Close {
    void operator()(pg_conn* connection) const;
  };
  Postgres(std::string name, pg_conn* connection)
      : name_(std::move(name)), connection_(connection) {}
  struct Parameters;
  // Whether there is a connection now.
  bool begin_anew();
  bool settle(bool is_new);
  Rows ask(const char* sql, const Parameters& parameters, Form form);
  std::string last_problem() const;
  tl::unexpected<Error> problem(const std::string& message) const;

  std::string name_;  // the address without a password
  std::unique_ptr<pg_conn, Close> connection_;
  bool is_silent_ = false;  // it was waited for in vain
};

}  // namespace tsomon::fleet
