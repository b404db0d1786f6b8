#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "decoders/std/reader.h"
#include "decoders/std/writer.h"

using namespace tsomon;

namespace {

// An event with every id replaced by its text, for comparison across traces.
std::string event_text(const Trace& trace, size_t i) {
  const Event& event = trace.events[i];
  const Symbols& symbols = trace.symbols;
  std::string operand;
  if (event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin) {
    operand = symbols.threads.text(static_cast<uint32_t>(event.address));
  } else if (event.kind() == EventKind::kUnitBegin || event.kind() == EventKind::kCall ||
             event.kind() == EventKind::kReturn) {
    operand = symbols.labels.text(static_cast<uint32_t>(event.address));
  } else if (is(event, kinds::kAccesses) || event.kind() == EventKind::kWait ||
             event.kind() == EventKind::kAllocate || event.kind() == EventKind::kFree) {
    operand = symbols.access_text(event);
  }
  const auto value = [](std::optional<uint64_t> known) {
    return known ? std::to_string(*known) : std::string("?");
  };
  return fmt::format("{} {} {} size {} [{},{}] {} {} @{}", symbols.threads.text(event.thread),
                     static_cast<int>(event.kind()), operand, static_cast<uint32_t>(event.size),
                     trace.lo(event), trace.hi(event), value(trace.read_value(event)),
                     value(trace.write_value(event)), symbols.location_text(event.location));
}

std::vector<std::string> texts(const Trace& trace) {
  std::vector<std::string> result;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    result.push_back(event_text(trace, i));
  }
  return result;
}

Trace read(std::string_view text) {
  auto trace = read_std_text(text, "test.std");
  REQUIRE_MESSAGE(trace.has_value(), (trace ? "" : trace.error().to_string()));
  return std::move(*trace);
}

std::string error_of(std::string_view text) {
  const auto trace = read_std_text(text, "test.std");
  return trace ? "no error" : trace.error().to_string();
}

constexpr std::string_view kEverything =
    "-|set(queue;head,0x7f00+16,tail)|\n"
    "-|init(x=5)|\n"
    "-|init(0x7f00+8=-1)|\n"
    "# a comment | with a bar\n"
    "\n"
    "  \t\n"
    "T0|fork(T1)|3\n"
    "T0|r(x)|17\n"
    "T0|r(x=5)|main.c:3\n"
    "T1|w(x=-1)\n"
    "T1|w(0x7f00+4=0xfFfFffff)|007|4..200\n"
    "T1|rmw(x)||5..10\n"
    "T1|rmw(x=1,2)||-5..4294967295000\n"
    "T1|rmw(x=1,)|1\n"
    "T1|rmw(x=,2)|1\n"
    "T1|acq(l)|1\n"
    "T1|rel(l)|1\n"
    "T1|racq(l)|1\n"
    "T1|rrel(l)|1\n"
    "T1|begin|1\n"
    "T1|begin(take)|1\n"
    "T1|begin(take;queue,other)|a location longer than thirty-two bytes, with spaces\n"
    "T1|end|1\n"
    "T1|end(take)|1\n"
    "T1|fence|1\n"
    "T1|branch|1\n"
    "T1|wait(c)|1\n"
    "T1|call(push,1,(2))|1\n"
    "T1|ret(true)|1\n"
    "a thread with a very long name|w(0x10)|4294967295\n"
    "T0|w(a location with a name longer than sixteen bytes=18446744073709551615)|1\n"
    "T0|enter(m)|1\n"
    "T0|join(T1)|4\n"
    "-|lost(7)|\n";

}  // namespace

