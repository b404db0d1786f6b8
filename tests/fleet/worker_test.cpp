// What becomes of work that is judged, crashes, takes too much, has lost its content, or whose worker is stopped. The commands are
// scripts here; check_fleet has the real ones.
#include "monitor/fleet/worker.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "monitor/fleet/contents.h"
#include "tests/fleet/memory_fleet.h"

namespace tsomon::fleet {
namespace {

namespace fs = std::filesystem;

// A program that does what its input says.
class Scripts {
 public:
  Scripts() {
    std::string name = (fs::temp_directory_path() / "fleet.XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
    std::ofstream(program())
        << "#!/bin/sh\n[ \"$2\" = --merge ] && { shift 4; cat \"$@\" >\"$0.merged\"; echo "
           "'{\"verdict\": \"merged\"}'; exit 3; }\n. \"$2\"\n";
    fs::permissions(program(), fs::perms::owner_all);
  }
  Scripts(const Scripts&) = delete;
  Scripts& operator=(const Scripts&) = delete;
  ~Scripts() { fs::remove_all(folder_); }
  std::string program() const { return (folder_ / "program").string(); }

 private:
  fs::path folder_;
};

Work submitted(MemoryFleet& fleet, const std::string& script) {
  Work work;
  work.content.name = "a \"file\"";
  ContentSender sender(fleet);
  work.content.parts = {*sender.send("", script, 0)};
  REQUIRE(sender.finish());
  work.id = id_of(work.content, work.question);
  REQUIRE(fleet.put(work, false));
  return work;
}

WorkerCounters judged(MemoryFleet& fleet, const std::string& program, uint64_t memory = 512) {
  WorkerOptions options;
  options.program = program;
  options.name = "worker";
  options.once = true;
  options.bounds.idle = false;
  options.bounds.memory_bytes = memory << 20;
  options.bounds.processor_time = std::chrono::seconds(1);
  options.tell = [](const std::string&) {};
  Worker worker(fleet, options);
  REQUIRE(worker.run([] { return false; }));
  return worker.counters();
}

}  // namespace

TEST_CASE("a verdict has what the command wrote, under the name of the file") {
  const Scripts scripts;
  MemoryFleet fleet;
  const Work work = submitted(
      fleet,
      R"(echo "{\"file\": \"$2\", \"property\": \"serializability\", \"verdict\": \"definite\",)"
      R"( \"findings\": [{\"fingerprint\": \"12ab\", \"verdict\": \"definite\", \"count\": 3}]}"; exit 1)");
  const WorkerCounters counters = judged(fleet, scripts.program());
  CHECK(counters.judged == 1);
  REQUIRE(fleet.verdicts.count(work.id) == 1);
  const Verdict& verdict = fleet.verdicts[work.id];
  CHECK(verdict.exit_status == 1);
  CHECK(verdict.result.find(R"("file": "a \"file\"")") != std::string::npos);
  REQUIRE(fleet.seen.size() == 1);
  CHECK(fleet.seen.front().found.fingerprint == "12ab");
  CHECK(fleet.seen.front().found.count == 3);
  CHECK(fleet.seen.front().found.definite);
}

TEST_CASE("what is too long for a message is in chunks") {
  const Scripts scripts;
  MemoryFleet fleet;
  const Work work = submitted(
      fleet,
      "echo '{\"verdict\": \"'; for i in $(seq 9000); do echo 0123456789; done | tr -d '\\n'; "
      "echo '\"}'");
  CHECK(judged(fleet, scripts.program()).parked == 1);  // its first line is no object
  CHECK(fleet.rows[work.id].standing.reason.find("no result") != std::string::npos);
  const Work other = submitted(
      fleet,
      "printf '{\"verdict\": \"'; for i in $(seq 9000); do printf 0123456789; done; echo '\"}'");
  CHECK(judged(fleet, scripts.program()).judged == 1);
  REQUIRE(fleet.verdicts.count(other.id) == 1);
  CHECK(fleet.verdicts[other.id].result.empty());
  const auto whole = fetch_part(fleet, fleet.verdicts[other.id].chunks);
  REQUIRE(whole);
  CHECK(whole->size() > 90'000);
}

TEST_CASE("a crash, no answer, and too much time or memory are tried thrice, then parked") {
  const Scripts scripts;
  const std::pair<const char*, const char*> cases[] = {
      {"kill -SEGV $$", "signal 11"},
      {"exit 0", "no result"},
      {"exit 4", "status 4"},
      {"while :; do :; done", "processor time"},
      {"exec python3 -c 'x = bytearray(200 << 20); import time; time.sleep(5)'", "memory"}};
  for (const auto& [script, reason] : cases) {
    MemoryFleet fleet;
    const Work work = submitted(fleet, script);
    const WorkerCounters counters = judged(fleet, scripts.program(), 64);
    CHECK(counters.failed == 3);
    CHECK(counters.parked == 1);
    CHECK(fleet.verdicts.empty());
    REQUIRE(fleet.rows.count(work.id) == 1);
    CHECK(fleet.rows[work.id].standing.state == State::kParked);
    CAPTURE(fleet.rows[work.id].standing.reason);
    CHECK(fleet.rows[work.id].standing.reason.find(reason) != std::string::npos);
    CHECK(fleet.rows[work.id].standing.reason.find("tried 3 times") != std::string::npos);
  }
}

TEST_CASE("a missing chunk parks work until it is submitted again") {
  const Scripts scripts;
  MemoryFleet fleet;
  const Work work = submitted(fleet, "echo '{}'");
  const auto chunks = fleet.chunks;
  fleet.chunks.clear();
  CHECK(judged(fleet, scripts.program()).parked == 1);
  CHECK(fleet.rows[work.id].standing.needs_content);
  fleet.chunks = chunks;
  REQUIRE(fleet.put(work, false));
  CHECK(judged(fleet, scripts.program()).judged == 1);
}

TEST_CASE("a worker that is stopped gives its work back") {
  const Scripts scripts;
  MemoryFleet fleet;
  const Work work = submitted(fleet, "sleep 60");
  WorkerOptions options;
  options.program = scripts.program();
  options.bounds.idle = false;
  options.tell = [](const std::string&) {};
  Worker worker(fleet, options);
  int asked = 0;
  REQUIRE(worker.run([&] { return ++asked > 20; }));
  CHECK(fleet.rows[work.id].standing.state == State::kWaiting);
  CHECK(fleet.rows[work.id].tries == 0);
}

TEST_CASE("parts are work of their own, and their answers become one") {
  const Scripts scripts;
  MemoryFleet fleet;
  Work work;
  work.content.name = "long";
  work.question = {"predict", {{"parts", "3"}, {"kinds", "races"}}, ""};
  ContentSender sender(fleet);
  work.content.parts = {*sender.send("", R"(echo "{\"said\": \"$*\"}")", 0)};
  REQUIRE(sender.finish());
  work.id = id_of(work.content, work.question);
  REQUIRE(check_question(work.question));
  REQUIRE(fleet.put(work, false));
  fleet.away = 2;  // when its parts are put: that is no try of the work
  CHECK(judged(fleet, scripts.program()).judged == 4);
  REQUIRE(fleet.verdicts.count(work.id) == 1);
  CHECK(fleet.verdicts[work.id].exit_status == 3);
  CHECK(fleet.verdicts[work.id].result == "{\"verdict\": \"merged\"}\n");
  std::ifstream merged(scripts.program() + ".merged");
  const std::string said(std::istreambuf_iterator<char>(merged), {});
  for (const char* const part : {"--part=1/3 ", "--part=2/3 ", "--part=3/3 "}) {
    CHECK(said.find(part) != std::string::npos);
  }
  CHECK(said.find("--kinds=races") != std::string::npos);
  CHECK(said.find("--window-events=1000000") != std::string::npos);
  CHECK(said.find("--parts") == std::string::npos);

  // One that is lost is done again; one that is parked parks the whole.
  fleet.verdicts.erase(work.id);
  fleet.verdicts.erase(part_of(work, 2).id);
  REQUIRE(fleet.put(work, false));
  CHECK(judged(fleet, scripts.program()).judged == 2);
  CHECK(fleet.verdicts.count(work.id) == 1);
  work.content.parts = {*sender.send("", "kill -SEGV $$", 0)};
  REQUIRE(sender.finish());
  work.id = id_of(work.content, work.question);
  REQUIRE(fleet.put(work, false));
  judged(fleet, scripts.program());
  CHECK(fleet.verdicts.count(work.id) == 0);
  CHECK(fleet.rows[work.id].standing.state == State::kParked);
  CHECK(fleet.rows[work.id].standing.reason.find("of 3") != std::string::npos);
  CHECK(fleet.rows[work.id].standing.reason.find("signal 11") != std::string::npos);
}

TEST_CASE("a check is told what its parts have searched") {
  const Scripts scripts;
  MemoryFleet fleet;
  Work work;
  work.content.name = "long";
  work.question = {"check", {{"parts", "2"}, {"history", "100"}}, ""};
  ContentSender sender(fleet);
  work.content.parts = {*sender.send(
      "",
      R"(shift 4; echo "{\"searched\": \"$*\"}"; for i; do case $i in /proc/*) cat $i;; esac; done)",
      0)};
  REQUIRE(sender.finish());
  work.id = id_of(work.content, work.question);
  REQUIRE(check_question(work.question));
  REQUIRE(fleet.put(work, false));
  CHECK(judged(fleet, scripts.program()).judged == 3);
  REQUIRE(fleet.verdicts.count(work.id) == 1);
  const std::string& said = fleet.verdicts[work.id].result;
  CAPTURE(said);
  CHECK(said.find("--history=100 --searched part 1 --searched part 2") != std::string::npos);
  CHECK(said.find("--parts") == std::string::npos);
  // What they have said was in these files.
  CHECK(said.find("--part=1/2") != std::string::npos);
  CHECK(said.find("--part=2/2") != std::string::npos);
}

TEST_CASE("how many parts") {
  for (const char* const wrong : {"0", "1", "257", "x", "3x", "-3"}) {
    CHECK_FALSE(check_question({"predict", {{"parts", wrong}}, ""}));
  }
  CHECK(check_question({"predict", {{"parts", "256"}}, ""}));
  CHECK(check_question({"check", {{"parts", "2"}}, ""}));
  CHECK_FALSE(check_question({"explain", {{"parts", "2"}}, ""}));
}

}  // namespace tsomon::fleet
