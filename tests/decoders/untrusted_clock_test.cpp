// Captures whose clock is untrusted from a measurement on: what was recorded before keeps its
// bounds, the rest has none.
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/capture/clock_margin.h"
#include "decoders/capture/encoder.h"
#include "decoders/capture/reader.h"
#include "tests/decoders/recording.h"

namespace tsomon::capture {
namespace {

using Lines = std::vector<std::string>;

ClockEntry good(uint64_t margin, uint64_t time) {
  ClockEntry entry;
  entry.since = entry.until = time;
  entry.margin = margin;
  return entry;
}
ClockEntry bad(bool by_stamp, uint64_t time) {
  ClockEntry entry = good(by_stamp ? 10 : kNoMargin, time);
  entry.backwards = by_stamp ? 1'000'000 : 0;
  return entry;
}

// What a thread records, told in parts and chunks as the probe does.
class Told {
 public:
  Told(Recording* file, uint32_t number) : file_(file), number_(number) { begin(); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  void put(RecordType type, uint64_t address, std::initializer_list<uint64_t> words,
           uint32_t flags = 0) {
    Record record;
    record.type = type;
    record.address = address;
    record.flags = static_cast<decltype(record.flags)>(flags);
    for (const uint64_t word : words) {
      record.words[record.count++] = word;
    }
    put_record(*encoder_, record);
  }
  void write(uint64_t address) {
    put_access(*encoder_, address, make_key(RecordType::kWrite, 8, 0x400000));
  }
  void part() {
    Position position;
    REQUIRE(snapshot(*encoder_, &position));
    const std::string whole = payload(position.end);
    PartEntry entry;
    entry.from = told_;
    uint8_t tail[8];
    entry.tail = position.count != 0 ? put_end(tail, position) : 0;
    std::string bytes(reinterpret_cast<const char*>(&entry), sizeof entry);
    bytes.append(whole, told_);
    bytes.append(reinterpret_cast<const char*>(tail), entry.tail);
    REQUIRE(file_->writer.write_raw(ChunkType::kPart, number_, chunk_, bytes.data(),
                                    bytes.size()) == 0);
    told_ = static_cast<uint32_t>(whole.size());
  }
  void chunk() {
    const Position position = finish_chunk();
    file_->events(number_, chunk_++, payload(position.end) + tail_);
    begin();
  }

 private:
  static constexpr uint32_t kCapacity = 16384;

  void begin() {
    encoder_ = std::make_unique<Encoder>();
    tokens_.assign(kCapacity + kMaxToken, 0);
    start_chunk(*encoder_, tokens_.data(), kCapacity);
    told_ = 0;
  }
  Position finish_chunk() {
    Position position;
    REQUIRE(snapshot(*encoder_, &position));
    uint8_t tail[8];
    const uint32_t size = position.count != 0 ? put_end(tail, position) : 0;
    tail_.assign(reinterpret_cast<const char*>(tail), size);
    return position;
  }
  std::string payload(size_t end) const {
    const ChunkStart start;
    std::string bytes(reinterpret_cast<const char*>(&start), sizeof start);
    return bytes.append(reinterpret_cast<const char*>(tokens_.data()), end);
  }

  Recording* file_;
  uint32_t number_;
  uint64_t chunk_ = 0;
  uint32_t told_ = 0;
  std::string tail_;
  std::unique_ptr<Encoder> encoder_;
  std::vector<uint8_t> tokens_;
};

void tell(Recording& file, const ClockEntry& entry) {
  REQUIRE(file.writer.write_raw(kClockChunk, kNoThread, 0, &entry, sizeof entry) == 0);
}

TEST_CASE("what was recorded before the last good measurement keeps its bounds") {
  for (const bool by_stamp : {false, true}) {
    for (const bool in_parts : {false, true}) {
      CAPTURE(by_stamp);
      CAPTURE(in_parts);
      Writer::Options options;
      options.tsc_hz = 1000;
      Recording file(options);
      Told thread(&file, 0);
      tell(file, good(100, 1));
      for (uint64_t i = 0; i < 12; ++i) {
        thread.put(RecordType::kFence, 0, {1000 + 10 * i, 1005 + 10 * i});
      }
      in_parts ? thread.part() : thread.chunk();
      tell(file, good(100, 1));  // a measurement begins
      thread.write(0x8000);
      tell(file, good(70, 2000));
      thread.put(RecordType::kAcquire, 0x9000, {3000});
      thread.put(RecordType::kFence, 0, {900, 901});
      thread.chunk();
      tell(file, bad(by_stamp, 4000));
      thread.put(RecordType::kFence, 0, {5000, 5001});
      thread.put(RecordType::kThreadEnd, 0, {5002});
      thread.chunk();
      file.trailer(0, 4500);
      const auto capture = read_capture(file.bytes());
      REQUIRE(capture.has_value());
      // The last records of a part may have been written anew.
      const int known = in_parts ? 4 : 12;
      const std::string from = in_parts ? "930" : "1010";
      Lines expected;
      for (int i = 0; i < 12; ++i) {
        expected.push_back(i < known ? "T0 fence [" + std::to_string(900 + 10 * i) + "," +
                                           std::to_string(1005 + 10 * i) + "]"
                                     : "T0 fence [" + from + ",inf]");
      }
      for (const char* const text : {"w 0x8000+8", "acq 0x9000", "fence", "fence"}) {
        expected.push_back("T0 " + std::string(text) + " [" + from + ",inf]");
      }
      CHECK(describe(capture->trace) == expected);
      CHECK(capture->problems.empty());
      REQUIRE(capture->notes.size() == 1);
      CHECK(capture->notes.front().find("not to be trusted from ") != std::string::npos);
      CHECK(capture->notes.front().find("is claimed from there on") != std::string::npos);
    }
  }
}

TEST_CASE("a record that stands behind the beginning of a measurement is not before it") {
  Recording file;
  Told thread(&file, 0);
  tell(file, good(100, 1));
  tell(file, good(100, 1));
  // Written while the processors were compared: it may be of after the good answer.
  thread.put(RecordType::kFence, 0, {1000, 1005});
  thread.chunk();
  tell(file, good(100, 900));
  tell(file, bad(true, 4000));
  file.trailer(0, 3000);
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture.has_value());
  CHECK(describe(capture->trace) == Lines{"T0 fence [-inf,inf]"});
}

TEST_CASE("without a measurement at the end what the last one confirmed keeps its bounds") {
  Recording file;
  Told thread(&file, 0);
  tell(file, good(100, 1));
  thread.put(RecordType::kFence, 0, {1000, 1005});
  thread.chunk();
  tell(file, good(100, 1));
  tell(file, good(100, 2000));
  thread.put(RecordType::kFence, 0, {2500, 2505});
  thread.chunk();
  file.trailer(0, 3000);
  const auto capture = read_capture(file.bytes());
  REQUIRE(capture.has_value());
  CHECK(describe(capture->trace) == Lines{"T0 fence [900,1005]", "T0 fence [900,inf]"});
  REQUIRE(capture->notes.size() == 1);
  CHECK(capture->notes.front().find("not compared again") != std::string::npos);
}

// A machine whose counters differ and drift a little, until one of them steps.
class Machine {
 public:
  static constexpr uint32_t kProcessors = 3;

