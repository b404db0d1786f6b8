// Live captures against the file reader on the same bytes, and against what took place.
#include "decoders/capture/live.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/capture/chunks.h"
#include "decoders/capture/reader.h"
#include "tests/decoders/live_process.h"
#include "tests/decoders/recording.h"
#include "tests/rounds.h"

namespace tsomon::capture {
namespace {

struct Seen {
  std::string what;
  EventKind kind;
  uint64_t address;
  uint32_t size;
  int64_t lo;
  int64_t hi;
};
using Threads = std::map<std::string, std::vector<Seen>>;  // in program order

void collect(const EventBlock& block, const Symbols& symbols, Threads& threads) {
  for (const Event& event : block.events) {
    threads[std::string(symbols.threads.text(event.thread))].push_back(
        {describe_access(block, symbols, event) + " " + symbols.location_text(event.location),
         event.kind(), event.address, event.size, block.lo(event), block.hi(event)});
  }
}

struct Live {
  Threads threads;
  std::vector<std::string> problems;
  uint64_t lost = 0;
  uint64_t before_end = 0;  // events that came before the input ended
  std::string failure;
};

// Feeds the bytes in random pieces; every promise is held against what comes later.
Live read_live(std::string_view bytes, std::mt19937_64& random) {
  Live live;
  LiveReader reader;
  std::map<uint32_t, int64_t> promises;
  std::set<uint32_t> ended;
  int64_t round = kTimeMin;
  const auto take = [&] {
    reader.take([&](const LiveReader::News& news) {
      CHECK(ended.count(news.thread) == 0);
      const auto [known, is_new] = promises.try_emplace(news.thread, round);
      for (const Event& event : news.events->events) {
        CHECK_MESSAGE(event.lo >= known->second,
                      describe_access(*news.events, reader.symbols(), event));
      }
      CHECK(news.promise >= known->second);
      known->second = news.promise;
      if (news.ended) {
        ended.insert(news.thread);
      }
      collect(*news.events, reader.symbols(), live.threads);
    });
    CHECK(reader.round() >= round);
    round = reader.round();
  };
  const uint64_t largest = 1 + random() % 3000;
  for (std::string_view rest = bytes; !rest.empty();) {
    const size_t size = std::min<size_t>(rest.size(), 1 + random() % largest);
    if (const auto fed = reader.feed(rest.substr(0, size)); !fed) {
      live.failure = fed.error().message;
      CHECK(!live.failure.empty());
      CHECK(!reader.feed(rest.substr(size)));  // and stays so
      break;
    }
    rest.remove_prefix(size);
    if (random() % 3 != 0) {
      take();
    }
  }
  take();
  for (const auto& [name, events] : live.threads) {
    live.before_end += events.size();
  }
  reader.finish();
  take();
  for (const auto& [number, promise] : promises) {
    CHECK(ended.count(number) == 1);
  }
  live.problems = reader.problems();
  live.lost = reader.lost_events();
  return live;
}

Threads threads_of(const Capture& capture) {
  Threads threads;
  collect(capture.trace, capture.trace.symbols, threads);
  return threads;
}

// The same events in the same order. Intervals may differ by what the rounds told: they begin at
// `since`, and end at `until` or not at all.
void check_equal(const Threads& live, const Threads& file, bool observed) {
  REQUIRE(live.size() == file.size());
  for (const auto& entry : file) {
    const std::string& name = entry.first;
    const std::vector<Seen>& events = entry.second;
    CAPTURE(name);
    const auto found = live.find(name);
    REQUIRE(found != live.end());
    REQUIRE(found->second.size() == events.size());
    for (size_t i = 0; i < events.size(); ++i) {
      CAPTURE(i);
      const Seen& ours = found->second[i];
      REQUIRE(ours.what == events[i].what);
      if (!observed) {
        CHECK(ours.lo == events[i].lo);
        CHECK(ours.hi == events[i].hi);
      }
      CHECK(ours.lo >= events[i].lo);
      CHECK(ours.lo <= events[i].hi);
    }
  }
}

// The beginnings of these are their order among the threads.
constexpr uint32_t kKeepTheirPlace =
    kinds::kLocks | (kinds::kHandOvers & ~kind_mask(EventKind::kReceive));

// Every event took place inside its interval. `cut`: where the input ended early, an operation
// under way is a load and a store.
void check_truth(const std::vector<Seen>& seen, const std::vector<LiveProcess::Truth>& truth,
                 bool cut) {
  size_t next = 0;
  for (const LiveProcess::Truth& expected : truth) {
    uint64_t read = 0;
    do {
      if (next == seen.size()) {
        return;
      }
      const Seen& event = seen[next++];
      CAPTURE(next);
      CAPTURE(event.what);
      if (cut && next + 1 >= seen.size() && event.kind != expected.kind) {
        break;
      }
      REQUIRE(event.kind == expected.kind);
      // Ids of labels and threads are those of the readers.
      if (event.kind != EventKind::kUnitBegin && event.kind != EventKind::kFork) {
        CHECK(event.address == expected.address + read);
        read += event.size;  // a range is several events
        CHECK(read <= expected.size);
      }
      if (expected.at >= 0) {
        CHECK((event.lo <= expected.at || event.kind == EventKind::kFence));
        if ((kind_mask(event.kind) & kKeepTheirPlace) != 0) {
          CHECK(event.lo == expected.at);
        }
        CHECK(expected.at <= event.hi);
      }
    } while (read != 0 && read < expected.size);
  }
  CHECK(next == seen.size());
}

// Program order is the order of the intervals' beginnings, also where handlers interrupted: what a
// detector reads is sorted by them. These keep their stamps in handlers.
void check_beginnings(const std::vector<Seen>& seen) {
  int64_t latest = kTimeMin;
  for (const Seen& event : seen) {
    CHECK_MESSAGE(event.lo >= latest, event.what);
    latest = (kind_mask(event.kind) & kKeepTheirPlace) != 0 ? latest : event.lo;
  }
}

void check_truth(const Threads& threads, const LiveProcess& process, bool cut = false) {
  for (const auto& [name, events] : threads) {
    CAPTURE(name);
    check_beginnings(events);
  }
  for (const auto& entry : process.truth()) {
    const uint32_t number = entry.first;
    CAPTURE(number);
    const auto found = threads.find(fmt::format("T{}", number));
    check_truth(found == threads.end() ? std::vector<Seen>() : found->second, entry.second, cut);
  }
}

bool says_missing(const std::vector<std::string>& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const std::string& problem) {
    return problem.find("missing") != std::string::npos;
  });
}