TEST_CASE("std: every operation") {
  const Trace trace = read(kEverything);
  const std::string kLongName = "a location with a name longer than sixteen bytes";
  const std::string kLongLocation = "a location longer than thirty-two bytes, with spaces";
  const std::vector<std::string> expected = {
      "T0 8 T1 size 0 [0,0] ? ? @3",
      "T0 0 x size 0 [1,1] ? ? @17",
      "T0 0 x size 0 [2,2] 5 ? @main.c:3",
      "T1 1 x size 0 [3,3] ? 18446744073709551615 @",
      "T1 1 0x7f00+4 size 4 [4,200] ? 4294967295 @007",
      "T1 2 x size 0 [5,10] ? ? @",
      "T1 2 x size 0 [-5,4294967295000] 1 2 @",
      "T1 2 x size 0 [7,7] 1 ? @1",
      "T1 2 x size 0 [8,8] ? 2 @1",
      "T1 4 l size 0 [9,9] ? ? @1",
      "T1 5 l size 0 [10,10] ? ? @1",
      "T1 6 l size 0 [11,11] ? ? @1",
      "T1 7 l size 0 [12,12] ? ? @1",
      "T1 10  size 0 [13,13] ? ? @1",
      "T1 10 take size 0 [14,14] ? ? @1",
      "T1 10 take;queue,other size 0 [15,15] ? ? @" + kLongLocation,
      "T1 11  size 0 [16,16] ? ? @1",
      "T1 11  size 0 [17,17] ? ? @1",
      "T1 3  size 0 [18,18] ? ? @1",
      "T1 12  size 0 [19,19] ? ? @1",
      "T1 13 c size 0 [20,20] ? ? @1",
      "T1 14 push,1,(2) size 0 [21,21] ? ? @1",
      "T1 15 true size 0 [22,22] ? ? @1",
      "a thread with a very long name 1 0x10 size 0 [23,23] ? ? @4294967295",
      "T0 1 " + kLongName + " size 0 [24,24] ? 18446744073709551615 @1",
      "T0 12  size 0 [25,25] ? ? @1",
      "T0 9 T1 size 0 [26,26] ? ? @4",
  };
  const std::vector<std::string> found = texts(trace);
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == expected[i]);
  }
  CHECK(!trace.complete);
  CHECK(trace.lost_events == 7);
  REQUIRE(trace.symbols.sets.size() == 1);
  CHECK(trace.symbols.sets[0].name == "queue");
  CHECK(trace.symbols.sets[0].members ==
        std::vector<LocationKey>{{trace.symbols.names.find("head"), 0},
                                 {0x7f00, 16},
                                 {trace.symbols.names.find("tail"), 0}});
  CHECK(trace.symbols.initial_zero);
  REQUIRE(trace.symbols.initial_values.size() == 2);
  CHECK(trace.symbols.initial_values[0].value == 5);
  CHECK(trace.symbols.initial_values[1].value == ~uint64_t{0});
  CHECK(!read("-|init(unknown)|\nT|fence|\n").symbols.initial_zero);
  CHECK(texts(read(write_std(trace))) == found);
}

TEST_CASE("std: objects begin and end") {
  const Trace trace = read("T0|alloc(0x7f00+24)|new.c:1\nT1|free(0x7f00)|\n");
  REQUIRE(trace.events.size() == 2);
  CHECK(trace.events[0].kind() == EventKind::kAllocate);
  CHECK(trace.events[0].address == 0x7f00);
  CHECK(trace.events[0].size == 24);
  CHECK(trace.events[1].kind() == EventKind::kFree);
  CHECK(trace.events[1].address == 0x7f00);
  CHECK(write_std(trace) == "T0|alloc(0x7f00+24)|new.c:1\nT1|free(0x7f00)|\n");
}

TEST_CASE("std: blocks that are no sets have their size as a value") {
  const std::string text = "T0|alloc(0x7f00=20000000)|new.c:1\nT1|free(0x7f00=20000000)|\n";
  const Trace trace = read(text);
  REQUIRE(trace.events.size() == 2);
  for (const Event& event : trace.events) {
    CHECK(event.address == 0x7f00);
    CHECK(event.size == 0);
    CHECK(trace.write_value(event) == 20'000'000);
  }
  CHECK(write_std(trace) == text);
}

