// What captures say of their clock, and the intervals that readers make of it.
#include "decoders/capture/clock_margin.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/capture/encoder.h"
#include "decoders/capture/live.h"
#include "decoders/capture/reader.h"
#include "tests/decoders/recording.h"

namespace tsomon::capture {
namespace {

using Lines = std::vector<std::string>;

// A thread that holds a lock between two fences.
std::string section(uint64_t begin) {
  constexpr uint32_t kCapacity = 1024;
  auto encoder = std::make_unique<Encoder>();
  std::vector<uint8_t> tokens(kCapacity + kMaxToken);
  start_chunk(*encoder, tokens.data(), kCapacity);
  const auto put = [&](RecordType type, uint64_t address, std::initializer_list<uint64_t> words) {
    Record record;
    record.type = type;
    record.address = address;
    for (const uint64_t word : words) {
      record.words[record.count++] = word;
    }
    put_record(*encoder, record);
  };
  put(RecordType::kFence, 0, {begin, begin + 5});
  put(RecordType::kAcquire, 0x9000, {begin + 10});
  put_access(*encoder, 0x8000, make_key(RecordType::kWrite, 8, 0));
  put(RecordType::kRelease, 0x9000, {begin + 20});
  const ChunkStart start;
  std::string payload(reinterpret_cast<const char*>(&start), sizeof start);
  payload.append(reinterpret_cast<const char*>(tokens.data()), encoder->end);
  return payload;
}

ClockEntry measured(uint64_t margin, uint64_t backwards = 0, uint64_t until = 5000) {
  ClockEntry entry;
  entry.until = until;
  entry.margin = margin;
  entry.backwards = backwards;
  return entry;
}

Capture read_with(const std::vector<ClockEntry>& entries) {
  Recording file;
  for (const ClockEntry& entry : entries) {
    REQUIRE(file.writer.write_raw(kClockChunk, kNoThread, 0, &entry, sizeof entry) == 0);
  }
  file.events(0, 0, section(1000));
  file.events(1, 0, section(1011));
  file.trailer();
  auto capture = read_capture(file.bytes());
  REQUIRE_MESSAGE(capture.has_value(), capture.error().to_string());
  return std::move(*capture);
}

TEST_CASE("intervals of a capture are as wide as its counters may differ") {
  const Lines trusted = {"T0 fence [1000,1005]",      "T0 acq 0x9000 [1010,1010]",
                         "T0 w 0x8000+8 [1010,1020]", "T1 fence [1011,1016]",
                         "T0 rel 0x9000 [1020,1020]", "T1 acq 0x9000 [1021,1021]",
                         "T1 w 0x8000+8 [1021,1031]", "T1 rel 0x9000 [1031,1031]"};
  CHECK(describe(read_with({}).trace) == trusted);
  CHECK(describe(read_with({measured(0)}).trace) == trusted);
  // The widest of all holds. Locks say by a value that they come in the order of their beginnings.
  const Capture wide = read_with({measured(7), measured(100), measured(50)});
  CHECK(describe(wide.trace) ==
        Lines{"T0 fence [900,1005]", "T0 acq 0x9000 wrote 1010 [910,1010]",
              "T0 w 0x8000+8 [910,1020]", "T1 fence [911,1016]",
              "T0 rel 0x9000 wrote 1020 [920,1020]", "T1 acq 0x9000 wrote 1021 [921,1021]",
              "T1 w 0x8000+8 [921,1031]", "T1 rel 0x9000 wrote 1031 [931,1031]"});
  CHECK(wide.problems.empty());
  CHECK(wide.notes.empty());
}

TEST_CASE("a wider margin than was measured can be asked for, a narrower one not") {
  for (const int64_t least : {0, 50, 100, 300}) {
    CAPTURE(least);
    Recording file;
    const ClockEntry entry = measured(100);
    REQUIRE(file.writer.write_raw(kClockChunk, kNoThread, 0, &entry, sizeof entry) == 0);
    file.events(0, 0, section(1000));
    file.trailer();
    const std::string bytes = file.bytes();
    auto reader = CaptureReader::open(bytes, least);
    REQUIRE(reader.has_value());
    EventBlock events;
    reader->next(events, 100);
    REQUIRE(!events.events.empty());
    CHECK(events.lo(events.events.front()) == 1000 - std::max<int64_t>(least, 100));
  }
}

TEST_CASE("a clock that contradicts itself orders nothing, and the capture says so") {
  for (const auto& entries :
       {std::vector{measured(100), measured(kNoMargin)},
        std::vector{measured(100), measured(100, 101)}, std::vector{measured(uint64_t{1} << 62)}}) {
    const Capture capture = read_with(entries);
    // Two threads that did not end: what came before the end nobody knows.
    REQUIRE(capture.problems.size() == 1);
    CHECK(capture.problems.front() == kRanOn);
    REQUIRE(capture.notes.size() == 1);
    CHECK(capture.notes.front().find("not to be trusted") != std::string::npos);
    for (const Event& event : capture.trace.events) {
      CHECK(capture.trace.lo(event) == kTimeMin);
      CHECK(capture.trace.hi(event) == kTimeMax);
    }
  }
}

TEST_CASE("what was done before the end is not cut off by a stamp that went ahead") {
  for (const bool back : {false, true}) {
    CAPTURE(back);
    Recording file;
    const ClockEntry entry = measured(100, back ? 100 : 0);
    REQUIRE(file.writer.write_raw(kClockChunk, kNoThread, 0, &entry, sizeof entry) == 0);
    file.events(0, 0, section(1000));
    file.events(1, 0, section(1202));
    file.trailer(0, 1121);
    const auto capture = read_capture(file.bytes());
    REQUIRE(capture.has_value());
    CHECK(capture->trace.events.size() == (back ? 7 : 4));
    CHECK(capture->problems.size() == (back ? 1 : 0));
  }
}

TEST_CASE("what comes after the last measurement is not known, but by a later one") {
  for (const bool again : {false, true}) {
    CAPTURE(again);
    Recording file;
    const ClockEntry first = measured(100, 0, 900);
    const ClockEntry last = measured(100, 0, 1250);
    REQUIRE(file.writer.write_raw(kClockChunk, kNoThread, 0, &first, sizeof first) == 0);
    file.events(0, 0, section(1000));
    if (again) {
      REQUIRE(file.writer.write_raw(kClockChunk, kNoThread, 0, &last, sizeof last) == 0);
    }
    file.trailer(0, 1200);
    const auto capture = read_capture(file.bytes());
    REQUIRE(capture.has_value());
    CHECK(capture->problems.empty());
    CHECK(capture->notes.size() == (again ? 0 : 1));
    CHECK((capture->trace.lo(capture->trace.events.front()) == kTimeMin) == !again);
  }
}

TEST_CASE("a measurement that is cut off is a problem") {
  Recording file;
  const ClockEntry entry = measured(10);
  REQUIRE(file.writer.write_raw(kClockChunk, kNoThread, 0, &entry, sizeof entry - 1) == 0);
  file.events(0, 0, section(1000));
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture.has_value());
  CHECK(capture->problems.size() == 1);
}

// Of a live capture whose thread records between the first two of these measurements.
struct LiveClock {
  Lines lines;  // where events begin
  std::vector<int64_t> promises;
  int64_t round = 0;
  bool moved = false;
  uint64_t checks = 0;
  std::vector<std::string> problems;
};
LiveClock live_clock(const std::vector<ClockEntry>& entries) {
  Writer::Options options;
  options.live = true;
  Recording file(options);
  for (size_t i = 0; i != entries.size(); ++i) {
    REQUIRE(file.writer.write_raw(kClockChunk, kNoThread, 0, &entries[i], sizeof entries[i]) == 0);
    if (i == 0) {
      file.events(0, 0, section(100'000));
    }
    RoundEntry round;
    round.since = (i + 2) * 100'000;
    REQUIRE(file.writer.write_raw(ChunkType::kRound, kNoThread, 0, &round, sizeof round) == 0);
  }
  file.trailer();
  LiveReader reader;
  REQUIRE(reader.feed(file.bytes()).has_value());
  LiveClock result;
  reader.take([&](const LiveReader::News& news) {
    result.promises.push_back(news.promise);
    for (const Event& event : news.events->events) {
      result.lines.push_back(std::to_string(event.lo));
    }
  });
  result.round = reader.round();
  reader.finish();
  result.moved = reader.clock_moved();
  result.checks = reader.clock_checks();
  result.problems = reader.problems();
  return result;
}
ClockEntry measured_at(uint64_t since, uint64_t margin, uint64_t early = 0) {
  ClockEntry entry = measured(margin);
  entry.since = since;
  entry.early = early;
  return entry;
}

TEST_CASE("a live capture is wider than its first measurement asks for") {
  // Half as much again, and a fast message more at least.
  struct Case {
    uint64_t first;
    uint64_t allowed;
  };
  for (const Case& one : {Case{100, 356}, Case{4000, 6000}}) {
    const uint64_t allowed = one.allowed;
    for (const uint64_t later : {one.first, allowed, allowed + 1}) {
      const LiveClock live = live_clock({measured_at(1, one.first), measured_at(2, later)});
      const auto early = [&](uint64_t stamp) { return std::to_string(stamp - allowed); };
      CHECK(live.lines == Lines{early(100'000), early(100'010), early(100'010), early(100'020)});
      // What comes after the stamp of a round may have one that is smaller by as much.
      CHECK(live.round == static_cast<int64_t>(300'000 - 2 * allowed));
      for (const int64_t promise : live.promises) {
        CHECK(promise <= live.round);
      }
      CHECK(live.moved == (later > allowed));
      // Up to the last good measurement what is certain stays so; the end is looked at, too.
      CHECK(live.checks == (later > allowed ? 1U : 3U));
      CHECK(live.problems.empty() == (later <= allowed));
    }
  }
}

TEST_CASE("a live capture: what a wide measurement leaves open a later one can show") {
  const ClockEntry first = measured_at(1, 100);
  const ClockEntry wide = measured_at(2, 700);
  const ClockEntry good = measured_at(3, 300);
  LiveClock live = live_clock({first, wide, good});
  CHECK_FALSE(live.moved);
  CHECK(live.checks == 3);
  CHECK(live.problems.empty());

  live = live_clock({first, good, wide});
  CHECK(live.moved);
  CHECK(live.checks == 2);
  REQUIRE(live.problems.size() == 1);
  CHECK(
      live.problems[0].find("may have moved: they agree within 700 cycles now, 356 were allowed") !=
      std::string::npos);

  // What is told once more was not measured again.
  live = live_clock({first, first, wide, wide});
  CHECK(live.moved);
  CHECK(live.checks == 1);
  CHECK(live_clock({first, first}).checks == 2);
}

TEST_CASE("a live capture: a message that was read too early before it was sent contradicts") {
  const ClockEntry first = measured_at(1, 100);
  const LiveClock live =
      live_clock({first, measured_at(2, 700, 400), measured_at(3, 100), measured_at(4, 100)});
  CHECK(live.moved);
  CHECK(live.checks == 1);
  REQUIRE(live.problems.size() == 1);
  CHECK(live.problems[0].find("moved: they differ by 400 cycles at least, 356 were allowed") !=
        std::string::npos);
  CHECK_FALSE(live_clock({first, measured_at(2, 700, 300), measured_at(3, 100)}).moved);
}

// Against the plainest means: the same events, built anew.
TEST_CASE("widening keeps everything but the beginnings") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    EventBlock block;
    EventBlock expected;
    const auto margin = static_cast<int64_t>(random() % 3 == 0 ? random() % (int64_t{1} << 40)
                                                               : random() % 1000 + 1);
    for (int i = 0; i < 20; ++i) {
      Event event;
      event.thread = static_cast<ThreadId>(random() % 4);
      event.set_kind(static_cast<EventKind>(random() % 6));
      event.address = random() % 100;
      event.size = random() % 2 == 0 ? 8 : 0;
      const int64_t lo = random() % 8 == 0 ? kTimeMin : static_cast<int64_t>(random() % 100'000);
      const int64_t hi = random() % 8 == 0   ? kTimeMax
                         : lo == kTimeMin    ? static_cast<int64_t>(random() % 1000)
                         : random() % 3 == 0 ? lo
                                             : lo + static_cast<int64_t>(random() % (1ULL << 33));
      const bool lock = is(event, kinds::kLocks);
      std::optional<uint64_t> read;
      std::optional<uint64_t> write;
      if (!lock && random() % 3 == 0) {
        read = random();
      }
      if (!lock && random() % 3 == 0) {
        write = random();
      }
      block.add(event, lo, hi, read, write);
      const int64_t begin = lo == kTimeMin ? lo : lo - margin;
      expected.add(event, begin, hi, read, lock ? static_cast<uint64_t>(lo) : write);
    }
    widen(block, 0, margin);
    for (size_t i = 0; i < block.events.size(); ++i) {
      const Event& a = block.events[i];
      const Event& b = expected.events[i];
      REQUIRE(block.lo(a) == expected.lo(b));
      REQUIRE(block.hi(a) == expected.hi(b));
      REQUIRE(block.read_value(a) == expected.read_value(b));
      REQUIRE(block.write_value(a) == expected.write_value(b));
    }
  }
}

}  // namespace
}  // namespace tsomon::capture