LiveProcessOptions random_options(std::mt19937_64& random) {
  LiveProcessOptions options;
  options.threads = static_cast<uint32_t>(1 + random() % 4);
  options.operations = static_cast<uint32_t>(1 + random() % 120);
  options.handlers = random() % 3 == 0;
  options.loses = random() % 4 == 0;
  options.observes = random() % 5 != 0;
  options.frequency = 400U << (random() % 8);
  return options;
}

const int kRounds = rounds(60, 250);

TEST_CASE("a live capture gives the events of the file, and keeps its promises") {
  const uint32_t seed = 20261121;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  uint64_t events = 0;
  uint64_t early = 0;
  uint64_t open = 0;
  uint64_t open_in_file = 0;
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    const LiveProcessOptions options = random_options(random);
    CAPTURE(options.handlers);
    CAPTURE(options.loses);
    CAPTURE(options.observes);
    LiveProcess process(random, options);
    const std::string bytes = process.run();
    const auto file = read_capture(bytes);
    REQUIRE(file);
    const Live live = read_live(bytes, random);
    CHECK(live.failure.empty());
    check_equal(live.threads, threads_of(*file), options.observes);
    check_truth(threads_of(*file), process);
    check_truth(live.threads, process);
    CHECK(live.problems.empty() == file->problems.empty());
    CHECK(file->problems.empty() == (process.lost() == 0));
    CHECK(live.lost == file->trace.lost_events);
    CHECK(live.lost == process.lost());
    for (const auto& [name, seen] : live.threads) {
      events += seen.size();
      for (const Seen& event : seen) {
        open += event.hi == kTimeMax;
      }
    }
    for (const Event& event : file->trace.events) {
      open_in_file += file->trace.hi(event) == kTimeMax;
    }
    early += live.before_end;
  }
  CHECK(events > 50ULL * kRounds);
  CHECK(4 * early > 3 * events);  // they come while the process runs
  // Few intervals are opened by waiting.
  CHECK(open < open_in_file + events / 100);
  CHECK(20 * open < events);
}

TEST_CASE("a live capture that was cut off gives what is there, and says that the end is missing") {
  const uint32_t seed = 4711;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < kRounds / 10; ++round) {
    CAPTURE(round);
    LiveProcessOptions options = random_options(random);
    options.killed = random() % 2 == 0;
    LiveProcess process(random, options);
    const std::string bytes = process.run();
    const Live whole = read_live(bytes, random);
    for (int i = 0; i < 20; ++i) {
      const size_t size = i == 0 ? bytes.size() : random() % bytes.size();
      CAPTURE(size);
      const Live live = read_live(std::string_view(bytes).substr(0, size), random);
      CHECK(live.failure.empty());
      CHECK((!live.problems.empty() || size == bytes.size()));
      if (!says_missing(live.problems)) {
        check_truth(live.threads, process, true);
      }
      // Chunks that the file reader finds are there; so is what the rounds told beyond them.
      const auto file = read_capture(std::string_view(bytes).substr(0, size));
      if (!file || size < sizeof(FileHeader)) {
        continue;
      }
      for (const auto& [name, events] : threads_of(*file)) {
        const auto found = live.threads.find(name);
        REQUIRE(found != live.threads.end());
        CHECK(found->second.size() >= events.size());
      }
    }
  }
}

