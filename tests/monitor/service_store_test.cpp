// The store of the service: what it keeps, whatever ends whoever writes it.
#include "tests/monitor/service_store.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/findings/suppressions.h"
#include "monitor/process/descriptor.h"
#include "monitor/report/results.h"
#include "monitor/service/kept_report.h"
#include "monitor/service/store.h"
#include "tests/monitor/folder.h"
#include "tests/rounds.h"

using namespace tsomon;
using namespace tsomon::service;

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kRoom = testing::kStoreRoom;
const SightingPlace kPlace{"bank", "here", "abcd"};

std::unique_ptr<Store> kept(const std::string& folder, uint64_t bytes = kRoom) {
  return testing::kept_store(folder, bytes);
}

SeenFinding finding(uint64_t number, bool definite = true, uint64_t count = 1) {
  return testing::seen_finding(number, definite, count);
}

Descriptor slice_of(size_t bytes) { return testing::slice_of(bytes); }

std::string file_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t count_files(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// Whether all that the rows say is there, and no more.
void check_whole(Store& store, const std::string& folder) {
  const auto all = store.findings();
  REQUIRE(all);
  std::set<std::string> files;
  for (const KeptFinding& each : *all) {
    files.insert(each.files.begin(), each.files.end());
    uint64_t count = 0;
    for (const auto& sighting : each.sightings) {
      count += sighting.count;
    }
    REQUIRE(count == each.count);
  }
  for (const std::string& file : files) {
    REQUIRE(fs::exists(file));
  }
  REQUIRE(count_files(folder + "/slices") == files.size());
}

}  // namespace

TEST_CASE("one finding for each fingerprint and property, with what is known of it") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  {
    const auto store = kept(folder);
    SeenFinding one = finding(1, false, 3);
    one.json = "{\"a\":1}";
    auto added = store->add(kPlace, 1000, {one, finding(2)}, slice_of(100).get());
    REQUIRE(added);
    CHECK(added->is_new == std::vector<bool>{true, true});
    CHECK(added->problem.empty());
    one.definite = true;  // a better witness, though longer
    one.json = "{\"a\":12}";
    one.summary = "another";
    REQUIRE(store->add({"bank", "there", "abcd"}, 3000, {one}, slice_of(200).get()));
    one.definite = false;  // a worse one
    one.json = "{}";
    added = store->add(kPlace, 2000, {one}, -1);
    REQUIRE(added);
    CHECK(added->is_new == std::vector<bool>{false});
    one.property = "robustness";
    added = store->add(kPlace, 500, {one}, -1);
    REQUIRE(added);
    CHECK(added->is_new == std::vector<bool>{true});
  }
  const auto store = kept(folder);
  CHECK(store->notes().empty());
  const auto all = store->findings();
  REQUIRE(all);
  REQUIRE(all->size() == 3);
  const KeptFinding& first = all->front();
  CHECK(first.fingerprint == "1000000000000001");
  CHECK(first.property == "serializability");
  CHECK(first.definite);
  CHECK(first.count == 9);
  CHECK(first.slices == 3);
  CHECK(first.first_seen == 1000);
  CHECK(first.last_seen == 3000);
  CHECK(first.summary == "another");
  CHECK(first.json == "{\"a\":12}");
  REQUIRE(first.sightings.size() == 2);
  CHECK(first.sightings[0].place.host == "there");
  CHECK(first.sightings[1].count == 6);
  CHECK(first.sightings[1].last_seen == 2000);
  REQUIRE(first.files.size() == 2);
  CHECK(file_text(first.files[0]) == std::string(100, 'c'));
  CHECK(file_text(first.files[1]) == std::string(200, 'c'));
  CHECK((*all)[1].files == std::vector{first.files[0]});
  check_whole(*store, folder);

  CHECK(store->find("1000000000000001")->size() == 2);
  CHECK(store->find("1000000000000002")->size() == 1);
  CHECK(store->find("1000").error().message.find("2 findings begin with 1000") == 0);
  CHECK(store->find("2000").error().kind == ErrorKind::kUsage);
  CHECK(store->find("").error().kind == ErrorKind::kUsage);
  CHECK(store->find("%%%%").error().kind == ErrorKind::kUsage);
  CHECK(store->find("1000' OR 1=1 --").error().kind == ErrorKind::kUsage);

  // Beside whoever keeps it.
  CHECK(Store::keep(folder, kRoom).error().message == "another tsomon monitor keeps this store");
  const auto visitor = Store::visit(folder);
  REQUIRE(visitor);
  CHECK((*visitor)->findings()->size() == 3);
  CHECK(*(*visitor)->forget("1000000000000001") == 2);
  CHECK(store->findings()->size() == 1);
  CHECK(store->findings()->front().files.size() == 1);  // the slice shows both
  check_whole(*store, folder);
  CHECK((*visitor)->forget("1000000000000001").error().kind == ErrorKind::kUsage);
  CHECK(*store->forget("1000000000000002") == 1);
  CHECK(store->findings()->empty());
  check_whole(*store, folder);
  CHECK(Store::visit(folder + "/none").error().kind == ErrorKind::kUnreadable);
}

