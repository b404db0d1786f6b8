// What records mean: units, objects, fences and handlers of signals, in captures that may have gaps.
#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/capture/reader.h"
#include "decoders/capture/writer.h"
#include "tests/decoders/recording.h"
#include "tests/decoders/records.h"

namespace tsomon::capture {
namespace {

std::string unit_with_read(uint64_t tsc, uint64_t address) {
  return Records()
      .other(kUnitBegin, 1, 0, 0, 0, tsc)
      .access(kRead, address, 4)
      .stamp(tsc + 5)
      .access(kRead, address + 4, 4);
}

TEST_CASE("units are cut at a gap, intervals stay sound across it") {
  Recording file;
  file.text(ChunkType::kLabels, 1, "u");
  file.events(0, 0, unit_with_read(10, 0x100));
  file.events(0, 2, Records().access(kRead, 0x200, 4).other(kUnitEnd, 0, 0, 0, 0, 30));
  file.events(0, 3, Records().lost(12).other(kUnitBegin, 1, 0, 0, 0, 40).stamp(50));
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems ==
        Lines{"thread 0, chunk 1 is missing", "thread 0: 12 records are lost"});
  CHECK(capture->trace.lost_events == 12);
  CHECK(describe(capture->trace) == Lines{
                                        "T0 begin u [10,10]",
                                        "T0 r 0x100+4 [10,15]",
                                        "T0 r 0x104+4 [15,30]",
                                        "T0 end [15,30]",
                                        "T0 r 0x200+4 [15,30]",
                                        "T0 begin u [40,40]",
                                    });
}

TEST_CASE("a cancelled unit is none; so is one whose end is not there, if units may be cancelled") {
  for (const bool may_cancel : {false, true}) {
    CAPTURE(may_cancel);
    Writer::Options options;
    options.may_cancel = may_cancel;
    Recording file(options);
    file.text(ChunkType::kLabels, 1, "u");
    file.events(0, 0,
                Records()
                    .other(kUnitBegin, 1, 0, 0, 0, 10)
                    .access(kRead, 0x100, 4)
                    .other(kUnitCancel, 0, 0, 0, 0, 20)
                    .other(kUnitBegin, 1, 0, 0, 0, 30)
                    .lost(1)
                    .stamp(40)
                    .other(kUnitBegin, 1, 0, 0, 0, 50));
    file.trailer();
    const auto capture = read_capture(file.bytes());
    REQUIRE(capture);
    CHECK(capture->may_cancel == may_cancel);
    CHECK(capture->may_have_units);
    const Lines unknown = may_cancel
                              ? Lines{"T0 cancelled begin 0x0 [30,30]", "T0 cancel [30,40]",
                                      "T0 cancelled begin 0x0 [50,50]"}
                              : Lines{"T0 begin u [30,30]", "T0 end [30,40]", "T0 begin u [50,50]"};
    Lines expected{"T0 cancelled begin 0x0 [10,10]", "T0 r 0x100+4 [10,20]", "T0 cancel [20,20]"};
    expected.insert(expected.end(), unknown.begin(), unknown.end());
    Lines found = describe(capture->trace);
    for (std::string& line : found) {
      // Not what a label's number is.
      if (line.find("cancelled begin") != std::string::npos) {
        line = "T0 cancelled begin 0x0" + line.substr(line.rfind(' '));
      }
    }
    CHECK(found == expected);
  }
}

TEST_CASE("a whole capture without labels has no units") {
  const auto may_have_units = [](bool label, bool trailer) {
    Recording file;
    if (label) {
      file.text(ChunkType::kLabels, 1, "u");
    }
    file.events(0, 0, Records().access(kRead, 0x100, 4).stamp(10));
    if (trailer) {
      file.trailer();
    }
    const auto capture = read_capture(file.bytes());
    REQUIRE(capture);
    return capture->may_have_units;
  };
  CHECK(!may_have_units(false, true));
  CHECK(may_have_units(true, true));
  CHECK(may_have_units(false, false));  // the label may be missing
}

TEST_CASE("a thread that spins makes three events for each value") {
  Recording file;
  constexpr uint64_t kLoads = 10'000;
  Records records;
  for (uint64_t i = 0; i < kLoads; ++i) {
    const uint64_t now = 10 + 2 * i;
    records.other(kAtomicLoad, 0x8000, 0x1001, 8, 0, now, now + 1, i < kLoads / 2 ? 5 : 6);
    if (i % 100 == 99) {
      file.events(0, i / 100, records);
      records = Records();
    }
  }
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  // Three for each of the blocks, which are the chunks here.
  CHECK(capture->trace.events.size() == 3 * kLoads / 100);
  CHECK(describe(capture->trace, capture->trace.events.front()) == "T0 r 0x8000+8 read 5 [10,11]");
  CHECK(describe(capture->trace, capture->trace.events.back()) ==
        fmt::format("T0 r 0x8000+8 read 6 [{},{}]", 8 + 2 * kLoads, 9 + 2 * kLoads));
}

TEST_CASE("objects begin and end") {
  Recording file;
  file.events(0, 0,
              Records()
                  .other(kAllocate, 0x7000, 0x1001, 0, kSeparates, 10, 10, 48)
                  .access(kWrite, 0x7008, 8)
                  .other(kFree, 0x7000, 0x1002, 0, kSeparates, 20)
                  .other(kAllocate, 0x7000, 0, 0, 0, 30, 30)
                  .other(kAllocate, 0x7000, 0, 0, 0, 30, 30, 0)
                  .other(kAllocate, 0x7000, 0, 0, 0, 30, 30, Event::kMaxSize + 1)
                  .other(kAllocate, ~uint64_t{0}, 0, 0, 0, 30, 30, 8));
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems.size() == 5);
  CHECK(capture->problems.back() == "thread 0: 4 records are lost");
  CHECK(describe(capture->trace) ==
        Lines{"T0 alloc 0x7000+48 [10,10]", "T0 w 0x7008+8 [10,20]", "T0 free 0x7000 [20,20]"});
}