TEST_CASE("std: errors name the line and show what was found") {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"T0|frob(x)|1", "line 2", "'frob(x)'"},
      {"T0|r|1", "line 2", "OP(location)"},
      {"T0|r x|1", "line 2", "OP(operand), found 'r x'"},
      {"T0|r(x|1", "line 2", "OP(operand), found 'r(x'"},
      {"T0|rx)|1", "line 2", "found 'rx)'"},
      {"T0|r()|1", "line 2", "a location"},
      {"T0|acq()|1", "line 2", "a location"},
      {"T0|fork()|1", "line 2", "OP(thread)"},
      {"T0|fork|1", "line 2", "OP(thread)"},
      {"T0|call|1", "line 2", "OP(text)"},
      {"T0|fence(x)|1", "line 2", "no operand"},
      {"T0|r(x=)|1", "line 2", "expected a value"},
      {"T0|r(x=5x)|1", "line 2", "'5x'"},
      {"T0|r(x=1,2)|1", "line 2", "'1,2'"},
      {"T0|r(x=0x)|1", "line 2", "'0x'"},
      {"T0|w(x=18446744073709551616)|1", "line 2", "at most 64 bits"},
      {"T0|w(x=-9223372036854775809)|1", "line 2", "at most 64 bits"},
      {"T0|w(0x10+1=256)|1", "line 2", "at most 8 bits"},
      {"T0|w(0x10+1=-129)|1", "line 2", "at most 8 bits"},
      {"T0|w(0x10+16=1)|1", "line 2", "at most 8 bytes"},
      {"T0|w(0x10+16=#x)|1", "line 2", "'x'"},
      {"T0|w(0x10+8=#1)|1", "line 2", "'#1'"},
      {"T0|rmw(x=1)|1", "line 2", "two values"},
      {"T0|rmw(x=,)|1", "line 2", "a value"},
      {"T0|r(0x10+0)|1", "line 2", "size from 1 to 16777215"},
      {"T0|r(0x10+16777216)|1", "line 2", "size from 1 to 16777215"},
      {"T0|r(0x11112222333344445+4)|1", "line 2", "address of at most 64 bits"},
      {"T0|r(0xffffffffffffffff+1)|1", "line 2", "ends below 2^64"},
      {"T0|alloc(x)|1", "line 2", "OP(0xADDRESS+SIZE)"},
      {"T0|alloc|1", "line 2", "OP(0xADDRESS+SIZE)"},
      {"T0|alloc(0x10+0)|1", "line 2", "size from 1"},
      {"T0|free(x)|1", "line 2", "OP(0xADDRESS)"},
      {"T0|free()|1", "line 2", "OP(0xADDRESS)"},
      {"T0|free(16)|1", "line 2", "OP(0xADDRESS)"},
      {"T0|end|1", "line 2", "'end' without 'begin'"},
      {"T0|begin|1\nT1|end|1", "line 3", "thread 'T1'"},
      {"T0|fork(T0)|1", "line 2", "another thread"},
      {"T0|join(T0)|1", "line 2", "another thread"},
      {"T0|fork(-)|1", "line 2", "OP(thread)"},
      {"T0|r(x)|1|7..6", "line 2", "lo <= hi"},
      {"T0|r(x)|1|7", "line 2", "lo..hi"},
      {"T0|r(x)|1|", "line 2", "lo..hi"},
      {"T0|r(x)|1|1..9223372036854775808", "line 2", "lo..hi"},
      {"T0|r(x)|1|1..2|", "line 2", "at most four fields"},
      {"T0|r(x)|1|5..6\nT1|r(x)|1|1..2\nT0|r(x)|1|3..4", "line 4", "program order"},
      {"T0|r(x)|1|5..6\nT0|r(x)|1", "line 3", "ends at 2"},
      {"T0 r(x) 1", "line 2", "THREAD|OP|LOCATION, found 'T0 r(x) 1'"},
      {"|r(x)|1", "line 2", "a thread"},
      {"-|r(x)|1", "line 2", "a header"},
      {"-|set|1", "line 2", "a header"},
      {"-|set(a)|", "line 2", "set(name;location"},
      {"-|set(a;x,,y)|", "line 2", "a location"},
      {"-|init(x)|", "line 2", "init(location=value)"},
      {"-|lost(-1)|", "line 2", "lost("},
      {"-|lost()|", "line 2", "lost("},
      {std::string("T0|r(x\0)|1", 10), "line 2", "NUL"},
      {"\x7f"
       "ELF\x02",
       "line 2", "'\\x7fELF\\x02'"},
      {std::string(100, 'x'), "line 2", std::string(60, 'x') + "'..."},
  };
  for (const auto& one : cases) {
    // Not a structured binding: clang 14 cannot capture one.
    const std::string& lines = std::get<0>(one);
    const std::string& where = std::get<1>(one);
    const std::string& message = std::get<2>(one);
    // A good line before, so that one-based counting shows, and one behind.
    const std::string error = error_of("T9|fence|\n" + lines + "\nT9|fence|\n");
    CAPTURE(lines);
    CHECK(error.starts_with("test.std: " + where + ": "));
    CHECK_MESSAGE(error.find(message) != std::string::npos, error);
    CHECK(error_of("T9|fence|\r\n" + lines) == error);
  }
}

