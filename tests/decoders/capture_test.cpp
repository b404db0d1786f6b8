#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "decoders/capture/encoder.h"
#include "decoders/capture/reader.h"
#include "decoders/capture/writer.h"
#include "tests/decoders/recording.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tsomon::capture {
namespace {

// The payload of a chunk.
class Records {
 public:
  Records() : encoder_(std::make_unique<Encoder>()), tokens_(kCapacity + kMaxToken) {
    start_chunk(*encoder_, tokens_.data(), kCapacity);
  }
  // Of a handler that interrupted `outer`, as it is now, which will be the chunk `sequence`.
  Records(uint64_t sequence, const Records& outer) : Records() {
    Position position;
    REQUIRE(snapshot(*outer.encoder_, &position));
    start_ = {sequence + 1, position.end, static_cast<uint16_t>(position.slot),
              static_cast<uint16_t>(position.count)};
  }

  Records& access(RecordType type, uint64_t address, uint32_t size, uint64_t pc = 0) {
    const uint64_t key = make_key(type, size, pc);
    const Foreseen foreseen = foresee(*encoder_, address, key, 8 * key_slot(key));
    REQUIRE(foreseen != Foreseen::kExpired);
    if (foreseen == Foreseen::kNo) {
      put_access(*encoder_, address, key);
    }
    return *this;
  }
  Records& stamp(uint64_t tsc) {
    put_stamp(*encoder_, tsc);
    return *this;
  }
  Records& lost(uint64_t count) {
    put_lost(*encoder_, count);
    return *this;
  }
  template <typename... Word>
  Records& other(RecordType type, uint64_t address, uint64_t pc, uint32_t size, uint32_t flags,
                 Word... words) {
    put_record(
        *encoder_,
        {type, size, flags, sizeof...(words), address, pc, {static_cast<uint64_t>(words)...}});
    return *this;
  }
  Records& token(std::initializer_list<uint8_t> bytes) {
    for (const uint8_t byte : bytes) {
      tokens_[encoder_->end++] = byte;
    }
    return *this;
  }
  operator std::string() const {
    if (has_run(*encoder_)) {
      put_nothing(*encoder_);
    }
    std::string payload(reinterpret_cast<const char*>(&start_), sizeof start_);
    payload.append(reinterpret_cast<const char*>(tokens_.data()), encoder_->end);
    return payload;
  }

