// Records that were dropped are counted, and no verdict forgets them.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

constexpr uint64_t kStores = 200000;  // of each of two threads, in units of 100 under a lock

// The program records into a pipe that nobody reads until it has done everything: all but what the
// buffers and the pipe hold must be dropped.
std::string record_into_full_pipe(const std::string& compiler) {
  const std::string folder = kPrograms + "/" + compiler;
  const std::string pipe = folder + "/flood.pipe";
  std::filesystem::remove(pipe);
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reading = open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reading >= 0);
  const std::string command =
      fmt::format("TSOMON_OPTIONS=output={}:on_full=drop:buffer=64K:level=0 {}/flood {}", pipe,
                  folder, kStores);
  FILE* const program = popen(command.c_str(), "r");
  REQUIRE(program != nullptr);
  char line[16] = {};
  CHECK(std::fgets(line, sizeof line, program) != nullptr);
  CHECK(std::string(line) == "done\n");
  fcntl(reading, F_SETFL, 0);
  std::string bytes;
  char buffer[65536];
  for (ssize_t size = 0; (size = read(reading, buffer, sizeof buffer)) > 0;) {
    bytes.append(buffer, static_cast<size_t>(size));
  }
  CHECK(pclose(program) == 0);
  close(reading);
  std::filesystem::remove(pipe);
  std::string capture = folder + "/flood.capture";
  std::ofstream(capture, std::ios::binary) << bytes;
  return capture;
}

}  // namespace

TEST_CASE("dropped records are counted, and a clean verdict over them is inconclusive") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const std::string path = record_into_full_pipe(compiler);
    const capture::Capture capture = read_any(path);
    const Trace& trace = capture.trace;
    CHECK_FALSE(trace.complete);
    CHECK_FALSE(capture.problems.empty());
    CHECK(trace.lost_events > kStores);  // the pipe holds 64 KiB, the chunks some 400
    // Every store is in the capture or counted as lost; no more is counted than could be lost.
    const auto kinds = count_kinds(trace);
    const auto stores = static_cast<uint64_t>(kinds.at(EventKind::kWrite));
    CHECK(stores < kStores);
    CHECK(stores + trace.lost_events >= 2 * kStores);
    CHECK(trace.lost_events < 2 * kStores + 2 * (kStores / 100) * 6 + 1000);

    const std::string report = path + ".json";
    const int status = std::system(fmt::format("exec {} check --output json {} >{} 2>{}.log",
                                               TSOMON_EXECUTABLE, path, report, path)
                                       .c_str());
    CHECK(WEXITSTATUS(status) == 3);
    const std::string text = text_of(report);
    CHECK(text.find(R"("verdict":"inconclusive")") != std::string::npos);
    CHECK(text.find(R"("complete":false)") != std::string::npos);
  }
}

TEST_CASE("chunks of ended threads do not lie unheard while records are dropped") {
  const Run result = run("g++", "short_threads", ":unit=work:on_full=drop:buffer=64K");
  CHECK(result.status == 0);
  // Nine records of each of 20,000 threads. The writer thread is late for some, beside other work
  // for a third of them; unheard, they would all be lost.
  CHECK(read_any(result.path).trace.lost_events < 150'000);
}

TEST_CASE("a program that waits for room in the buffer loses nothing") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "flood " + std::to_string(kStores), ":buffer=64K");
    CHECK(result.status == 0);
    const capture::Capture capture = read(result.path);
    CHECK(capture.trace.lost_events == 0);
    uint64_t stores = 0;
    for (const Event& event : capture.trace.events) {
      stores += event.kind() == EventKind::kWrite && event.size == sizeof(long) &&
                        event.location != Event::kNoLocation
                    ? 1
                    : 0;
    }
    CHECK(stores >= 2 * kStores);
  }
}