TEST_CASE("std: inputs without events") {
  for (const char* text : {"", "\n\n", "# nothing\n", "-|init(unknown)|\n"}) {
    const auto trace = read_std_text(text, "empty.std");
    REQUIRE(!trace);
    CHECK(trace.error().kind == ErrorKind::kMalformed);
    CHECK(trace.error().message.find("no events") != std::string::npos);
  }
  const auto missing = read_std("/nonexistent/trace.std");
  REQUIRE(!missing);
  CHECK(missing.error().kind == ErrorKind::kUnreadable);
  const auto folder = read_std("/");
  REQUIRE(!folder);
  CHECK(folder.error().kind == ErrorKind::kUnreadable);
}

TEST_CASE("std: malformed lines can be skipped, and are counted") {
  StdOptions options;
  options.skip_malformed = true;
  const std::string text = "T0|r(x)|1\ngarbage\nT0|end|1\nT0|w(y)|2\n";
  auto reader = StdReader::from_text(text, "test.std", options);
  EventBlock block;
  CHECK(reader.next(block).value());
  CHECK(block.events.size() == 2);
  CHECK(!reader.next(block).value());
  CHECK(reader.skipped_lines() == 2);
  CHECK(!reader.complete());
}

TEST_CASE("std: the events before a malformed line are delivered") {
  auto reader = StdReader::from_text("T0|r(x)|1\nT0|w(x)|1\nbad\n", "test.std");
  EventBlock block;
  for (int call = 0; call < 2; ++call) {
    const auto more = reader.next(block);
    REQUIRE(!more);
    CHECK(more.error().where == "line 3");
    CHECK(block.events.size() == (call == 0 ? 2 : 0));
  }
}

TEST_CASE("std: line ends, byte order mark, RAPID's own names") {
  const auto expected = texts(read("T0|r(V123)|345\nT1|w(V234.23[0])|456\n"));
  CHECK(texts(read("T0|r(V123)|345\r\nT1|w(V234.23[0])|456\r\n")) == expected);
  CHECK(texts(read("T0|r(V123)|345\nT1|w(V234.23[0])|456")) == expected);
  CHECK(texts(read("\xEF\xBB\xBFT0|r(V123)|345\n\nT1|w(V234.23[0])|456\r")) == expected);
  CHECK(texts(read("T0|rel(L1)|1\n")).size() == 1);   // never acquired
  CHECK(texts(read("T0|begin(m)|1\n")).size() == 1);  // never ended
}

TEST_CASE("std: recognised by content") {
  CHECK(looks_like_std("T0|r(x)|1\n"));
  CHECK(looks_like_std("# c\n\n-|set(a;x)|\n"));
  CHECK(looks_like_std("T0|fence"));
  CHECK(looks_like_std("T0|begin|4\r\n"));
  CHECK(looks_like_std("T0|frob(x)|1\n"));
  CHECK(!looks_like_std(""));
  CHECK(!looks_like_std("# only a comment\n"));
  CHECK(!looks_like_std("X86 SB\n\"test\"\n{ x=0; }\n P0 | P1 ;\n"));
  CHECK(!looks_like_std("0: M[1] := 1\n1: M[0] == 0\ncheck\n"));
  CHECK(!looks_like_std(std::string_view("a|r(\0)|\n", 8)));
}