  explicit Machine(std::mt19937_64& random) {
    for (int64_t& offset : offsets_) {
      offset = static_cast<int64_t>(random() % 300);
    }
    stepping_ = static_cast<uint32_t>(random() % kProcessors);
    const auto size = static_cast<int64_t>(random() % 20'000 + 2'000);
    step_ = random() % 2 == 0 ? size : -size;
    at_ = static_cast<int64_t>(random() % 20'000);
  }
  void step_at(int64_t time) { at_ = time; }
  bool stepped(int64_t time) const { return time >= at_; }
  uint64_t stamp(uint32_t processor, int64_t time) const {
    const int64_t step = processor == stepping_ && stepped(time) ? step_ : 0;
    return static_cast<uint64_t>(100'000 + time + offsets_[processor] + step);
  }

 private:
  int64_t offsets_[kProcessors] = {};
  uint32_t stepping_ = 0;
  int64_t step_ = 0;
  int64_t at_ = 0;
};

// Threads that move from processor to processor; stamps of a thread, and under the lock, grow.
class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed), machine_(random_) {
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads_.push_back(std::make_unique<Told>(&file_, i));
    }
  }

  Capture run() {
    tell(file_, good(kMargin, 0));
    ClockEntry last = good(kMargin, 0);
    const int64_t first_bad = 4 + static_cast<int64_t>(random_() % 4);
    int64_t measured = 0;
    for (time_ = 1; time_ < 20'000; time_ += static_cast<int64_t>(1 + random_() % 30)) {
      step();
      if (random_() % 60 == 0) {
        tell(file_, last);
        some_tell();  // they go on meanwhile
        ++measured;
        if (machine_.stepped(time_) || measured > first_bad) {
          last = bad(random_() % 2 == 0, now());
        } else {
          last = good(kMargin - random_() % 50, now());
          if (random_() % 4 == 0) {
            machine_.step_at(time_ + 1);  // before anybody has heard of the measurement
          }
        }
        for (int i = 0; i < 12; ++i) {
          step();
        }
        for (const auto& thread : threads_) {
          thread->chunk();
        }
        tell(file_, last);
      }
    }
    tell(file_, bad(random_() % 2 == 0, now()));
    for (const auto& thread : threads_) {
      thread->chunk();
    }
    file_.trailer(0, now());
    auto capture = read_capture(file_.bytes());
    REQUIRE(capture.has_value());
    return std::move(*capture);
  }

