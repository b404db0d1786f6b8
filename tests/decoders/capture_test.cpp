#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "decoders/capture/chunks.h"
#include "decoders/capture/reader.h"
#include "decoders/capture/writer.h"
#include "tests/decoders/recording.h"
#include "tests/decoders/records.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tsomon::capture {
namespace {

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

TEST_CASE("no flipped bit and no overwritten slice goes unnoticed") {
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

TEST_CASE("of a chunk of the process that is lost nobody knows what it said") {
  const std::string bytes = sample();
  const auto list = find_chunks(bytes);
  REQUIRE(list);
  const auto lost = [](const std::string& damaged) {
    const auto capture = read_capture(damaged);
    REQUIRE(capture);
    CHECK(!capture->problems.empty());
    return capture->knowledge_lost;
  };
  CHECK(!read_capture(bytes)->knowledge_lost);
  CHECK(read_capture(bytes)->damage() == tsomon::Damage::kNone);
  const uint64_t trailer = list->chunks.back().offset;
  for (const Chunk& chunk : list->chunks) {
    CAPTURE(chunk.offset);
    const auto type = static_cast<ChunkType>(chunk.header.type);
    const bool of_process = chunk.header.thread == kNoThread && type != ChunkType::kEnd;
    std::string damaged = bytes;
    damaged[chunk.offset + sizeof chunk.header] ^= 1;
    CHECK(lost(damaged) == of_process);
    // Without a trailer any chunk may be one of the process, unless it is the last one.
    if (type != ChunkType::kEnd) {
      const bool last = chunk.offset + sizeof chunk.header + chunk.stored.size() == trailer;
      CHECK(lost(damaged.substr(0, trailer)) == (of_process || !last));
    }
    damaged = bytes;
    damaged.erase(chunk.offset, sizeof chunk.header + chunk.stored.size());
    CHECK(lost(damaged) == of_process);
    const std::string cut = bytes.substr(0, chunk.offset);
    CHECK(!lost(cut));
    CHECK(read_capture(cut)->damage() == tsomon::Damage::kEnds);
  }
  std::string damaged = bytes;
  damaged[16] ^= 1;  // the file's header
  CHECK(lost(damaged));
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
                  .other(static_cast<RecordType>(63), 0, 0, 0, 0, 1, 2, 3)
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
            "thread 0, chunk 0: byte 10: record type 63 is not known to this version",
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