TEST_CASE("std: buffers of every size give the same events, and do not grow with the input") {
  const std::string text =
      write_std(read("-|set(q;x)|\nT0|begin(u;q)|a.c:1|0..3\nT0|r(x=5)|17\n"
                     "Thread-1|w(0x7f00+4=7)|\nT0|end|2|9..5000000000\n"));
  const auto expected = texts(read(text));
  for (size_t bytes = 1; bytes <= text.size() + 1; ++bytes) {
    for (const size_t events : {size_t{1}, size_t{3}, size_t{4096}}) {
      StdOptions options;
      options.buffer_bytes = bytes;
      options.block_events = events;
      const auto trace = read_std_text(text, "test.std", options);
      REQUIRE(trace.has_value());
      CHECK(texts(*trace) == expected);
    }
  }

  std::string many;
  for (int i = 0; i < 100000; ++i) {
    many += fmt::format("T{}|r(V{})|{}\n", i % 7, i % 1000, i);
  }
  StdOptions options;
  options.buffer_bytes = 4096;
  options.block_events = 64;
  auto reader = StdReader::from_text(many, "many.std", options);
  EventBlock block;
  size_t events = 0;
  while (reader.next(block).value()) {
    events += block.events.size();
    REQUIRE(block.events.size() <= 64);
    REQUIRE(block.events.capacity() <= 64);
  }
  CHECK(events == 100000);
  CHECK(reader.lines() == 100000);
  CHECK(reader.buffer_bytes() == 4096);
}

TEST_CASE("std: a line longer than the limit is an error, not memory") {
  const std::string line = "T0|r(x)|" + std::string(size_t{17} << 20, 'a');
  const auto trace = read_std_text(line, "long.std");
  REQUIRE(!trace);
  CHECK(trace.error().where == "byte 0");
  CHECK(trace.error().message.find("16777216 bytes") != std::string::npos);
}

TEST_CASE("std: a pipe is read as it is written") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  auto reader = StdReader::from_descriptor(ends[0], "<pipe>");
  EventBlock block;
  const auto put = [&](std::string_view text) {
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  };
  put("T0|r(x)|1\nT0|w(");
  REQUIRE(reader.next(block).value());
  CHECK(block.events.size() == 1);
  put("y)|2\n");
  REQUIRE(reader.next(block).value());
  CHECK(block.events.size() == 1);
  CHECK(reader.symbols().access_text(block.events[0]) == "y");
  ::close(ends[1]);
  CHECK(!reader.next(block).value());
  ::close(ends[0]);
}

namespace {

// Any trace that the vocabulary can express, with names that the format cannot.
Trace random_trace(std::mt19937_64& random) {
  const auto below = [&](uint64_t bound) { return random() % bound; };
  Trace trace;
  const auto fill = [&](Interner& table, size_t count, std::string_view alphabet) {
    while (table.size() < count) {
      std::string name;
      for (uint64_t length = 1 + below(20); length != 0; --length) {
        name += alphabet[below(alphabet.size())];
      }
      table.intern(name);
    }
  };
  fill(trace.symbols.threads, 3, "abT01");
  fill(trace.symbols.names, 6, "xyz[].09+");
  fill(trace.symbols.labels, 4, "abc(),=% ");
  trace.symbols.labels.intern("take;q,r");
  trace.symbols.labels.intern("");
  std::array<uint64_t, 3> open{};
  std::array<int64_t, 3> now{};
  const bool stamped = below(2) == 0;
  const uint64_t count = 1 + below(60);
  for (uint64_t i = 0; i < count; ++i) {
    Event event;
    event.thread = static_cast<ThreadId>(below(3));
    event.set_kind(static_cast<EventKind>(below(kEventKinds)));
    if (event.kind() == EventKind::kUnitEnd && open[event.thread] == 0) {
      event.set_kind(EventKind::kUnitBegin);
    }
    std::optional<uint64_t> read_value;
    std::optional<uint64_t> write_value;
    switch (event.kind()) {
      case EventKind::kFork:
      case EventKind::kJoin:
        event.address = (event.thread + 1 + below(2)) % 3;
        break;
      case EventKind::kUnitBegin:
        ++open[event.thread];
        event.address = below(trace.symbols.labels.size());
        break;
      case EventKind::kUnitEnd:
        --open[event.thread];
        break;
      case EventKind::kCall:
      case EventKind::kReturn:
        event.address = below(trace.symbols.labels.size());
        break;
      case EventKind::kFence:
      case EventKind::kBranch:
        break;
      case EventKind::kAllocate:
        event.size = 1 + (below(Event::kMaxSize) & (Event::kMaxSize - 1));
        event.address = random() >> 8;
        break;
      case EventKind::kFree:
        event.address = random();
        break;
      default: {
        constexpr std::array<uint32_t, 8> kSizes = {1, 2, 3, 4, 8, 16, 4096, Event::kMaxSize};
        if (below(2) == 0) {
          event.address = below(trace.symbols.names.size());
        } else {
          event.address = random() >> 8;
          event.size = kSizes[below(kSizes.size())] & Event::kMaxSize;
        }
        const uint32_t size = event.size;
        const auto value = [&]() -> std::optional<uint64_t> {
          if (size > 8 || below(2) == 0) {
            return std::nullopt;
          }
          return size == 0 || size == 8 ? random() : random() & ((uint64_t{1} << (8 * size)) - 1);
        };
        if (event.kind() == EventKind::kRead || event.kind() == EventKind::kReadModifyWrite) {
          read_value = value();
        }
        if (event.kind() == EventKind::kWrite || event.kind() == EventKind::kReadModifyWrite) {
          write_value = value();
        }
      }
    }
    switch (below(3)) {
      case 0:
        event.location = trace.symbols.intern_location(std::to_string(below(100000)));
        break;
      case 1:
        event.location = trace.symbols.intern_location(fmt::format("file {}.c:{}", i, i));
        break;
      default:
        break;
    }
    int64_t lo = static_cast<int64_t>(i);
    int64_t hi = lo;
    if (stamped) {
      lo = now[event.thread] + static_cast<int64_t>(below(1000)) - 300;
      hi = std::max(lo, now[event.thread]) +
           static_cast<int64_t>(below(2) == 0 ? 0 : random() >> 20);
      now[event.thread] = std::max(lo, now[event.thread]);
    }
    trace.add(event, lo, hi, read_value, write_value);
  }
  if (below(3) == 0) {
    trace.symbols.sets.push_back({"q", {{0, 0}, {0x1000, 8}}});
    trace.symbols.sets.push_back({"r", {}});
    trace.symbols.initial_values.push_back({{1, 0}, random()});
    trace.symbols.initial_zero = below(2) == 0;
    trace.complete = false;
    trace.lost_events = below(5);
  }
  return trace;
}

}  // namespace

