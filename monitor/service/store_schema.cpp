#include "monitor/service/store_schema.h"

#include <array>

#include <fmt/format.h>

#include "monitor/service/store_parts.h"
#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

namespace fs = std::filesystem;

// What each version added to the one before. What is here is in stores that there are: it is not changed, a new version is
// added. Times are in microseconds since 1970.
constexpr std::array<const char*, kStoreVersion> kSteps = {
    R"(
CREATE TABLE findings (
  number INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  property TEXT NOT NULL,
  definite INTEGER NOT NULL,
  count INTEGER NOT NULL,
  slices INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  summary TEXT NOT NULL,
  json TEXT NOT NULL,
  UNIQUE (fingerprint, property));
CREATE INDEX findings_by_time ON findings (last_seen);
CREATE TABLE sightings (
  finding INTEGER NOT NULL REFERENCES findings ON DELETE CASCADE,
  target TEXT NOT NULL,
  host TEXT NOT NULL,
  build TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  PRIMARY KEY (finding, target, host, build)) WITHOUT ROWID;
CREATE TABLE slices (
  number INTEGER PRIMARY KEY,
  bytes INTEGER NOT NULL,
  taken INTEGER NOT NULL,
  target TEXT NOT NULL,
  build TEXT NOT NULL);
CREATE TABLE shown (
  finding INTEGER NOT NULL REFERENCES findings ON DELETE CASCADE,
  slice INTEGER NOT NULL REFERENCES slices ON DELETE CASCADE,
  PRIMARY KEY (finding, slice)) WITHOUT ROWID;
CREATE INDEX shown_by_slice ON shown (slice);
)",
    R"(
CREATE TABLE predicted (
  finding INTEGER PRIMARY KEY REFERENCES findings ON DELETE CASCADE);
CREATE TABLE explanations (
  finding INTEGER PRIMARY KEY REFERENCES findings ON DELETE CASCADE,
  slice INTEGER NOT NULL,
  together INTEGER NOT NULL,
  json TEXT NOT NULL);
CREATE TABLE analyses (
  slice INTEGER NOT NULL REFERENCES slices ON DELETE CASCADE,
  what TEXT NOT NULL,
  property TEXT NOT NULL,
  state INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  result TEXT NOT NULL,
  ended INTEGER NOT NULL,
  PRIMARY KEY (slice, what, property)) WITHOUT ROWID;
CREATE TABLE incidents (
  number INTEGER PRIMARY KEY,
  happened INTEGER NOT NULL,
  target TEXT NOT NULL,
  host TEXT NOT NULL,
  build TEXT NOT NULL,
  reason TEXT NOT NULL,
  slices INTEGER NOT NULL);
CREATE TABLE incident_slices (
  incident INTEGER NOT NULL REFERENCES incidents ON DELETE CASCADE,
  slice INTEGER NOT NULL REFERENCES slices ON DELETE CASCADE,
  PRIMARY KEY (incident, slice)) WITHOUT ROWID;
CREATE INDEX incidents_by_slice ON incident_slices (slice);
)"};

constexpr const char* kSchema =
    "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY "
    "name)";

// From version `from` to version `to`; 0 is an empty database.
Result<void> take_steps(Database* database, int64_t from, int64_t to) {
  Result<void> done;
  for (int64_t step = from; done && step < to; ++step) {
    done = database->run_all(kSteps[static_cast<size_t>(step)]);
  }
  return done;
}

// How the tables of a version are written down.
Result<std::string> expected_schema(int64_t version) {
  auto model = Database::open(":memory:", Database::Access::kMake);
  if (!model) {
    return tl::unexpected<Error>(model.error());
  }
  return take_steps(&*model, 0, version).and_then([&] { return model->text(kSchema); });
}

}  // namespace

Result<void> set_up_connection(Database* database) {
  // A commit is on the disk when it returns.
  return database->run_all(
      "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 1048576;");
}

Result<int64_t> examine_store(Database* database, const fs::path& file, bool writable) {
  const auto version = database->number("PRAGMA user_version");
  if (!version) {
    return tl::unexpected<Error>(version.error());
  }
  if (*version > kStoreVersion) {
    return store_error(
        ErrorKind::kUsage, file,
        fmt::format("expected a store of version {}, found {}: it is of a later tsomon",
                    kStoreVersion, *version));
  }
  const auto whole = database->text("PRAGMA integrity_check(1)");
  if (!whole) {
    return tl::unexpected<Error>(whole.error());
  }
  const auto schema = database->text(kSchema);
  const auto expected = expected_schema(*version);
  if (!schema || !expected) {
    return tl::unexpected<Error>(!schema ? schema.error() : expected.error());
  }
  const bool bad_header = writable && database->is_read_only();
  if (*whole == "ok" && *version > 0 && *schema == *expected && !bad_header) {
    return *version;
  }
  return store_error(
      ErrorKind::kDamaged, file,
      fmt::format("is damaged: {}", *whole != "ok" ? printable(*whole)
                                    : bad_header   ? "its header says that it cannot be written"
                                                   : "its tables are not those of a store"));
}

Result<void> make_store_tables(Database* database) {
  return database->run_all("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;")
      .and_then([&] { return migrate_store(database, 0); });
}

Result<void> migrate_store(Database* database, int64_t version) {
  auto transaction = Transaction::begin(*database);
  if (!transaction) {
    return tl::unexpected<Error>(transaction.error());
  }
  return take_steps(database, version, kStoreVersion)
      .and_then([&] {
        return database->run_all(fmt::format("PRAGMA user_version = {}", kStoreVersion).c_str());
      })
      .and_then([&] { return transaction->commit(); });
}

}  // namespace tsomon::service
