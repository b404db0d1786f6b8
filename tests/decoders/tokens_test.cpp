// Packed records: whatever goes through the encoder comes back from the decoder, from every chunk
// by itself, and up to every position that a snapshot gave.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/capture/decoder.h"
#include "decoders/capture/encoder.h"
#include "tests/rounds.h"

namespace tsomon::capture {
namespace {

constexpr size_t kCapacity = 1 << 15;
const int kRounds = rounds(30, 150);

std::string describe(const Record& record) {
  std::string text =
      fmt::format("type {} size {} flags {} at {:#x} pc {:#x}:", static_cast<int>(record.type),
                  record.size, record.flags, record.address, record.pc);
  for (uint32_t i = 0; i < record.count; ++i) {
    text += fmt::format(" {}", record.words[i]);
  }
  return text;
}

// Records what a thread does as the probe would, and remembers what should come back.
class Thread {
 public:
  // `masked`: as with accesses=sets, where the probe looks at an access before it is recorded.
  explicit Thread(bool masked = false)
      : encoder_(std::make_unique<Encoder>()), tokens_(kCapacity + kMaxToken) {
    encoder_->filter_mask = masked ? kFilterMask : 0;
    open();
  }

  void open() {
    start_chunk(*encoder_, tokens_.data(), kCapacity);
    expected_.clear();
  }
  bool full() const { return !has_room(*encoder_); }

  void access(RecordType type, uint64_t address, uint32_t size, uint64_t pc) {
    const uint64_t key = make_key(type, size, pc);
    const Record record{type, size, 0, 0, address, pc, {}};
    if (encoder_->filter_mask != 0) {
      REQUIRE(look_up_site(*encoder_, address, key, 8 * key_slot(key)) == SiteCache::kMiss);
    }
    switch (look_up_site(*encoder_, address, key ^ encoder_->filter_mask, 8 * key_slot(key))) {
      case SiteCache::kMiss:
        put_access(*encoder_, address, key);
        expected_.push_back(describe(record));
        break;
      case SiteCache::kHit:
        ++cached;
        expected_.push_back(describe(record));
        break;
      case SiteCache::kExpired:
        ++cached;
        ++expired;
        if (expired % 2 == 0) {
          stamp_ += 1000;
          put_stamp_before(*encoder_, stamp_);
          expected_.push_back(describe({RecordType::kStamp, 0, 0, 1, 0, 0, {stamp_}}));
        } else {
          put_nothing(*encoder_);
        }
        expected_.push_back(describe(record));
        break;
    }
  }
  void stamp(uint64_t later) {
    stamp_ += later;
    put_stamp(*encoder_, stamp_);
    expected_.push_back(describe({RecordType::kStamp, 0, 0, 1, 0, 0, {stamp_}}));
  }
  void lost(uint64_t count) {
    put_lost(*encoder_, count);
    expected_.push_back(describe({RecordType::kLost, 0, 0, 1, 0, 0, {count}}));
  }
  void release(uint64_t address, uint64_t pc, uint64_t later, bool drains) {
    stamp_ += later;
    put_point(*encoder_, RecordType::kRelease, address, pc, stamp_);
    expected_.push_back(describe({RecordType::kRelease, 0, kSeparates, 1, address, pc, {stamp_}}));
    if (drains && !full()) {
      check_snapshot();
      put_drain(*encoder_);
      expected_.push_back(
          describe({RecordType::kFence, 0, kSeparates | kOpenEnd, 2, 0, pc, {stamp_}}));
    }
  }
  void record(Record record) {
    put_record(*encoder_, record);
    expected_.push_back(describe(record));
  }
  void operation(Record record, Ending ending, bool separates) {
    begin_record(*encoder_, record.type, record.address, record.size, record.pc, record.words[0]);
    Record unfinished = record;
    unfinished.flags = kSeparates | kUnfinished;
    unfinished.count = 2;
    unfinished.words[1] = 0;
    expected_.push_back(describe(unfinished));
    check_snapshot();
    expected_.pop_back();
    end_record(*encoder_, ending, separates, record.words[1], record.count - 2, record.words[2],
               record.words[3]);
    record.flags = separates ? kSeparates : 0;
    if (ending == Ending::kFailed) {
      record.type = RecordType::kFailedCompareExchange;
    } else if (ending == Ending::kWasLoad) {
      record.type = RecordType::kAtomicLoad;
    } else if (ending == Ending::kOpen) {
      record.flags |= kOpenEnd;
      record.words[1] = 0;
    }
    expected_.push_back(describe(record));
  }