 private:
  static constexpr size_t kCapacity = 4096;
  std::unique_ptr<Encoder> encoder_;
  std::vector<uint8_t> tokens_;
  ChunkStart start_;
};

using Lines = std::vector<std::string>;
using enum RecordType;

// Every kind of record in two threads, in chunks packed and not; every record has its own pc.
std::string sample() {
  Recording file;
  file.text(ChunkType::kLabels, 7, "take");
  file.text(ChunkType::kThreadNames, 1, "work|er (1)");
  uint64_t last_pc = 0x1000;
  const auto pc = [&] { return ++last_pc; };
  file.events(0, 0,
              Records()
                  .other(kThreadBegin, 0, pc(), 0, 0, 100)
                  .access(kWrite, 0x7f10, 4, pc())
                  .other(kFork, 1, pc(), 0, 0, 110));
  file.events(1, 0,
              Records()
                  .other(kThreadBegin, 0, pc(), 0, 0, 120)
                  .other(kUnitBegin, 7, pc(), 0, 0)
                  .access(kRead, 0x7f14, 8, pc())
                  .other(kAtomicLoad, 0x8000, pc(), 4, 0, 130, 140, 0xFFFFFFFF00000005)
                  .access(kRead, 0x7f20, 1, pc())
                  .other(kAtomicReadModifyWrite, 0x8000, pc(), 8, kSeparates, 150, 160, 1, 2),
              true);
  file.events(0, 1,
              Records()
                  .other(kAcquire, 0x9000, pc(), 0, 0, 125)
                  .access(kRead, 0x7f10, 4, pc())
                  .other(kWait, 0x9100, pc(), 0, 0)
                  .other(kRelease, 0x9000, pc(), 0, 0, 135)
                  .other(kFence, 0, pc(), 0, 0, 136, 139)
                  .other(kFailedCompareExchange, 0x8000, pc(), 4, 0, 170, 180, 9)
                  .other(kAtomicStore, 0x8000, pc(), 16, 0, 181, 182));
  file.events(1, 1,
              Records()
                  .other(kRangeWrite, 0xA000, pc(), 0, 0, uint64_t{Event::kMaxSize} + 3)
                  .other(kUnitEnd, 0, pc(), 0, 0, 190)
                  .other(kThreadEnd, 0, pc(), 0, 0, 191));
  file.events(0, 2,
              Records()
                  .other(kJoin, 1, pc(), 0, 0, 200)
                  .other(kAcquireShared, 0x9200, pc(), 0, 0, 201)
                  .other(kReleaseShared, 0x9200, pc(), 0, 0, 202)
                  .access(kWrite, 0x7f10, 2, pc()));
  file.trailer();
  return file.bytes();
}

TEST_CASE("every kind of record comes back as an event") {
  const auto capture = read_capture(sample());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  CHECK(capture->trace.complete);
  CHECK(!capture->trace.symbols.initial_zero);
  CHECK(capture->command_line == Lines{"prog", "-x"});
  CHECK(capture->header.tsc_hz == 2000000000);
  CHECK(capture->header.pid == static_cast<uint32_t>(getpid()));
  CHECK(describe(capture->trace) == Lines{
                                        "T0 w 0x7f10+4 [100,110]",
                                        "T0 fork T1-work_er__1_ [110,110]",
                                        "T1-work_er__1_ begin take [120,140]",
                                        "T1-work_er__1_ r 0x7f14+8 [120,140]",
                                        "T0 acq 0x9000 [125,125]",
                                        "T0 r 0x7f10+4 [125,135]",
                                        "T0 wait 0x9100 [125,135]",
                                        "T1-work_er__1_ r 0x8000+4 read 5 [130,140]",
                                        "T1-work_er__1_ r 0x7f20+1 [130,150]",
                                        "T0 rel 0x9000 [135,135]",
                                        "T0 fence [136,139]",
                                        "T1-work_er__1_ rmw 0x8000+8 read 1 wrote 2 [150,160]",
                                        "T1-work_er__1_ w 0xa000+16777215 [160,190]",
                                        "T1-work_er__1_ w 0x1009fff+3 [160,190]",
                                        "T0 fence [170,180]",
                                        "T0 r 0x8000+4 read 9 [170,180]",
                                        "T0 w 0x8000+16 [181,182]",
                                        "T1-work_er__1_ end [190,190]",
                                        "T0 join T1-work_er__1_ [200,200]",
                                        "T0 racq 0x9200 [201,201]",
                                        "T0 rrel 0x9200 [202,202]",
                                        "T0 w 0x7f10+2 [202,inf]",
                                    });
  CHECK(capture->trace.symbols.location_text(capture->trace.events[0].location) == "0x1002");
}

// What a damaged file may still say: events that were recorded, in intervals that may be longer,
// and ends of units that were cut.
void check_subset(const Trace& damaged, const Trace& original) {
  std::map<std::string, std::vector<const Event*>> known;  // by source location: one record each
  for (const Event& event : original.events) {
    known[original.symbols.location_text(event.location)].push_back(&event);
  }
  for (const Event& event : damaged.events) {
    const std::string location = damaged.symbols.location_text(event.location);
    if (location.empty() && event.kind() == EventKind::kUnitEnd) {
      continue;
    }
    bool found = false;
    for (const Event* candidate : known[location]) {
      found = found || (candidate->kind() == event.kind() && candidate->size == event.size &&
                        (candidate->address == event.address ||
                         event.kind() == EventKind::kUnitBegin ||  // ids of other tables
                         event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin) &&
                        damaged.lo(event) <= original.lo(*candidate) &&
                        damaged.hi(event) >= original.hi(*candidate) &&
                        damaged.read_value(event) == original.read_value(*candidate) &&
                        damaged.write_value(event) == original.write_value(*candidate));
    }
    CHECK_MESSAGE(found, describe(damaged, event) << " at " << location);
  }
}

TEST_CASE("a capture cut at any byte gives what is intact and says that something is missing") {
  const std::string bytes = sample();
  const auto whole = read_capture(bytes);
  REQUIRE(whole);
  size_t most_events = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    const auto capture = read_capture(std::string_view(bytes).substr(0, size));
    if (!capture) {
      CHECK(size < sizeof kFileMagic);
      continue;
    }
    CHECK(!capture->problems.empty());
    CHECK(!capture->trace.complete);
    check_subset(capture->trace, whole->trace);
    CHECK(capture->trace.events.size() >= most_events);  // more bytes never mean fewer events
    most_events = capture->trace.events.size();
  }
  CHECK(most_events == whole->trace.events.size());  // only the trailer is missing at the end
}