  // When the events of each thread happened.
  const std::vector<int64_t>& truth(uint32_t thread) const { return truth_[thread]; }

 private:
  static constexpr uint32_t kThreads = 3;
  static constexpr uint64_t kMargin = 400;

  uint64_t now() const { return machine_.stamp(0, time_); }
  uint64_t stamp(uint32_t thread) {
    const uint64_t taken = machine_.stamp(processor_[thread], time_);
    latest_[thread] = std::max(latest_[thread], taken);
    return latest_[thread];
  }
  void happened(uint32_t thread) { truth_[thread].push_back(time_); }

  void some_tell() {
    Told& thread = *threads_[random_() % kThreads];
    random_() % 2 == 0 ? thread.part() : thread.chunk();
  }

  void step() {
    const auto t = static_cast<uint32_t>(random_() % kThreads);
    ++time_;
    switch (random_() % 8) {
      case 0:
        processor_[t] = static_cast<uint32_t>(random_() % Machine::kProcessors);
        break;
      case 1:
      case 2: {  // what others do in between does not matter: one after the other
        const uint64_t lo = stamp(t);
        time_ += static_cast<int64_t>(random_() % 20);
        happened(t);
        time_ += static_cast<int64_t>(random_() % 20);
        threads_[t]->put(RecordType::kFence, 0, {lo, stamp(t)});
        break;
      }
      case 3:
        if (holder_ == t) {
          happened(t);
          locked_ = stamp(t);
          threads_[t]->put(RecordType::kRelease, 0x9000, {locked_});
          holder_.reset();
        } else if (!holder_) {
          happened(t);
          latest_[t] = std::max(latest_[t], locked_ + 1);
          threads_[t]->put(RecordType::kAcquire, 0x9000, {stamp(t)});
          holder_ = t;
        }
        break;
      case 4:
        if (random_() % 3 == 0) {
          some_tell();
        }
        break;
      default:
        // It is recorded, then done; nobody looks between two steps.
        threads_[t]->write(0x8000 + 64 * t);
        happened(t);
        break;
    }
  }

  std::mt19937_64 random_;
  Machine machine_;
  Recording file_;
  std::vector<std::unique_ptr<Told>> threads_;
  uint32_t processor_[kThreads] = {0, 1, 2};
  uint64_t latest_[kThreads] = {};
  uint64_t locked_ = 0;
  std::optional<uint32_t> holder_;
  int64_t time_ = 0;
  std::vector<int64_t> truth_[kThreads];
};

TEST_CASE("no order is claimed that was not, whatever a counter does") {
  uint64_t claimed = 0;
  uint64_t open = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    Simulation simulation(seed);
    const Capture capture = simulation.run();
    const Trace& trace = capture.trace;
    REQUIRE(trace.events.size() > 100);
    std::vector<size_t> next(trace.symbols.threads.size(), 0);
    std::vector<int64_t> when;
    for (const Event& event : trace.events) {
      const auto number = static_cast<uint32_t>(trace.symbols.threads.text(event.thread)[1] - '0');
      when.push_back(simulation.truth(number).at(next[event.thread]++));
      open += trace.hi(event) == kTimeMax ? 1 : 0;
    }
    for (size_t i = 0; i < when.size(); ++i) {
      for (size_t j = 0; j < when.size(); ++j) {
        const Event& e = trace.events[i];
        const Event& f = trace.events[j];
        if (e.thread != f.thread && trace.hi(e) < trace.lo(f)) {
          ++claimed;
          REQUIRE(when[i] < when[j]);
        }
      }
    }
    for (size_t i = 1; i < trace.events.size(); ++i) {
      REQUIRE(trace.lo(trace.events[i - 1]) <= trace.lo(trace.events[i]));
    }
  }
  CHECK(claimed > 100'000);
  CHECK(open > 10'000);
}

}  // namespace
}  // namespace tsomon::capture
