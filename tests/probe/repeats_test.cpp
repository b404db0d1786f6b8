// Loads that a thread repeats: some stand for all.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/capture/chunks.h"
#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

// What the thread did to what the program named, loads that repeat the one before left out.
std::vector<std::string> deeds(const Trace& trace, const std::string& thread, const Run& run) {
  std::vector<std::string> list;
  const uint32_t id = trace.symbols.threads.find(thread);
  for (const Event& event : trace.events) {
    if (event.thread != id) {
      continue;
    }
    std::string deed = std::to_string(static_cast<int>(event.kind()));
    if (is(event, kinds::kAccesses)) {
      const auto name = std::find_if(run.said.begin(), run.said.end(), [&](const auto& said) {
        return said.second == event.address;
      });
      if (name == run.said.end()) {
        continue;
      }
      deed += " " + name->first;
      for (const auto& value : {trace.read_value(event), trace.write_value(event)}) {
        deed += ' ';
        deed += value ? std::to_string(*value) : "-";
      }
    }
    if (list.empty() || list.back() != deed || event.kind() != EventKind::kRead) {
      list.push_back(deed);
    }
  }
  return list;
}

uint64_t event_bytes(const std::string& path) {
  const std::string bytes = text_of(path);
  const auto list = capture::find_chunks(bytes);
  REQUIRE(list.has_value());
  uint64_t size = 0;
  for (const capture::Chunk& chunk : list->chunks) {
    size += chunk.header.type == static_cast<uint32_t>(capture::ChunkType::kEvents)
                ? chunk.header.raw_size
                : 0;
  }
  return size;
}

}  // namespace

TEST_CASE("of repeated loads few are recorded, and nothing else changes") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const std::string program = "repeats 2000000";
    const Run all = run(compiler, program, ":level=0:repeats=all");
    REQUIRE(all.status == 0);
    const uint64_t bytes_of_all = event_bytes(all.path);
    const capture::Capture expected = read(all.path);
    const Run few = run(compiler, program, ":level=0");
    REQUIRE(few.status == 0);
    const capture::Capture capture = read(few.path);
    CHECK(bytes_of_all > 5'000'000);
    CHECK(event_bytes(few.path) < 500'000);
    for (const char* thread : {"T0", "T1"}) {
      CAPTURE(std::string(thread));
      const auto mine = deeds(capture.trace, thread, few);
      CHECK(mine.size() > 2);
      CHECK(mine == deeds(expected.trace, thread, all));
    }
    // A thread that spins when the process ends.
    const auto last = deeds(capture.trace, "T2", few);
    CHECK(std::count(last.begin(), last.end(), "0 other 1 -") == 1);
    // Each run has its first and its last load, wherever the time between went.
    for (const Event& event : capture.trace.events) {
      CHECK(capture.trace.lo(event) <= capture.trace.hi(event));
    }
  }
}