TEST_CASE("blocks of memory begin and end, with stamps or without") {
  Recording file;
  file.events(0, 0,
              Records()
                  .stamp(5)
                  .other(kBlock, 0x7000, 0x1001, 48, kSeparates, 10)
                  .other(kBlockEnd, 0x7000, 0x1002, 48, 0)
                  .other(kBlock, 0x7000, 0x1001, 16, 0)
                  .stamp(20)
                  .other(kBlock, 0x10000, 0, 0, kSeparates, 30, 30, 1 << 25)
                  .other(kBlockEnd, 0x10000, 0, 0, kSeparates, 40)
                  .other(kBlock, 0x7000, 0, 0, kSeparates, 50, 50)
                  .other(kBlockEnd, ~uint64_t{0}, 0, 0, kSeparates, 60, 60, 8));
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems.back() == "thread 0: 2 records are lost");
  std::vector<uint64_t> bytes;
  for (const Event& event : capture->trace.events) {
    CHECK(event.size == 0);
    bytes.push_back(capture->trace.write_value(event).value_or(0));
  }
  CHECK(bytes == std::vector<uint64_t>{48, 48, 16, 1 << 25, 0});
}

TEST_CASE("what a signal handler interrupted may have come after it") {
  Recording file;
  Records outer;
  outer.stamp(10).access(kRead, 0x10, 4).stamp(20).access(kRead, 0x20, 4).access(kWrite, 0x30, 4);
  Records handler(0, outer);
  handler.stamp(30).access(kRead, 0x40, 4).stamp(40);
  // Of the interrupted hook: the stamp is older than the handler. The next one may not be.
  outer.stamp(25).access(kRead, 0x50, 4).stamp(50).access(kRead, 0x60, 4);
  file.events(0, 0, outer);
  file.events(0, 1, handler);
  file.events(0, 2, Records().stamp(60).stamp(55));
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems ==
        Lines{"thread 0, chunk 2: a time stamp lies 5 cycles before an earlier one: the time-stamp "
              "counters of this machine are not synchronised"});
  CHECK(describe(capture->trace) == Lines{
                                        "T0 r 0x10+4 [10,20]",
                                        "T0 r 0x20+4 [20,30]",
                                        "T0 w 0x30+4 [20,inf]",
                                        "T0 r 0x40+4 [30,40]",
                                        "T0 r 0x50+4 [40,50]",
                                        "T0 r 0x60+4 [50,60]",
                                    });
}

