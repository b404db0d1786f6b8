// SQLite, with errors as values.
//
// Errors      kDamaged: what the file holds is no database, or not whole. kUnreadable: it is not there, or not to be
//             opened. kEnvironment: all else, as a full disk, with what SQLite says.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "tso/support/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tsomon::service {

class DatabaseRow {
 public:
  explicit DatabaseRow(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t number(int column) const;
  std::string text(int column) const;  // whatever bytes are there

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  using Value = std::variant<int64_t, std::string_view>;
  enum class Access { kMake, kUse, kRead };

  // Nothing is read or made yet but an empty file. `path` ":memory:" has none.
  static Result<Database> open(const std::string& path, Access access);

  // One statement with its values; each(row) for what it gives.
  Result<void> run(const char* sql, std::initializer_list<Value> values = {},
                   const std::function<void(const DatabaseRow&)>& each = {});
  // Several without values.
  Result<void> run_all(const char* sql);
  // The first column of the first row; 0 without any.
  Result<int64_t> number(const char* sql, std::initializer_list<Value> values = {});
  Result<std::string> text(const char* sql);
  int64_t last_row() const;
  bool is_read_only() const;  // once something was read: the file, or what its header says

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  Database(std::string path, sqlite3* connection)
      : path_(std::move(path)), connection_(connection) {}
  tl::unexpected<Error> problem(int code) const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> connection_;
};

// All or nothing: without commit() what was done is undone.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;  // nullptr: it is over
};

}  // namespace tsomon::service
