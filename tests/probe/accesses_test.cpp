// Accesses of every width and length, and those of signal handlers.
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

struct Sum {
  int events = 0;
  uint64_t bytes = 0;
};

// Of the accesses of one kind that begin in [begin, begin + length); size 0: of every size.
Sum sum(const Trace& trace, EventKind kind, uint64_t begin, uint64_t length, uint32_t size = 0) {
  Sum sum;
  for (const Event& event : trace.events) {
    if (event.kind() == kind && event.address - begin < length &&
        (size == 0 || event.size == size)) {
      ++sum.events;
      sum.bytes += event.size;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("atomics of 16 bytes are locked operations with digests for values") {
  for (const std::string& compiler : compilers()) {
    for (const char* options : {"", ":stamp_max_age=0"}) {
      CAPTURE(compiler);
      const Run result = run(compiler, "wide", options);
      CHECK(result.status == 0);
      const capture::Capture capture = read(result.path);
      // The last one is a plain load.
      CHECK(story(capture.trace, "T0", result, {"wide"}) ==
            "fence rmw(wide) fence r(wide) rmw(wide) rmw(wide) rmw(wide) rmw(wide) rmw(wide) "
            "fence r(wide) rmw(wide) r(wide)");
      // The same contents have the same digest.
      std::optional<uint64_t> held;
      size_t reads = 0;
      for (Event event : capture.trace.events) {
        if (event.address != result.said.at("wide")) {
          continue;
        }
        CHECK(uint32_t{event.size} == 16);
        if (const auto read = capture.trace.read_value(event); read && held) {
          CHECK(read == held);
          ++reads;
        }
        if (const auto written = capture.trace.write_value(event)) {
          CHECK(written != held);  // each operation of the program changes it
          held = written;
        }
        EventBlock::drop_digests(event);
        CHECK_FALSE(capture.trace.read_value(event).has_value());
        CHECK_FALSE(capture.trace.write_value(event).has_value());
      }
      CHECK(reads == 8);
    }
  }
}

TEST_CASE("copies, fills and ranges are recorded with every byte they touch") {
  constexpr uint64_t kLarge = uint64_t{20} << 20;
  constexpr uint64_t kChecked = 777;  // by the functions of _FORTIFY_SOURCE
  constexpr uint64_t kAll = 1 + 8 + 4095 + 4096 + 5000 + kLarge + kChecked;
  for (const std::string& compiler : compilers()) {
    for (const char* options : {"", ":stamp_every=1", ":stamp_every=0"}) {
      CAPTURE(compiler);
      CAPTURE(options);
      const Run result = run(compiler, "blocks", options);
      CHECK(result.status == 0);
      const capture::Capture capture = read(result.path);
      const Trace& trace = capture.trace;
      const uint64_t from = result.said.at("from");
      const uint64_t to = result.said.at("to");
      const std::vector<Range> ranges = ranges_of(trace);
      for (const uint32_t size : {8U, 4095U, 4096U, 5000U, static_cast<uint32_t>(kChecked)}) {
        CAPTURE(size);
        CHECK(count_ranges(ranges, EventKind::kWrite, from, size) == 2);
        CHECK(count_ranges(ranges, EventKind::kRead, from, size) == 1);
        CHECK(count_ranges(ranges, EventKind::kWrite, to, size) == 1);
        CHECK(count_ranges(ranges, EventKind::kRead, to, size) == 1);
      }
      CHECK(sum(trace, EventKind::kWrite, from, kLarge).bytes == 2 * kAll + 70000);
      CHECK(sum(trace, EventKind::kRead, from, kLarge).bytes == kAll + 3000 + 1);
      CHECK(sum(trace, EventKind::kWrite, to, kLarge).bytes == kAll);
      CHECK(sum(trace, EventKind::kRead, to, kLarge).bytes == kAll);
      CHECK(count_ranges(ranges, EventKind::kWrite, from, 70000) == 1);
      CHECK(count_ranges(ranges, EventKind::kRead, from, 3000) == 1);
      for (const Event& event : trace.events) {  // fewer than 8 bytes: an end of a range
        const bool piece = event.size > 16 && event.size <= 4096;
        CHECK((!piece || (std::has_single_bit(event.size) && event.address % event.size == 0)));
      }
      CHECK(sum(trace, EventKind::kRead, from, 1, 0).events == 1 + 6 + 1);  // none of no bytes
      CHECK(sum(trace, EventKind::kRead, result.said.at("odd_from"), 100).bytes == 100);
      CHECK(sum(trace, EventKind::kWrite, result.said.at("odd_to"), 100).bytes == 100);
    }
  }
}

TEST_CASE("the pointer to an object's table of virtual functions is read and written") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "blocks", "");
    const capture::Capture capture = read(result.path);
    const uint64_t object = result.said.at("object");
    CHECK(sum(capture.trace, EventKind::kWrite, object, 1, 8).events >= 1);
    CHECK(sum(capture.trace, EventKind::kRead, object, 1, 8).events >= 2);  // two virtual calls
  }
}

TEST_CASE("a handler that interrupts hooks loses nothing, of its own and of what it interrupted") {
  for (const char* options : {"", ":stamp_every=1", ":share=0"}) {
    CAPTURE(options);
    const Run result = run("g++", "handlers", options);
    CHECK(result.status == 0);
    const capture::Capture capture = read(result.path);
    const auto kinds = count_kinds(capture.trace);
    CHECK(result.said.at("handled") >= 300);
    CHECK(kinds.at(EventKind::kReadModifyWrite) == static_cast<int>(result.said.at("handled")));
    CHECK(sum(capture.trace, EventKind::kWrite, result.said.at("cells"), 4 * 4096).events ==
          static_cast<int>(result.said.at("stores")));
    uint64_t last = 0;
    for (const Event& event : capture.trace.events) {
      if (event.kind() == EventKind::kReadModifyWrite) {
        CHECK(capture.trace.read_value(event) == last);
        last = *capture.trace.write_value(event);
      }
    }
  }
}
