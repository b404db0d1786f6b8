// Streamed inputs give what loading them whole gives.
#include "monitor/events/event_source.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "monitor/input/load.h"
#include "monitor/input/open_events.h"
#include "tests/monitor/folder.h"

namespace tsomon {
namespace {

using testing::Folder;

struct Line {
  int64_t lo;
  int64_t hi;
  ThreadId thread;
  uint64_t address;
  std::optional<uint64_t> value;
  bool operator==(const Line&) const = default;
};

void append(const EventBlock& block, std::vector<Line>& out) {
  for (const Event& event : block.events) {
    out.push_back(
        {block.lo(event), block.hi(event), event.thread, event.address, block.write_value(event)});
  }
}

std::vector<Line> all(EventSource& source) {
  std::vector<Line> out;
  EventBlock block;
  for (;;) {
    const auto more = source.next(block);
    REQUIRE(more);
    if (!*more) {
      return out;
    }
    CHECK(block.events.size() <= 3 * EventSource::kReorder);
    append(block, out);
  }
}

}  // namespace

TEST_CASE("text without intervals comes in the order of its lines") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 30'000; ++i) {
    text += fmt::format("T{}|w(x{}={})|{}\n", i % 3, i % 7, i, i);
  }
  const std::string path = folder.write("plain.std", text);
  const auto loaded = load_trace(path);
  REQUIRE(loaded);
  std::vector<Line> expected;
  append(loaded->trace, expected);
  auto source = open_events(path);
  REQUIRE(source);
  CHECK(all(**source) == expected);
  CHECK((*source)->symbols().threads.size() == 3);
  CHECK((*source)->complete());
}

TEST_CASE("lines out of order within the bound come sorted, threads in program order") {
  const Folder folder;
  std::mt19937_64 random(5);
  std::string text;
  std::vector<Line> expected;
  std::vector<int64_t> latest(4, kTimeMin);
  for (int i = 0; i < 40'000; ++i) {
    const auto thread = static_cast<ThreadId>(i < 4 ? i : random() % 4);
    const int64_t lo = 10 * i - static_cast<int64_t>(random() % 2000);
    const int64_t hi = std::max(lo, latest[thread]) + static_cast<int64_t>(random() % 5000);
    text += fmt::format("T{}|w(x={})||{}..{}\n", thread, i, lo, hi);
    latest[thread] = std::max(latest[thread], lo);
    expected.push_back({latest[thread], hi, thread, 0, static_cast<uint64_t>(i)});
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const Line& a, const Line& b) { return a.lo < b.lo; });
  const std::string path = folder.write("intervals.std", text);
  auto source = open_events(path);
  REQUIRE(source);
  CHECK(all(**source) == expected);

  // Where each event was, and what it said, is known: the values count the lines.
  const auto loaded = load_trace(path);
  REQUIRE(loaded);
  source = open_events(path);
  REQUIRE(source);
  EventBlock block;
  uint64_t position = 0;
  uint64_t out_of_place = 0;
  uint64_t raised = 0;
  while ((*source)->next(block).value_or(false)) {
    const BlockOrigin& origin = (*source)->origin();
    REQUIRE((origin.lines.empty() || origin.lines.size() == block.events.size()));
    std::vector<int64_t> lo;
    for (const Event& event : block.events) {
      lo.push_back(event.lo);
    }
    for (const auto& [event, earlier] : origin.raised) {
      lo[event] = earlier;
      ++raised;
    }
    for (size_t i = 0; i < block.events.size(); ++i, ++position) {
      const uint64_t line = origin.lines.empty() ? position : origin.lines[i];
      out_of_place += line != position ? 1 : 0;
      REQUIRE(block.write_value(block.events[i]) == line);
      REQUIRE(lo[i] == loaded->trace.events[line].lo);
    }
  }
  CHECK(position == 40'000);
  CHECK(out_of_place > 10'000);
  CHECK(raised > 1000);
}

TEST_CASE("a pipe gives what was written so far when the writer pauses") {
  const Folder folder;
  const std::string path = folder.fifo("pipe");
  std::atomic<bool> seen{false};
  std::thread writer([&] {
    std::ofstream pipe(path);
    pipe << "A|w(x)|1\nA|w(y)|2\n" << std::flush;
    while (!seen) {
      std::this_thread::yield();
    }
    pipe << "A|w(z)|3\n";
  });
  auto source = open_events(path);
  REQUIRE(source);
  EventBlock block;
  size_t events = 0;
  while (events < 2) {
    const auto more = (*source)->next(block);
    REQUIRE(more);
    REQUIRE(*more);
    events += block.events.size();
  }
  CHECK(events == 2);
  seen = true;
  CHECK(all(**source).size() == 1);
  writer.join();
}

TEST_CASE("malformed text fails after the events before it") {
  const Folder folder;
  auto source = open_events(folder.write("bad.std", "A|w(x)|\nA|w(x)|\nA|wibble(x)|\n"));
  REQUIRE(source);
  EventBlock block;
  const auto first = (*source)->next(block);
  REQUIRE(first);
  CHECK(block.events.size() == 2);
  const auto second = (*source)->next(block);
  REQUIRE_FALSE(second);
  CHECK(second.error().where == "line 3");
  CHECK_FALSE(open_events("/nonexistent/trace"));
}

}  // namespace tsomon