  // The payload as a flush would write it now.
  std::string payload() const {
    Position position;
    REQUIRE(snapshot(*encoder_, &position));
    std::string bytes(reinterpret_cast<const char*>(tokens_.data()), position.end);
    if (position.count != 0) {
      uint8_t end[4];
      bytes.append(reinterpret_cast<const char*>(end), put_end(end, position));
    }
    return bytes;
  }
  void check_snapshot() const {
    Decoder decoder;
    const std::string bytes = payload();
    decoder.start(bytes);
    std::vector<std::string> seen;
    Record record;
    while (decoder.next(record) == Decoder::Step::kRecord) {
      seen.push_back(describe(record));
    }
    CHECK(decoder.next(record) == Decoder::Step::kEnd);
    CHECK(decoder.place() == bytes.size());
    REQUIRE(seen.size() == expected_.size());
    CHECK(seen == expected_);
  }
  Position position() const {
    Position position;
    REQUIRE(snapshot(*encoder_, &position));
    return position;
  }

  const std::vector<std::string>& expected() const { return expected_; }
  uint64_t time() const { return stamp_; }
  uint64_t tick(uint64_t later) { return stamp_ += later; }

  int cached = 0;
  int expired = 0;

 private:
  std::unique_ptr<Encoder> encoder_;
  std::vector<uint8_t> tokens_;
  std::vector<std::string> expected_;
  uint64_t stamp_ = 1'000'000'000'000;
};

// A program: loops over a few instructions with strides, fields of objects that change, random
// addresses and calls between them.
class Program {
 public:
  Program(std::mt19937_64& random, Thread& thread) : random_(random), thread_(thread) {
    const uint32_t sites = 2 + below(30);
    for (uint32_t i = 0; i < sites; ++i) {
      Site site;
      // Some share entries of the table.
      site.pc = 0x400000 + 8 * below(200) + (below(4) == 0 ? 0x8000 * below(3) : 0);
      const uint32_t sizes[] = {1, 2, 4, 8, 8, 4, 16, 3, 1000};
      site.size = sizes[below(9)];
      site.type = below(3) == 0 ? RecordType::kWrite : RecordType::kRead;
      site.address = below(4) == 0 ? random_() >> 16 : 0x7f0000000000 + below(1 << 20);
      const uint64_t strides[] = {0, 0, 8, 1, 0xFFFFFFFFFFFFFFF8, 4096, 0x100000000};
      site.stride = strides[below(7)];
      site.kind = below(4) == 0 ? Kind::kIrregular : below(3) == 0 ? Kind::kField : Kind::kStride;
      site.object = below(2);
      sites_.push_back(site);
    }
  }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  void access(size_t index) {
    Site& site = sites_[index];
    if (site.kind == Kind::kIrregular) {
      site.address = 0x7f0000000000 + 8 * below(1 << (1 + below(30)));
    } else if (site.kind == Kind::kField) {
      site.address = objects_[site.object] + site.pc % 4096;
    }
    thread_.access(site.type, site.address, site.size, site.pc);
    site.address += site.stride;
  }
  void loop() {
    std::vector<size_t> body;
    for (uint32_t i = 1 + below(5); i != 0; --i) {
      body.push_back(below(static_cast<uint32_t>(sites_.size())));
    }
    for (uint32_t i = below(below(8) == 0 ? 1000 : 20); i != 0 && !thread_.full(); --i) {
      if (below(2) == 0) {
        objects_[below(2)] = 0x7f0000000000 + 4096 * below(1 << 20);
      }
      for (const size_t index : body) {
        if (!thread_.full()) {
          access(index);
        }
      }
    }
  }
  void other() {
    Record record;
    record.pc = 0x500000 + 8 * below(20);
    record.address = 0x600000 + 8 * below(20);
    switch (below(8)) {
      case 0:
        return thread_.stamp(below(3) == 0 ? random_() >> (16 + below(48)) : below(1000));
      case 1:
        return thread_.lost(random_());
      case 2:
        record.type = RecordType::kRangeWrite;
        record.count = 1;
        record.words[0] = random_() >> below(64);
        return thread_.record(record);
      case 3:
        return thread_.release(record.address, record.pc,
                               below(4) == 0 ? random_() >> (20 + below(40)) : below(80'000),
                               below(2) == 0);
      case 4:
        record.type = RecordType::kUnitBegin;
        record.address = below(100);
        return thread_.record(record);
      case 5:
        record.type = below(2) == 0 ? RecordType::kAtomicStore : RecordType::kAtomicLoad;
        record.size = 8;
        record.flags = kSeparates | kOpenEnd;
        record.count = 3;
        record.words[0] = thread_.tick(below(2) * below(20000));
        record.words[2] = random_() >> below(64);
        return thread_.record(record);
      default: {
        record.type = RecordType::kAtomicReadModifyWrite;
        record.size = 4;
        record.words[0] = thread_.tick(below(2) * below(20000));
        const auto ending = static_cast<Ending>(below(4));
        if (ending != Ending::kOpen) {
          record.words[1] = thread_.tick(below(100000));
        }
        record.count = 2 + below(3);
        for (uint32_t i = 2; i < record.count; ++i) {
          record.words[i] = random_() >> below(64);
        }
        return thread_.operation(record, ending, below(4) != 0);
      }
    }
  }

 private:
  enum class Kind : uint8_t { kStride, kIrregular, kField };
  struct Site {
    RecordType type;
    uint32_t size;
    uint64_t pc;
    uint64_t address;
    uint64_t stride;
    Kind kind;
    uint32_t object;
  };
  std::mt19937_64& random_;
  Thread& thread_;
  std::vector<Site> sites_;
  uint64_t objects_[2] = {0x7f0000000000, 0x7f0000100000};
};

TEST_CASE("fields of objects are cached, the first access to an object is not") {
  std::mt19937_64 random(1);
  Thread thread;
  constexpr int kObjects = 500;
  for (int i = 0; i < kObjects; ++i) {
    const uint64_t here = 0x600000000000 + 4096 * (random() % (1 << 20));
    const uint64_t there = 0x7f0000000000 + 4096 * (random() % (1 << 20));
    thread.access(RecordType::kRead, here, 8, 0x400000);
    thread.access(RecordType::kRead, here + 24, 8, 0x400010);
    thread.access(RecordType::kRead, 0x500000, 8, 0x400020);  // always the same
    thread.access(RecordType::kWrite, here + 16, 4, 0x400030);
    thread.access(RecordType::kRead, there + 8, 8, 0x400040);
    thread.access(RecordType::kWrite, there + 32, 8, 0x400050);
    thread.access(RecordType::kWrite, here + 40, 1, 0x400060);
    thread.access(RecordType::kWrite, there + 48, 8, 0x400070);
  }
  // Of the eight two, and of the others a few before they are known.
  CHECK(thread.cached > 6 * (kObjects - 5));
  thread.check_snapshot();
}

// What a thread does over and over, by either kind of functions.
void encode(Encoder& e, bool fast_paths, int what, uint64_t address, uint64_t pc, uint64_t value,
            int* taken) {
  const auto took = [&](bool done) {
    *taken += done ? 1 : 0;
    return done;
  };
  switch (what) {
    case 0: {
      const uint64_t key = make_key(RecordType::kWrite, 8, pc);
      const SiteCache cached = look_up_site(e, address, key, 8 * key_slot(key));
      if (cached == SiteCache::kMiss) {
        put_access(e, address, key);
      } else if (cached == SiteCache::kExpired) {
        put_nothing(e);
      }
      return;
    }
    case 1:
      if (!fast_paths || !took(put_stamp_soon(e, value))) {
        put_stamp(e, value);
      }
      return;
    case 2:
      if (!fast_paths || !took(put_bare_cached(e, RecordType::kUnitBegin, address, pc))) {
        put_bare(e, RecordType::kUnitBegin, address, pc);
      }
      return;
    default: {
      const uint64_t key = other_key(RecordType::kAtomicStore, 8, pc);
      if (!fast_paths || !took(put_open_cached(e, key, address, value))) {
        put_open(e, key, address, value);
      }
    }
  }
}

TEST_CASE("what is recorded in few stores is the same bytes") {
  const uint32_t seed = 20261125;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  int taken[4] = {};
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    Encoder encoders[2] = {};
    std::vector<uint8_t> tokens[2];
    for (int i = 0; i < 2; ++i) {
      tokens[i].resize(kCapacity + kMaxToken);
      start_chunk(encoders[i], tokens[i].data(), kCapacity);
    }
    struct Site {
      int what;
      uint64_t address;
      uint64_t stride;
      uint64_t pc;
      uint64_t value;
      uint64_t step;
    };
    std::vector<Site> body(1 + below(6));
    for (Site& site : body) {
      const uint64_t steps[] = {0, 1, 2, 40'000, uint64_t{0} - 1, 1 << 20};
      site = {static_cast<int>(below(4)),
              0x600000 + 8 * below(20),
              8 * below(3) * below(2),
              0x500000 + 8 * below(30),
              below(1000),
              steps[below(6)]};
    }
    uint64_t stamp = 1'000'000;
    for (int i = 0; i < 400 && has_room(encoders[0]); ++i) {
      for (Site& site : body) {
        const int times =
            site.what == 0 ? 1 + static_cast<int>(below(below(20) == 0 ? 200 : 3)) : 1;
        for (int k = 0; k < times && has_room(encoders[0]); ++k) {
          stamp += below(20) == 0 ? below(1 << 20) : below(3000);
          const uint64_t value = site.what == 1 ? stamp : site.value;
          for (int e = 0; e < 2; ++e) {
            encode(encoders[e], e == 0, site.what, site.address, site.pc, value, &taken[site.what]);
          }
          REQUIRE(encoders[0].end == encoders[1].end);
          REQUIRE(encoders[0].last == encoders[1].last);
          REQUIRE(encoders[0].before == 0);
          site.address += site.stride;
          site.value += below(10) == 0 ? random() : site.step;
        }
      }
    }
    tokens[0].resize(encoders[0].end);
    tokens[1].resize(encoders[1].end);
    CHECK(tokens[0] == tokens[1]);
  }
  CHECK(taken[1] > 100 * kRounds);
  CHECK(taken[2] > 50 * kRounds);
  CHECK(taken[3] > 50 * kRounds);
}

TEST_CASE("every type of record comes back, of every size") {
  Thread thread;
  for (int type = 1; type < kRecordTypes; ++type) {
    for (const uint32_t size : {0U, 1U, kMaxSize}) {
      Record record{static_cast<RecordType>(type), size, 0, 0, 0x7000, 0x7fffffffffff, {}};
      record.count = has_stamps(record.type) ? 2 : 0;
      record.words[0] = record.words[1] = thread.tick(10);
      thread.record(record);
    }
  }
  thread.check_snapshot();
}

TEST_CASE("random sequences come back from every chunk") {
  const uint32_t seed = 20261121;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  uint64_t records = 0;
  int cached = 0;
  int expired = 0;
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    Thread thread(round % 3 == 0);
    Program program(random, thread);
    for (int chunk = 0; chunk < 2; ++chunk) {
      const uint32_t steps = program.below(200);
      for (uint32_t i = 0; i < steps && !thread.full(); ++i) {
        program.below(3) == 0 ? program.other() : program.loop();
        if (program.below(50) == 0) {
          thread.check_snapshot();
        }
      }
      thread.check_snapshot();
      records += thread.expected().size();
      thread.open();
    }
    cached += thread.cached;
    expired += thread.expired;
  }
  CHECK(records > 300 * kRounds);
  CHECK(cached > 150 * kRounds);
  CHECK(expired > kRounds / 3);
}

TEST_CASE("a masked encoder writes what one without a filter_mask writes") {
  std::mt19937_64 random(20261122);
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    std::string payloads[2];
    int cached[2] = {};
    const uint64_t seed = random();
    for (const int masked : {0, 1}) {
      std::mt19937_64 same(seed);
      Thread thread(masked == 1);
      Program program(same, thread);
      for (int i = 0; i < 100 && !thread.full(); ++i) {
        program.below(3) == 0 ? program.other() : program.loop();
      }
      payloads[masked] = thread.payload();
      cached[masked] = thread.cached;
    }
    CHECK(cached[1] > 0);
    CHECK(cached[0] == cached[1]);
    CHECK((payloads[0] == payloads[1]));
  }
}

TEST_CASE("the decoder stops at every position that a snapshot gives") {
  const uint32_t seed = 5;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    Thread thread(round % 2 == 0);
    Program program(random, thread);
    struct Stop {
      Position position;
      size_t records;
    };
    std::vector<Stop> stops;
    for (int i = 0; i < 50 && !thread.full(); ++i) {
      for (uint32_t n = program.below(40); n != 0 && !thread.full(); --n) {
        program.access(program.below(2));
        if (program.below(20) == 0) {
          stops.push_back({thread.position(), thread.expected().size()});
        }
      }
      if (!thread.full()) {
        program.other();
        stops.push_back({thread.position(), thread.expected().size()});
      }
    }
    Decoder decoder;
    const std::string bytes = thread.payload();
    decoder.start(bytes);
    std::vector<std::string> seen;
    Record record;
    for (const Stop& stop : stops) {
      decoder.stop_at(stop.position);
      Decoder::Step step = decoder.next(record);
      for (; step == Decoder::Step::kRecord; step = decoder.next(record)) {
        seen.push_back(describe(record));
      }
      CHECK(step == Decoder::Step::kStop);
      REQUIRE(seen.size() == stop.records);
    }
    while (decoder.next(record) == Decoder::Step::kRecord) {
      seen.push_back(describe(record));
    }
    CHECK(seen == thread.expected());
  }
}