TEST_CASE("no flipped bit and no overwritten stretch goes unnoticed") {
  const std::string bytes = sample();
  const auto whole = read_capture(bytes);
  REQUIRE(whole);
#if defined(TSOMON_SANITIZED)
  constexpr size_t kStep = 11;  // every bit of a byte has its turn
#else
  constexpr size_t kStep = 1;
#endif
  for (size_t bit = 0; bit < 8 * bytes.size(); bit += kStep) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CAPTURE(bit);
    const auto capture = read_capture(damaged);
    REQUIRE(capture);
    CHECK(!capture->problems.empty());
    CHECK(!capture->trace.complete);
    check_subset(capture->trace, whole->trace);
    CHECK(2 * capture->trace.events.size() >= whole->trace.events.size());  // one chunk at most
  }
  const uint32_t seed = 20261121;
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    std::string damaged = bytes;
    for (uint32_t n = 1 + random() % 3; n != 0; --n) {
      const size_t begin = random() % damaged.size();
      const size_t size = std::min<size_t>(random() % 100, damaged.size() - begin);
      switch (random() % 3) {
        case 0:  // lost
          damaged.erase(begin, size + 1);
          break;
        case 1:  // overwritten
          for (size_t i = begin; i < begin + size; ++i) {
            damaged[i] = static_cast<char>(random());
          }
          break;
        default:  // two writers in each other's way
          damaged.insert(random() % damaged.size(), damaged.substr(begin, size));
      }
      if (damaged.empty()) {
        break;
      }
    }
    if (const auto capture = read_capture(damaged); capture && damaged != bytes) {
      CHECK(!capture->trace.complete);
      check_subset(capture->trace, whole->trace);
    }
  }
}

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

TEST_CASE("what the trailer knows and the file lacks is named") {
  SUBCASE("the last chunks of a thread") {
    Recording file;
    file.events(0, 0, Records().stamp(1));
    Recording longer;
    longer.events(0, 0, Records().stamp(1));
    longer.events(0, 1, Records().stamp(2));
    longer.events(0, 2, Records().stamp(3));
    EndEntry end;
    end.chunks = 3;
    end.bytes = 60;
    REQUIRE(file.writer.write_raw(ChunkType::kEnd, kNoThread, 0, &end, sizeof end) == 0);
    const auto capture = read_capture(file.bytes());
    REQUIRE(capture);
    CHECK(capture->problems == Lines{"thread 0: the last 2 of 3 chunks are missing"});
  }
  SUBCASE("records dropped while recording") {
    Recording file;
    file.events(4, 0, Records().stamp(1));
    file.trailer(17);
    const auto capture = read_capture(file.bytes());
    REQUIRE(capture);
    CHECK(capture->problems == Lines{"thread 4: 17 records were dropped while recording"});
    CHECK(capture->trace.lost_events == 17);
  }
  SUBCASE("a thread that the trailer does not know") {
    Recording file;
    file.events(0, 0, Records().stamp(1));
    file.trailer();
    file.events(1, 0, Records().stamp(1));
    const auto capture = read_capture(file.bytes());
    REQUIRE(capture);
    CHECK(capture->problems ==
          Lines{"thread 1: the trailer does not know it; its end is not known"});
  }
}

