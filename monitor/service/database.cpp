#include "monitor/service/database.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

constexpr int kBusyMilliseconds = 5000;

using Prepared = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

int bind(sqlite3_stmt* statement, int at, const Database::Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    return sqlite3_bind_int64(statement, at, *number);
  }
  const auto text = std::get<std::string_view>(value);
  return sqlite3_bind_text64(statement, at, text.empty() ? "" : text.data(), text.size(),
                             SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace

int64_t DatabaseRow::number(int column) const { return sqlite3_column_int64(statement_, column); }

std::string DatabaseRow::text(int column) const {
  const void* const bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string()
                          : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

tl::unexpected<Error> Database::problem(int code) const {
  const std::string said =
      printable(connection_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(connection_.get()));
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      return tl::unexpected<Error>(
          Error{ErrorKind::kDamaged, path_, {}, fmt::format("is damaged: {}", said)});
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return tl::unexpected<Error>(
          Error{ErrorKind::kUnreadable, path_, {}, fmt::format("cannot be opened: {}", said)});
    default:
      return tl::unexpected<Error>(Error{ErrorKind::kEnvironment, path_, {}, said});
  }
}

Result<Database> Database::open(const std::string& path, Access access) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  flags |= access == Access::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  flags |= access == Access::kMake ? SQLITE_OPEN_CREATE : 0;
  // A link in its place is somebody else's; what leads to its folder may have some.
  flags |= SQLITE_OPEN_NOFOLLOW;
  std::error_code error;
  const std::filesystem::path given(path);
  const auto folder = std::filesystem::canonical(
      given.has_parent_path() ? given.parent_path() : std::filesystem::path("."), error);
  const std::string place =
      error || path == ":memory:" ? path : (folder / given.filename()).string();
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(place.c_str(), &connection, flags, nullptr);
  Database database(path, connection);
  if (code != SQLITE_OK) {
    return database.problem(code);
  }
  sqlite3_busy_timeout(connection, kBusyMilliseconds);
  sqlite3_extended_result_codes(connection, 1);
  // Nothing in the file is more than data.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return database;
}

Result<void> Database::run(const char* sql, std::initializer_list<Value> values,
                           const std::function<void(const DatabaseRow&)>& each) {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(connection_.get(), sql, -1, &statement, nullptr);
  const Prepared prepared(statement, sqlite3_finalize);
  int at = 0;
  for (const Value& value : values) {
    code = code == SQLITE_OK ? bind(statement, ++at, value) : code;
  }
  if (code != SQLITE_OK) {
    return problem(code);
  }
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    if (each) {
      each(DatabaseRow(statement));
    }
  }
  return code == SQLITE_DONE ? Result<void>() : problem(code);
}

Result<void> Database::run_all(const char* sql) {
  const int code = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Result<void>() : problem(code);
}

Result<int64_t> Database::number(const char* sql, std::initializer_list<Value> values) {
  std::optional<int64_t> first;
  return run(sql, values, [&](const DatabaseRow& row) { first = first ? first : row.number(0); })
      .map([&] { return first.value_or(0); });
}

Result<std::string> Database::text(const char* sql) {
  std::optional<std::string> first;
  return run(sql, {}, [&](const DatabaseRow& row) { first = first ? first : row.text(0); })
      .map([&] { return first.value_or(std::string()); });
}

int64_t Database::last_row() const { return sqlite3_last_insert_rowid(connection_.get()); }

bool Database::is_read_only() const { return sqlite3_db_readonly(connection_.get(), "main") == 1; }

Result<Transaction> Transaction::begin(Database& database) {
  return database.run("BEGIN IMMEDIATE").map([&] { return Transaction(database); });
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_ != nullptr) {
    (void)database_->run("ROLLBACK");
  }
}

Result<void> Transaction::commit() {
  const auto done = database_->run("COMMIT");
  if (done) {
    database_ = nullptr;
  }
  return done;
}

}  // namespace tsomon::service