void check_events(Recording& file, const Lines& events) {
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  CHECK(fmt::format("{}", fmt::join(describe(capture->trace), "; ")) ==
        fmt::format("{}", fmt::join(events, "; ")));
}

// What is recorded first after a handler may have come before it.
TEST_CASE("what a handler does begins no later than what is recorded next and came before it") {
  struct Next {
    std::string name;
    bool settled;
    std::function<void(Records&)> record;
    Lines events;
  };
  const Next all[] = {
      {"an older stamp",
       false,
       [](Records& outer) { outer.other(kAcquire, 0x20, 0, 0, kSeparates, 15).stamp(60); },
       {"T0 r 0x10+4 [0,10]", "T0 rmw 0x40+4 [15,35]", "T0 acq 0x20 [15,40]"}},
      {"an older stamp and one that is not",
       false,
       [](Records& outer) {
         outer.other(kAcquire, 0x20, 0, 0, kSeparates, 15)
             .other(kRelease, 0x20, 0, 0, kSeparates, 50)
             .stamp(60);
       },
       {"T0 r 0x10+4 [0,10]", "T0 rmw 0x40+4 [15,35]", "T0 acq 0x20 [15,40]",
        "T0 rel 0x20 [50,50]"}},
      {"a plain access",
       false,
       [](Records& outer) { outer.access(kRead, 0x20, 4).access(kRead, 0x30, 4).stamp(60); },
       {"T0 r 0x10+4 [0,10]", "T0 rmw 0x40+4 [10,35]", "T0 r 0x20+4 [10,60]",
        "T0 r 0x30+4 [40,60]"}},
      {"a plain access that had not come",
       true,
       [](Records& outer) { outer.access(kRead, 0x20, 4).stamp(60); },
       {"T0 r 0x10+4 [0,10]", "T0 rmw 0x40+4 [25,35]", "T0 r 0x20+4 [40,60]"}},
      {"a load of an atomic",
       true,
       [](Records& outer) {
         outer.other(kAtomicLoad, 0x20, 0, 4, kSeparates | kOpenEnd, 10, 0, 7).stamp(60);
       },
       {"T0 r 0x10+4 [0,10]", "T0 rmw 0x40+4 [10,35]", "T0 r 0x20+4 read 7 [10,60]"}},
      {"a stamp",
       false,
       [](Records& outer) { outer.stamp(55).access(kRead, 0x20, 4).stamp(60); },
       {"T0 r 0x10+4 [0,10]", "T0 rmw 0x40+4 [25,35]", "T0 r 0x20+4 [55,60]"}},
  };
  for (const Next& next : all) {
    CAPTURE(next.name);
    Recording file;
    Records outer;
    outer.stamp(0).access(kRead, 0x10, 4).stamp(10);
    Records handler(0, outer);
    if (next.settled) {
      handler.settled();
    }
    handler.stamp(20).other(kAtomicReadModifyWrite, 0x40, 0, 4, kSeparates, 25, 35).stamp(40);
    next.record(outer);
    file.events(0, 0, outer);
    file.events(0, 1, handler);
    file.trailer();
    check_events(file, next.events);
  }
}