TEST_CASE("a chunk stored twice counts once") {
  Recording file;
  const std::string words = Records().access(kRead, 0x10, 4).stamp(5);
  file.events(0, 0, words);
  file.trailer();
  file.events(0, 0, words, true);
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  CHECK(capture->trace.events.size() == 1);
}

TEST_CASE("malformed records are skipped, counted and named") {
  Recording file;
  file.events(0, 0,
              Records()
                  .access(kRead, 0x10, 0)
                  .other(static_cast<RecordType>(28), 0, 0, 0, 0, 1, 2, 3)
                  .other(kAtomicLoad, 0x20, 0, 4, 0, 7)
                  .other(kRangeRead, 0x20, 0, 0, 0, ~uint64_t{0})
                  .other(kUnitEnd, 0, 0, 0, 0)
                  .other(kFence, 0, 0, 0, 0, 9, 8)
                  .access(kRead, 0x30, 4)
                  .stamp(5)
                  .token({3})
                  .access(kRead, 0x40, 4));
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  const std::string kUnsynchronised =
      "thread 0, chunk 0: a time stamp lies 3 cycles before an earlier one: the time-stamp "
      "counters "
      "of this machine are not synchronised";
  CHECK(capture->problems ==
        Lines{
            "thread 0, chunk 0: byte 0: a malformed record of type 1",
            "thread 0, chunk 0: byte 10: record type 28 is not known to this version",
            "thread 0, chunk 0: byte 27: a malformed record of type 4",
            "thread 0, chunk 0: byte 41: a malformed record of type 20",
            "thread 0, chunk 0: byte 65: an interval ends 1 cycles before it begins",
            kUnsynchronised,
            "thread 0, chunk 0: byte 99: no record; the rest of the chunk is skipped",
            "thread 0: 4 records are lost",
            "thread 0, chunk 0: byte 55: a unit ends that never began",
        });
  CHECK(describe(capture->trace) == Lines{"T0 fence [8,9]", "T0 r 0x30+4 [8,inf]"});
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

TEST_CASE("foreseen accesses, runs that end and chunks that are lost give the same events") {
  // A loop of three instructions; the addresses of one of them cannot be foreseen.
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

TEST_CASE("a capture of another major version is refused with advice") {
  std::string bytes = sample();
  bytes[8] = 1;
  bytes[10] = 0;
  const uint64_t hash = XXH3_64bits(bytes.data(), 56);
  bytes.replace(56, 8, reinterpret_cast<const char*>(&hash), 8);
  const auto capture = read_capture(bytes);
  REQUIRE(!capture);
  CHECK(capture.error().message.find("capture version 1.0") != std::string::npos);
  CHECK(capture.error().message.find("record again") != std::string::npos);
}

TEST_CASE("more events than allowed are left out, which is said") {
  const auto capture = read_capture(sample(), 5);
  REQUIRE(capture);
  CHECK(capture->trace.events.size() == 5);
  CHECK(capture->problems == Lines{"more than 5 events; the rest is left out"});
}

TEST_CASE("ranges of atomic sets are read, long ones in pieces, impossible ones are named") {
  Recording recording;
  char buffer[512];
  char* at = buffer;
  const auto put = [&](uint64_t address, uint64_t size, const std::string& name) {
    at = put_set(at, buffer + sizeof buffer, {address, size, static_cast<uint32_t>(name.size()), 0},
                 name.data());
    REQUIRE(at != nullptr);
  };
  put(0x1000, 8, "a");
  put(0x2000, uint64_t{Event::kMaxSize} + 5, "b;|");
  put(0x3000, 4, "a");
  put(0x4000, uint64_t{1} << 50, "c");
  put(~uint64_t{0} - 3, 8, "d");
  CHECK(put_set(at, at + 24, {0, 1, 1, 0}, "e") == nullptr);
  const auto size = static_cast<size_t>(at - buffer);
  REQUIRE(recording.writer.write(ChunkType::kSets, kNoThread, 0, buffer, size) == 0);
  REQUIRE(recording.writer.write_raw(ChunkType::kSets, kNoThread, 0, buffer, 24) == 0);
  recording.events(0, 0, Records().stamp(1).access(kWrite, 0x1000, 4).stamp(2));
  recording.trailer();
  const auto capture = read_capture(recording.bytes());
  REQUIRE(capture);
  CHECK(!capture->trace.complete);
  REQUIRE(capture->problems.size() == 3);
  CHECK(capture->problems[0] ==
        "a range of 1125899906842624 bytes cannot be part of an atomic set");
  CHECK(capture->problems[1] == "a range of 8 bytes cannot be part of an atomic set");
  CHECK(capture->problems[2].find("an entry is cut off") != std::string::npos);
  const std::vector<AtomicSet>& sets = capture->trace.symbols.sets;
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].name == "a");
  CHECK(sets[0].members == std::vector<LocationKey>{{0x1000, 8}, {0x3000, 4}});
  CHECK(sets[1].name == "b;|");
  CHECK(sets[1].members ==
        std::vector<LocationKey>{{0x2000, Event::kMaxSize}, {0x2000 + Event::kMaxSize, 5}});
}