TEST_CASE("whatever the bytes, the decoder comes to an end") {
  const uint32_t seed = 9;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Decoder decoder;
  for (int round = 0; round < 1000; ++round) {
    CAPTURE(round);
    std::string bytes;
    if (round % 2 == 0) {
      for (uint64_t n = random() % 200; n != 0; --n) {
        bytes += static_cast<char>(random());
      }
    } else {
      Thread thread;
      Program program(random, thread);
      for (int i = 0; i < 5; ++i) {
        program.loop();
        program.other();
      }
      bytes = thread.payload();
      for (uint64_t n = 1 + random() % 4; n != 0; --n) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      bytes.resize(random() % (bytes.size() + 1));
    }
    decoder.start(bytes);
    if (random() % 2 == 0) {
      decoder.stop_at({static_cast<uint32_t>(random() % 300),
                       static_cast<uint32_t>(random() % 5000),
                       static_cast<uint32_t>(random() % 130)});
    }
    Record record;
    int malformed = 0;
    uint64_t records = 0;
    for (;;) {
      const Decoder::Step step = decoder.next(record);
      if (step == Decoder::Step::kEnd) {
        break;
      }
      malformed += step == Decoder::Step::kMalformed ? 1 : 0;
      records += step == Decoder::Step::kRecord ? 1 : 0;
    }
    CHECK(malformed <= 1);
    CHECK(records <= bytes.size() * kSlots * kMaxCount);
  }
}

}  // namespace
}  // namespace tsomon::capture