// The beginnings of events of locks and hand-overs are their order among the threads (clock_margin.h, tso/model/hand_over.h).
TEST_CASE("a handler between the stamp and the record of a lock or a hand-over moves neither") {
  struct Handler {
    std::string name;
    std::function<void(Records&)> record;
    Lines events;
  };
  const Handler all[] = {
      {"its last access waits for a stamp",
       [](Records& handler) { handler.stamp(20).access(kWrite, 0x40, 4); },
       {"T0 r 0x10+4 [0,10]", "T0 w 0x40+4 [15,60]", "T0 acq 0x20 [15,60]"}},
      {"it sends",
       [](Records& handler) { handler.other(kSend, 0x70, 0, 0, kSeparates, 25).stamp(40); },
       {"T0 r 0x10+4 [0,10]", "T0 send 0x70 [25,25]", "T0 acq 0x20 [15,40]"}},
      {"it takes a lock",
       [](Records& handler) { handler.other(kAcquire, 0x70, 0, 0, kSeparates, 25).stamp(40); },
       {"T0 r 0x10+4 [0,10]", "T0 acq 0x70 [25,25]", "T0 acq 0x20 [15,40]"}},
  };
  for (const Handler& each : all) {
    CAPTURE(each.name);
    Recording file;
    Records outer;
    outer.stamp(0).access(kRead, 0x10, 4).stamp(10);
    Records handler(0, outer);
    each.record(handler);
    outer.other(kAcquire, 0x20, 0, 0, kSeparates, 15).stamp(60);
    file.events(0, 0, outer);
    file.events(0, 1, handler);
    file.trailer();
    check_events(file, each.events);
  }
}

// Linear in the pieces: with a search or an insertion for each this would take minutes.
TEST_CASE("handlers within handlers interrupt a copy of very many pieces") {
  constexpr uint64_t kPieces = 800'000;
  constexpr uint64_t kHandlers = 20;
  Recording file;
  Records outer;
  outer.stamp(10).other(kRangeRead, 0x1000, 0x400000, 0, 0, kPieces * Event::kMaxSize);
  std::vector<Records> handlers;
  for (uint64_t i = 0; i < kHandlers; ++i) {
    handlers.emplace_back(i, i == 0 ? outer : handlers.back());
  }
  handlers.back().access(kRead, 0x10, 4).stamp(30);
  outer.access(kWrite, 0x20, 4, 0x400000).stamp(50);
  file.events(0, 0, outer);
  for (uint64_t i = 0; i < kHandlers; ++i) {
    file.events(0, i + 1, handlers[i]);
  }
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  const Trace& trace = capture->trace;
  REQUIRE(trace.events.size() == kPieces + 2);
  const auto open = std::count_if(
      trace.events.begin(), trace.events.end(),
      [&](const Event& event) { return trace.lo(event) == 10 && trace.hi(event) == kTimeMax; });
  CHECK(open == kPieces);
  CHECK(trace.hi(trace.events[kPieces]) == 30);
  CHECK(trace.hi(trace.events[kPieces + 1]) == 50);
}

TEST_CASE("cached accesses, runs that end and chunks that are lost give the same events") {
  // A loop of three instructions; the addresses of one of them cannot be cached.
  const uint32_t seed = 3;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Recording file;
  Lines expected;
  std::string second;
  for (uint64_t chunk = 0; chunk < 3; ++chunk) {
    Records records;
    const uint64_t from = 1000 * (chunk + 1);
    records.stamp(from);
    for (uint64_t i = 0; i < 100; ++i) {
      const uint64_t addresses[] = {0x1000, 0x2000 + 8 * i, 0x100000 + random() % 0x100000};
      for (uint64_t j = 0; j < 3; ++j) {
        records.access(j == 1 ? kWrite : kRead, addresses[j], 8, 0x400010 + 0x10 * j);
        if (chunk != 1) {
          expected.push_back(fmt::format("T0 {} 0x{:x}+8 [{},{}]", j == 1 ? "w" : "r", addresses[j],
                                         from, chunk == 0 ? 3000 : from + 500));
        }
      }
    }
    if (chunk != 0) {
      records.stamp(from + 500);
    }
    if (chunk != 1) {
      file.events(0, chunk, records);
    }
  }
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{"thread 0, chunk 1 is missing"});
  CHECK(describe(capture->trace) == expected);
}