TEST_CASE("what is suppressed is a line that --suppressions reads") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  const auto store = kept(folder);
  SeenFinding one = finding(1);
  one.summary = "two\nlines \x1b[2J";
  REQUIRE(store->add(kPlace, 1, {one}, -1));
  const auto found = store->find("1000000000000001");
  REQUIRE(found);
  REQUIRE(store->suppress(found->front()));
  const std::string mine = place.write("mine.supp", "function:f");
  REQUIRE(store->suppress(found->front(), mine));
  for (const std::string& file : {store->suppressions_file(), mine}) {
    const auto lines = parse_suppressions(file_text(file), file);
    REQUIRE(lines);
    REQUIRE(lines->size() == (file == mine ? 2 : 1));
    CHECK(lines->back().line_text == "fingerprint:1000000000000001");
  }
  CHECK_FALSE(store->suppress(found->front(), folder + "/none/such"));
}

TEST_CASE("so many slices of a finding are kept, whatever comes") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  const auto store = kept(folder);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(store->add(kPlace, i, {finding(1)}, slice_of(10).get()));
  }
  CHECK(store->findings()->front().slices == 20);
  CHECK(store->findings()->front().files.size() == Store::kSlicesOfFinding);
  check_whole(*store, folder);
}

TEST_CASE("the bound holds: the oldest slices go first, findings last") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  constexpr uint64_t kSmall = uint64_t{4} << 20;
  const auto store = kept(folder, kSmall);
  for (uint64_t i = 0; i < 100; ++i) {
    const auto added =
        store->add(kPlace, static_cast<int64_t>(i), {finding(i)}, slice_of(200'000).get());
    REQUIRE(added);
    CHECK(added->problem.empty());
    REQUIRE(store->bytes() <= kSmall);
  }
  auto all = store->findings();
  REQUIRE(all);
  CHECK(all->size() == 100);
  size_t with = 0;
  for (size_t i = 0; i < all->size(); ++i) {
    with += (*all)[i].files.size();
    CHECK((*all)[i].files.empty() == (i >= with));  // the last ones have theirs
  }
  CHECK(with >= 5);
  check_whole(*store, folder);
  // Findings alone are too much.
  for (uint64_t i = 0; i < 100; ++i) {
    SeenFinding large = finding(1000 + i);
    large.json = std::string(100'000, 'j');
    REQUIRE(store->add(kPlace, static_cast<int64_t>(1000 + i), {large}, slice_of(10).get()));
    REQUIRE(store->bytes() <= kSmall);
  }
  all = store->findings();
  REQUIRE(all);
  CHECK(all->size() >= 15);
  CHECK(all->size() <= 60);
  for (size_t i = 0; i < all->size(); ++i) {
    CHECK((*all)[i].fingerprint == finding(1099 - i).fingerprint);
  }
  check_whole(*store, folder);
  store->set_bound(1 << 20);
  REQUIRE(store->add(kPlace, 9999, {finding(7)}, -1));
  CHECK(store->bytes() <= 1 << 20);
  CHECK(store->findings()->front().fingerprint == finding(7).fingerprint);
}

// One process adds and says so on a pipe, until it is killed.
TEST_CASE("nothing that was acknowledged is lost, whenever the writer is killed") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  std::mt19937_64 random(43);
  std::vector<uint64_t> acknowledged(50, 0);
  const int kRounds = rounds(40, 200);
  for (int round = 0; round < kRounds; ++round) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const uint64_t seed = random();
    const pid_t writer = ::fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      std::mt19937_64 mine(seed);
      auto store = Store::keep(folder, kRoom);
      for (; store;) {
        const auto number = static_cast<uint8_t>(mine() % 50);
        const Descriptor file(::memfd_create("capture", MFD_CLOEXEC));
        const std::string text(mine() % 20'000, 'c');
        (void)!::write(file.get(), text.data(), text.size());
        if (!(*store)->add(kPlace, 1, {finding(number)}, file.get()) ||
            ::write(ends[1], &number, 1) != 1) {
          break;
        }
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    uint8_t number = 0;
    const uint64_t last = random() % 30;
    ssize_t got = 1;
    for (uint64_t i = 0; i <= last && (got = ::read(ends[0], &number, 1)) == 1; ++i) {
      ++acknowledged[number];
    }
    REQUIRE(got == 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    ::kill(writer, SIGKILL);
    while (::read(ends[0], &number, 1) == 1) {
      ++acknowledged[number];
    }
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(writer, &status, 0) == writer);
    REQUIRE(WIFSIGNALED(status));
    const auto store = kept(folder);
    REQUIRE(store->notes().empty());
    check_whole(*store, folder);
    std::vector<uint64_t> counts(50, 0);
    const auto all = store->findings();
    REQUIRE(all);
    for (const KeptFinding& each : *all) {
      counts[std::stoull(each.fingerprint.substr(8), nullptr, 16)] = each.count;
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      CAPTURE(i);
      REQUIRE(counts[i] >= acknowledged[i]);
      acknowledged[i] = counts[i];  // one may have been added and not acknowledged
    }
  }
}

// Visitors are other processes, as for SQLite a process is one: whoever closes the database last takes its log away.
TEST_CASE("visitors that come and go take nothing away") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  int ask[2];
  int answer[2];
  REQUIRE(::pipe2(ask, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(answer, O_CLOEXEC) == 0);
  const pid_t visitor = ::fork();
  REQUIRE(visitor >= 0);
  if (visitor == 0) {
    ::close(ask[1]);
    for (char byte = 0; ::read(ask[0], &byte, 1) == 1;) {
      const auto store = Store::visit(folder);
      const auto all = store ? (*store)->findings() : Result<std::vector<KeptFinding>>();
      const uint8_t count = store && all ? static_cast<uint8_t>(all->size()) : 255;
      (void)!::write(answer[1], &count, 1);
    }
    ::_exit(0);
  }
  ::close(ask[0]);
  ::close(answer[1]);
  {
    const auto store = kept(folder);
    for (uint8_t number = 1; number <= 5; ++number) {
      REQUIRE(store->add(kPlace, number, {finding(number)}, -1));
      REQUIRE(::write(ask[1], "?", 1) == 1);
      uint8_t count = 0;
      REQUIRE(::read(answer[0], &count, 1) == 1);
      CHECK(count == number);
    }
  }
  ::close(ask[1]);
  ::close(answer[0]);
  CHECK(::waitpid(visitor, nullptr, 0) == visitor);
  CHECK(kept(folder)->findings()->size() == 5);
}

// A clock that is set back makes nothing end before it began.
TEST_CASE("the time of a sighting may lie before that of an earlier one") {
  const testing::Folder place;
  const auto store = kept(place.write("x", "") + ".store");
  for (const int64_t time : {5000, 9000, 1000, 7000}) {
    REQUIRE(store->add(kPlace, time, {finding(1)}, -1));
  }
  const KeptFinding one = store->findings()->front();
  CHECK(one.first_seen == 1000);
  CHECK(one.last_seen == 9000);
  CHECK(one.sightings.front().first_seen == 1000);
  CHECK(one.sightings.front().last_seen == 9000);
}

// Files may not grow any more, as on a full disk.
TEST_CASE("on a full disk what was acknowledged stays, and it goes on when there is room again") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t writer = ::fork();
  REQUIRE(writer >= 0);
  if (writer == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit room{};
    ::getrlimit(RLIMIT_FSIZE, &room);
    const rlim_t before = room.rlim_cur;
    auto store = Store::keep(folder, kRoom);
    const Descriptor small = slice_of(10'000);
    const Descriptor large = slice_of(1'000'000);
    bool without_slice = false;
    bool refused = false;
    room.rlim_cur = 400'000;
    ::setrlimit(RLIMIT_FSIZE, &room);
    for (uint64_t i = 0; store && i < 200; ++i) {
      SeenFinding one = finding(i);
      one.json = std::string(20'000, 'j');
      const auto added = (*store)->add(kPlace, static_cast<int64_t>(i), {one},
                                       i % 2 == 0 ? small.get() : large.get());
      const auto number = static_cast<uint8_t>(i);
      if (added) {
        without_slice = without_slice || added->problem.find("not kept") != std::string::npos;
        (void)!::write(ends[1], &number, 1);
      } else {
        refused = true;
        if (added.error().kind != ErrorKind::kEnvironment) {
          ::_exit(2);
        }
      }
    }
    room.rlim_cur = before;
    ::setrlimit(RLIMIT_FSIZE, &room);
    const bool again = store && (*store)->add(kPlace, 1, {finding(999)}, -1);
    ::_exit(without_slice && refused && again ? 0 : 3);
  }
  ::close(ends[1]);
  std::set<std::string> acknowledged = {finding(999).fingerprint};
  for (uint8_t number = 0; ::read(ends[0], &number, 1) == 1;) {
    acknowledged.insert(finding(number).fingerprint);
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(writer, &status, 0) == writer);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  const auto store = kept(folder);
  check_whole(*store, folder);
  CHECK(acknowledged.size() > 5);
  const auto all = store->findings();
  REQUIRE(all);
  CHECK(all->size() >= acknowledged.size());
  for (const KeptFinding& each : *all) {
    acknowledged.erase(each.fingerprint);
  }
  CHECK(acknowledged.empty());
}

TEST_CASE("damaged at random places: opened, or set aside and begun again, with the slices") {
  const testing::Folder place;
  const std::string model = place.write("x", "") + ".model";
  {
    const auto store = kept(model);
    for (uint64_t i = 0; i < 40; ++i) {
      REQUIRE(store->add(kPlace, 1, {finding(i)}, slice_of(1000).get()));
    }
  }
  std::mt19937_64 random(7);
  int set_aside = 0;
  const int kRounds = rounds(50, 400);
  for (int round = 0; round < kRounds; ++round) {
    const std::string folder = place.write("x", "") + ".damaged";
    fs::remove_all(folder);
    fs::copy(model, folder, fs::copy_options::recursive);
    std::string bytes = file_text(folder + "/store.db");
    REQUIRE(bytes.size() > 4096);
    for (uint64_t i = random() % 4; i < 4; ++i) {
      bytes[random() % (random() % 4 == 0 ? 100 : bytes.size())] = static_cast<char>(random());
    }
    if (random() % 8 == 0) {
      bytes.resize(random() % bytes.size());
    }
    std::ofstream(folder + "/store.db", std::ios::binary) << bytes;
    const auto visited = Store::visit(folder);
    if (visited) {
      REQUIRE((*visited)->findings());
    }
    const bool damaged = !visited && visited.error().kind == ErrorKind::kDamaged;
    auto store = Store::keep(folder, kRoom);
    if (!store) {  // a version or an encoding that this one does not know
      CAPTURE(store.error().to_string());
      REQUIRE_FALSE(damaged);
      continue;
    }
    if (damaged) {
      ++set_aside;
      REQUIRE((*store)->notes().size() == 2);
      REQUIRE((*store)->notes()[0].find(".damaged-1") != std::string::npos);
      REQUIRE(file_text(folder + "/store.db.damaged-1") == bytes);
      REQUIRE(count_files(folder + "/slices") == 40);
    }
    const auto added = (*store)->add(kPlace, 1, {finding(1000)}, slice_of(10).get());
    CAPTURE((added ? "" : added.error().to_string()));
    REQUIRE(added);
    REQUIRE((*store)->findings());
  }
  CHECK(set_aside > kRounds / 20);
}

TEST_CASE("what is no store is left alone") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  { kept(folder); }
  {
    auto database = Database::open(folder + "/store.db", Database::Access::kUse);
    REQUIRE(database);
    REQUIRE(database->run_all("PRAGMA user_version = 99"));
  }
  const auto later = Store::keep(folder, kRoom);
  REQUIRE_FALSE(later);
  CHECK(later.error().kind == ErrorKind::kUsage);
  CHECK(later.error().message.find("found 99") != std::string::npos);
  CHECK_FALSE(fs::exists(folder + "/store.db.damaged-1"));
  // A folder that cannot be one.
  CHECK(Store::keep(place.write("file", "text") + "/in", kRoom).error().kind ==
        ErrorKind::kEnvironment);
}

TEST_CASE("the parts of a slice that was being written go, a slice that is gone is forgotten") {
  const testing::Folder place;
  const std::string folder = place.write("x", "") + ".store";
  {
    const auto store = kept(folder);
    REQUIRE(store->add(kPlace, 1, {finding(1)}, slice_of(10).get()));
    REQUIRE(store->add(kPlace, 2, {finding(1)}, slice_of(10).get()));
  }
  fs::remove(folder + "/slices/1.tsomon");
  std::ofstream(folder + "/slices/3.tsomon") << "orphan";
  std::ofstream(folder + "/slices/4.tsomon.tmp") << "half";
  const auto store = kept(folder);
  CHECK(count_files(folder + "/slices") == 1);
  CHECK(store->findings()->front().files.size() == 1);
  check_whole(*store, folder);
}

TEST_CASE("kept findings in words and in JSON, whatever the store holds") {
  KeptFinding one;
  one.fingerprint = "1000000000000001";
  one.property = "serializability";
  one.definite = true;
  one.count = 12;
  one.slices = 5;
  one.first_seen = 1'795'945'212'000'000;
  one.last_seen = one.first_seen + 61'000'000;
  one.summary = "T0's unit pay is not atomic";
  one.json =
      R"({"cycle":[{"thread":"T0","label":"pay","unit":true,"first":0,"last":1,"from":0,"to":1,"edge":"conflict"}],)"
      R"("accesses":[{"event":0,"thread":"T0","operation":"load","name":"x","location":"bank.cpp:10"}],"count":3})";
  one.sightings = {{{"bank", "here", ""}, 12, one.first_seen, one.last_seen}};
  one.files = {"s/slices/1.tsomon"};
  CHECK(kept_lines(one, {}) ==
        "1000000000000001 definite serializability: 12 times in 5 slices of bank, "
        "2026-11-29T09:40:12Z to 2026-11-29T09:41:13Z\n    T0's unit pay is not atomic\n");
  CHECK(kept_lines(one, "fingerprint:1 s:2").find("(suppressed: fingerprint:1 s:2)") !=
        std::string::npos);
  const std::string report = kept_report(one, {});
  CHECK(report.find("bank on here, build not known: 12 times") != std::string::npos);
  CHECK(report.find("slice s/slices/1.tsomon") != std::string::npos);
  CHECK(report.find("T0 #0 load x at bank.cpp:10") != std::string::npos);
  const auto object = kept_result_json(one, "by");
  report::Results results;
  REQUIRE(results.add(object, "x"));
  REQUIRE(results.findings().size() == 1);
  CHECK(results.findings().front().times == 12);
  CHECK(object["findings"][0]["suppressed_by"] == "by");
  CHECK(object["findings"][0]["sightings"][0]["target"] == "bank");
  for (const char* const hostile :
       {"", "[]", "{\"accesses\":7,\"cycle\":{\"a\":[]}}", "{\"accesses\":[1,{}]}", "\xff\x1b"}) {
    one.json = hostile;
    one.summary = hostile;
    one.fingerprint = hostile;
    CHECK(kept_report(one, {}).find('\x1b') == std::string::npos);
    (void)kept_result_json(one, {});
  }
  CHECK(time_text(INT64_MAX).size() > 4);
  CHECK(time_text(INT64_MIN).size() >= 1);
}