TEST_CASE("std: random traces survive being written and read") {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Trace trace = random_trace(random);
    const std::string text = write_std(trace);
    CAPTURE(text);
    const auto copy = read_std_text(text, "copy");
    REQUIRE_MESSAGE(copy.has_value(), (copy ? "" : copy.error().to_string()));
    REQUIRE(texts(*copy) == texts(trace));
    REQUIRE(copy->complete == trace.complete);
    REQUIRE(copy->lost_events == trace.lost_events);
    REQUIRE(copy->symbols.initial_zero == trace.symbols.initial_zero);
    REQUIRE(copy->symbols.initial_values.size() == trace.symbols.initial_values.size());
    REQUIRE(copy->symbols.sets.size() == trace.symbols.sets.size());
    REQUIRE(write_std(*copy) == text);
  }
}

TEST_CASE("std: names that the format cannot hold stay distinct") {
  const std::vector<std::string> names = {"",
                                          "%",
                                          "a|b",
                                          "a%7Cb",
                                          "a%257Cb",
                                          "a(b)",
                                          "a=b",
                                          "a,b",
                                          "a;b",
                                          "a\nb",
                                          "a\rb",
                                          "-",
                                          "%2D",
                                          "0x10+8",
                                          "0x10%2B8",
                                          "#a",
                                          " a",
                                          "a ",
                                          "0x10",
                                          "%X0x1",
                                          "0xff+x",
                                          "\xEF\xBB\xBFT",
                                          std::string("a\0b", 3),
                                          std::string("\0", 1)};
  Trace trace;
  for (const std::string& name : names) {
    const uint32_t id = trace.symbols.names.intern(name);
    Event event;
    event.thread = trace.symbols.threads.intern(name);
    event.address = id;
    event.set_kind(EventKind::kWrite);
    trace.add(event, id, id, std::nullopt, id);
  }
  const auto copy = read_std_text(write_std(trace), "copy");
  REQUIRE_MESSAGE(copy.has_value(), (copy ? "" : copy.error().to_string()));
  REQUIRE(copy->events.size() == names.size());
  CHECK(copy->symbols.threads.size() == names.size());
  CHECK(copy->symbols.names.size() == names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    CHECK(copy->events[i].size == 0);
    CHECK(copy->write_value(copy->events[i]) == i);
  }
}