TEST_CASE("a fence without an end lasts until the next stamp") {
  Recording file;
  file.events(0, 0,
              Records()
                  .other(kRelease, 0x90, 0, 0, kSeparates, 20)
                  .other(kFence, 0, 0, 0, kSeparates | kOpenEnd, 20, 0)
                  .access(kRead, 0x20, 4)
                  .stamp(50));
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  CHECK(describe(capture->trace) ==
        Lines{"T0 rel 0x90 [20,20]", "T0 fence [20,50]", "T0 r 0x20+4 [20,50]"});
}

TEST_CASE("a read-modify-write without an end lasts until the next stamp, as the load behind it") {
  Recording file;
  file.events(
      0, 0,
      Records()
          .stamp(10)
          .other(kAtomicReadModifyWrite, 0x10, 0x7100, 4, kSeparates | kOpenEnd, 20, 0, 1, 2)
          .other(kAtomicLoad, 0x20, 0x7100, 4, kSeparates | kOpenEnd, 20, 0, 3)
          .stamp(50)
          .other(kAtomicReadModifyWrite, 0x10, 0x7100, 4, kSeparates | kOpenEnd, 50, 0, 2, 5)
          .other(kAtomicReadModifyWrite, 0x10, 0x7100, 4, kSeparates | kOpenEnd, 70, 0, 5, 6)
          .access(kRead, 0x30, 4));
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  CHECK(describe(capture->trace) ==
        Lines{"T0 rmw 0x10+4 read 1 wrote 2 [20,50]", "T0 r 0x20+4 read 3 [20,50]",
              "T0 rmw 0x10+4 read 2 wrote 5 [50,70]", "T0 rmw 0x10+4 read 5 wrote 6 [70,inf]",
              "T0 r 0x30+4 [70,inf]"});
}

TEST_CASE("what a thread did after the end of the process does not count") {
  Recording file;
  file.events(0, 0,
              Records()
                  .stamp(10)
                  .access(kRead, 0x10, 4)
                  .other(kFence, 0, 0, 0, kSeparates, 20, 30)
                  .access(kRead, 0x20, 4)
                  .other(kFence, 0, 0, 0, kSeparates, 40, 50)
                  .access(kRead, 0x30, 4));
  file.events(1, 0, Records().stamp(45).access(kRead, 0x40, 4));
  file.trailer(0, 35);
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  CHECK(describe(capture->trace) ==
        Lines{"T0 r 0x10+4 [10,20]", "T0 fence [20,30]", "T0 r 0x20+4 [30,inf]"});
}

TEST_CASE("handlers that interrupt handlers stand where they interrupted") {
  Records outer;
  for (uint64_t i = 0; i < 10; ++i) {
    outer.access(kWrite, 0x100 + 4 * i, 4, 0x400000);
  }
  Records handler(0, outer);
  handler.stamp(10).access(kRead, 0x200, 4).access(kRead, 0x204, 4);
  Records inner(1, handler);
  inner.stamp(20).access(kRead, 0x300, 4).stamp(30);
  handler.access(kRead, 0x208, 4).stamp(40);
  Records again(1, handler);
  again.stamp(50).access(kRead, 0x400, 4).stamp(60);
  Records more(0, outer);  // the first handler's second chunk
  more.stamp(70).access(kRead, 0x500, 4).stamp(80);
  for (uint64_t i = 10; i < 12; ++i) {
    outer.access(kWrite, 0x100 + 4 * i, 4, 0x400000);
  }
  Recording file;
  file.events(0, 0, outer);
  file.events(0, 1, handler);
  file.events(0, 2, inner);
  file.events(0, 3, again);
  file.events(0, 4, more);
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  std::vector<uint64_t> addresses;
  for (const Event& event : capture->trace.events) {
    addresses.push_back(event.address);
  }
  CHECK(addresses == std::vector<uint64_t>{0x100, 0x104, 0x108, 0x10c, 0x110, 0x114, 0x118, 0x11c,
                                           0x120, 0x124, 0x200, 0x204, 0x300, 0x208, 0x400, 0x500,
                                           0x128, 0x12c});
}

}  // namespace
}  // namespace tsomon::capture