TEST_CASE("what is not a capture is refused") {
  for (const std::string& bytes : {std::string(), std::string("T0|r(x)|1\n"),
                                   std::string(1000, '\xA5'), std::string("tsomon")}) {
    const auto capture = read_capture(bytes);
    REQUIRE(!capture);
    CHECK(capture.error().kind == ErrorKind::kMalformed);
    CHECK(!capture.error().message.empty());
  }
}

TEST_CASE("many threads merge by time, each in its own order") {
  const uint32_t seed = 7;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  constexpr uint32_t kThreads = 5;
  Recording file;
  std::map<uint32_t, std::vector<uint64_t>> addresses;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    uint64_t now = random() % 1000;
    for (uint64_t chunk = 0; chunk < 20; ++chunk) {
      Records words;
      for (uint64_t i = random() % 50; i != 0; --i) {
        if (random() % 4 == 0) {
          words.stamp(now += random() % 100);
        } else {
          addresses[thread].push_back(0x1000 + addresses[thread].size());
          words.access(kWrite, addresses[thread].back(), 1, random() % 5000);
        }
      }
      file.events(thread, chunk, words, random() % 2 == 0);
    }
  }
  file.trailer();
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture);
  CHECK(capture->problems == Lines{});
  std::map<std::string, std::vector<uint64_t>> seen;
  int64_t last = kTimeMin;
  for (const Event& event : capture->trace.events) {
    CHECK(event.lo >= last);
    last = event.lo;
    seen[std::string(capture->trace.symbols.threads.text(event.thread))].push_back(event.address);
  }
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    CHECK(seen[fmt::format("T{}", thread)] == addresses[thread]);
  }
}

TEST_CASE("the writer reports what it cannot do") {
  Writer writer;
  CHECK(writer.open("/nonexistent/file", {}) == ENOENT);
  CHECK(!writer.is_open());
  const uint64_t word = 0;
  CHECK(writer.write_raw(ChunkType::kEvents, 0, 0, &word, sizeof word) == EBADF);
  if (access("/dev/full", W_OK) == 0) {
    CHECK(writer.open("/dev/full", {}) == ENOSPC);
  }
  Writer::Options keep;
  keep.keep_existing = true;
  CHECK(writer.open("/dev/null", keep) == EEXIST);
  Recording file;
  CHECK(file.writer.write(ChunkType::kEvents, 0, 0, &word, kMaxChunkBytes + 1) == EFBIG);
  CHECK(file.writer.error() == 0);
}

}  // namespace
}  // namespace tsomon::capture