TEST_CASE("damage is named, and what came before it is delivered") {
  const uint32_t seed = 99;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < kRounds / 10; ++round) {
    CAPTURE(round);
    LiveProcess process(random, random_options(random));
    const std::string bytes = process.run();
    for (int i = 0; i < 20; ++i) {
      const size_t at = random() % bytes.size();
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      CAPTURE(at);
      const Live live = read_live(damaged, random);
      CHECK((!live.failure.empty() || !live.problems.empty()));
      if (!says_missing(live.problems)) {
        check_truth(live.threads, process, true);
      }
      // The chunks before the one that is hit, as the file reader finds them.
      size_t begin = 0;
      if (at >= sizeof(FileHeader)) {
        const auto chunks = find_chunks(bytes);
        REQUIRE(chunks);
        for (const Chunk& chunk : chunks->chunks) {
          begin = chunk.offset <= at ? chunk.offset : begin;
        }
      }
      const Live before = read_live(std::string_view(bytes).substr(0, begin), random);
      uint64_t expected = 0;
      uint64_t found = 0;
      for (const auto& [name, events] : before.threads) {
        expected += events.size();
      }
      for (const auto& [name, events] : live.threads) {
        found += events.size();
      }
      CHECK(found >= expected);
    }
  }
}

TEST_CASE("a chunk that never came is named, and what follows is delivered") {
  const uint32_t seed = 5;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  int cut_out = 0;
  for (int round = 0; round < kRounds / 2; ++round) {
    CAPTURE(round);
    LiveProcessOptions options = random_options(random);
    options.loses = false;
    options.handlers = false;
    LiveProcess process(random, options);
    const std::string bytes = process.run();
    const auto chunks = find_chunks(bytes);
    REQUIRE(chunks);
    std::vector<const Chunk*> of_events;
    for (const Chunk& chunk : chunks->chunks) {
      if (chunk.header.type == static_cast<uint32_t>(ChunkType::kEvents)) {
        of_events.push_back(&chunk);
      }
    }
    if (of_events.empty()) {
      continue;
    }
    const Chunk& missing = *of_events[random() % of_events.size()];
    std::string rest = bytes;
    rest.erase(missing.offset, sizeof(ChunkHeader) + missing.stored.size());
    const auto file = read_capture(rest);
    REQUIRE(file);
    const Live live = read_live(rest, random);
    CHECK(live.failure.empty());
    CHECK(!live.problems.empty());
    // What the rounds had told of the chunk is not lost: otherwise the same events.
    for (const auto& [name, events] : threads_of(*file)) {
      const auto found = live.threads.find(name);
      REQUIRE(found != live.threads.end());
      CHECK(found->second.size() >= events.size());
    }
    ++cut_out;
  }
  CHECK(cut_out > kRounds / 4);
}

// Otherwise the chunk seems to interrupt itself, for ever.
TEST_CASE("the largest number is none of a chunk") {
  Writer::Options options;
  options.live = true;
  Recording file(options);
  const std::string payload(sizeof(ChunkStart), '\0');
  file.events(0, 0, payload);
  file.events(0, UINT64_MAX, payload);
  LiveReader reader;
  REQUIRE(reader.feed(file.bytes()));
  reader.finish();
  int ended = 0;
  reader.take([&](const LiveReader::News& news) { ended += news.ended ? 1 : 0; });
  CHECK(ended == 1);
  REQUIRE(!reader.problems().empty());
  CHECK(reader.problems().back() == "chunk 18446744073709551615 of a thread: no number of a chunk");
}

TEST_CASE("what is not a live capture is refused") {
  for (const std::string& bytes :
       {std::string(100, 'x'), std::string("T0|r(x)|1\n") + std::string(100, ' ')}) {
    LiveReader reader;
    CHECK(!reader.feed(bytes));
    reader.finish();
    reader.take([](const LiveReader::News&) { CHECK(false); });
  }
  Recording file;
  LiveReader reader;
  const auto fed = reader.feed(file.bytes());
  REQUIRE(!fed);
  CHECK(fed.error().message == "expected a live capture");
}

}  // namespace
}  // namespace tsomon::capture
