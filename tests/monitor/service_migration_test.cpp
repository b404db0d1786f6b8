// A store of an earlier version is taken forward, whole, whenever whoever does it is killed.
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/service/database.h"
#include "monitor/service/store_schema.h"
#include "tests/monitor/folder.h"
#include "tests/monitor/service_store.h"
#include "tests/rounds.h"

using namespace tsomon;
using namespace tsomon::service;
using namespace tsomon::testing;

namespace fs = std::filesystem;

namespace {

// As version 1 made it. This is what is on the disks of others: it never changes.
constexpr const char* kVersion1 = R"(
PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;

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

PRAGMA user_version = 1;
INSERT INTO findings VALUES (1, '1000000000000001', 'serializability', 1, 5, 2, 10, 20, 'a sentence', '{}');
INSERT INTO findings VALUES (2, '1000000000000002', 'robustness', 0, 1, 1, 15, 15, 'another', '{}');
INSERT INTO sightings VALUES (1, 'bank', 'here', 'abcd', 5, 10, 20);
INSERT INTO sightings VALUES (2, 'bank', 'here', 'abcd', 1, 15, 15);
INSERT INTO slices VALUES (7, 3, 10, 'bank', 'abcd');
INSERT INTO shown VALUES (1, 7);
INSERT INTO shown VALUES (2, 7);
)";

std::string make_version_1(const std::string& folder) {
  fs::create_directories(folder + "/slices");
  std::ofstream(folder + "/slices/7.tsomon") << "abc";
  std::ofstream(folder + "/lock") << "";
  auto database = Database::open(folder + "/store.db", Database::Access::kMake);
  REQUIRE(database);
  REQUIRE(database->run_all(kVersion1));
  return folder;
}

void check_content(Store& store) {
  const auto all = store.findings();
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].fingerprint == "1000000000000001");
  CHECK((*all)[0].count == 5);
  CHECK((*all)[0].sightings.size() == 1);
  CHECK((*all)[0].files.size() == 1);
  CHECK_FALSE((*all)[0].predicted);
  CHECK((*all)[0].explanation.empty());
  CHECK_FALSE((*all)[1].definite);
  CHECK(store.incidents()->empty());
}

int64_t version_of(const std::string& folder) {
  auto database = Database::open(folder + "/store.db", Database::Access::kRead);
  REQUIRE(database);
  return database->number("PRAGMA user_version").value_or(-1);
}

}  // namespace

TEST_CASE("a store of version 1 is taken forward, by who keeps it and by who visits it") {
  const Folder place;
  const std::string first = make_version_1(place.write("x", "") + ".kept");
  {
    const auto store = kept_store(first);
    CHECK(store->notes().empty());
    check_content(*store);
    const auto next = store->begin_analysis(100);
    REQUIRE(next);
    REQUIRE(*next);
    CHECK((*next)->slice == 7);
    CHECK((*next)->property == "robustness");  // which is only possible
  }
  CHECK(version_of(first) == kStoreVersion);
  check_content(*kept_store(first));

  const std::string second = make_version_1(place.write("x", "") + ".visited");
  {
    // An earlier monitor has it.
    const Descriptor lock(::open((second + "/lock").c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
    const auto refused = Store::visit(second);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "an earlier tsomon monitor keeps this store: start it anew");
    CHECK(version_of(second) == 1);
  }
  const auto visited = Store::visit(second);
  REQUIRE(visited);
  check_content(**visited);
  CHECK(version_of(second) == kStoreVersion);
}

TEST_CASE("a store whose tables are not those of its version is damaged") {
  const Folder place;
  const std::string folder = make_version_1(place.write("x", "") + ".store");
  {
    auto database = Database::open(folder + "/store.db", Database::Access::kUse);
    REQUIRE(database);
    REQUIRE(database->run_all("CREATE TABLE analyses (number INTEGER)"));
  }
  const auto visited = Store::visit(folder);
  REQUIRE_FALSE(visited);
  CHECK(visited.error().kind == ErrorKind::kDamaged);
  const auto store = kept_store(folder);
  CHECK(store->notes().size() == 2);
  CHECK(fs::exists(folder + "/store.db.damaged-1"));
}

TEST_CASE("killed while it is taken forward, a store is of one version or the other") {
  const Folder place;
  std::mt19937_64 random(5);
  int before = 0;
  const int kRounds = rounds(30, 300);
  for (int round = 0; round < kRounds; ++round) {
    const std::string folder = make_version_1(place.write("x", "") + fmt::format(".{}", round));
    const pid_t writer = ::fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      ::_exit(Store::keep(folder, kStoreRoom) ? 0 : 1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 12'000));
    ::kill(writer, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(writer, &status, 0) == writer);
    const int64_t version = version_of(folder);
    before += version == 1 ? 1 : 0;
    REQUIRE((version == 1 || version == kStoreVersion));
    const auto store = kept_store(folder);
    REQUIRE(store->notes().empty());
    check_content(*store);
    fs::remove_all(folder);
  }
  CHECK(before > 0);
}
