// What samples show of a program, against what the program did: threads are simulated that access
// two watched locations, call two probed functions and sleep, and the records that the kernel
// would have written about them become a perf.data, round by round and CPU by CPU.

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/perf/events.h"
#include "decoders/perf/writer.h"

using namespace tsomon;
using namespace tsomon::perf;

namespace {

constexpr uint64_t kFields = sample_type::kIdentifier | sample_type::kIp | sample_type::kTid |
                             sample_type::kTime | sample_type::kCpu;
constexpr uint64_t kFlags = attribute_flag::kSampleIdAll | attribute_flag::kEnableOnExec;
constexpr uint32_t kFirstTid = 100;
constexpr std::array<uint64_t, 2> kWatched = {0x1000, 0x2000};
constexpr uint64_t kMixedIp = 0x999;

// Ids are 1 + position: read-write and write breakpoints of both locations, entry and return
// probes of both functions.
std::vector<WrittenAttribute> attributes(bool write_twins) {
  std::vector<WrittenAttribute> all;
  for (const uint64_t address : kWatched) {
    for (const uint32_t kind : {3U, 2U}) {
      WrittenAttribute attribute;
      attribute.type = kTypeBreakpoint;
      attribute.breakpoint_type = kind == 2 && !write_twins ? 4 : kind;
      attribute.config1 = address;
      attribute.config2 = 4;
      all.push_back(attribute);
    }
  }
  for (const uint64_t function : {0, 1}) {
    for (const uint64_t is_return : {0, 1}) {
      WrittenAttribute attribute;
      attribute.type = 8;
      attribute.config = is_return;
      attribute.config2 = function;
      all.push_back(attribute);
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].sample_type = kFields;
    all[i].flags = kFlags;
    all[i].ids = {i + 1};
  }
  return all;
}

struct Truth {
  EventKind kind = EventKind::kRead;
  uint64_t what = 0;  // address, or number of the function
  int64_t time = 0;
  size_t partner = 0;  // of the end of a unit: its begin
};

struct SimulatedThread {
  uint32_t tid = 0;
  uint32_t cpu = 0;
  bool sleeps = false;
  std::vector<Truth> story;
  std::vector<size_t> open;                          // units, by position in the story
  std::deque<std::pair<uint64_t, uint64_t>> stamps;  // (event, ip) still to be written
};

struct Simulation {
  bool mixed = false;  // some reads and writes share an instruction
  bool losses = false;
  bool twins = true;
  std::mt19937 random;
  int64_t now = 1000;
  std::vector<SimulatedThread> threads;
  std::array<std::vector<std::string>, 2> buffers;
  std::array<uint64_t, 2> lost{};
  std::string records;

  uint32_t draw(uint32_t below) { return random() % below; }

  std::string trailer(const SimulatedThread& thread) {
    return Fields()
        .put(uint32_t{7})
        .put(thread.tid)
        .put(static_cast<uint64_t>(now))
        .put(thread.cpu)
        .put(uint32_t{0})
        .put(uint64_t{1})
        .bytes();
  }

  void write(const SimulatedThread& thread, const std::string& record) {
    if (losses && (lost[thread.cpu] > 0 ? draw(3) != 0 : draw(150) == 0)) {
      ++lost[thread.cpu];
      return;
    }
    if (lost[thread.cpu] > 0) {
      buffers[thread.cpu].push_back(
          record_bytes(RecordType::kLost, 0,
                       Fields().put(uint64_t{1}).put(lost[thread.cpu]).bytes() + trailer(thread)));
      lost[thread.cpu] = 0;
      ++now;
    }
    buffers[thread.cpu].push_back(record);
  }

  void stamp(SimulatedThread& thread) {
    const auto [event, ip] = thread.stamps.front();
    thread.stamps.pop_front();
    write(thread, record_bytes(RecordType::kSample, misc::kUser,
                               Fields()
                                   .put(event + 1)
                                   .put(ip)
                                   .put(uint32_t{7})
                                   .put(thread.tid)
                                   .put(static_cast<uint64_t>(now))
                                   .put(thread.cpu)
                                   .put(uint32_t{0})
                                   .bytes()));
  }

  void access(SimulatedThread& thread) {
    const uint64_t location = draw(2);
    const bool is_write = draw(2) == 0;
    const uint64_t ip =
        mixed && draw(2) == 0 ? kMixedIp : 0x400 + 16 * (2 * location + (is_write ? 1 : 0));
    thread.story.push_back(
        {is_write ? EventKind::kWrite : EventKind::kRead, kWatched[location], now});
    thread.stamps.emplace_back(2 * location, ip);
    if (is_write && twins) {
      thread.stamps.emplace_back(2 * location + 1, ip);
      if (draw(2) == 0) {
        std::swap(thread.stamps.front(), thread.stamps.back());
      }
    }
  }

  void call_or_return(SimulatedThread& thread) {
    if (!thread.open.empty() && draw(2) == 0) {
      const size_t begin = thread.open.back();
      thread.open.pop_back();
      const uint64_t function = thread.story[begin].what;
      thread.story.push_back({EventKind::kUnitEnd, function, now, begin});
      // A function that is left by an exception does not pass its return probe.
      if (draw(10) != 0) {
        thread.stamps.emplace_back(5 + 2 * function, 0x300);
      }
    } else if (thread.open.size() < 4) {
      const uint64_t function = draw(2);
      thread.open.push_back(thread.story.size());
      thread.story.push_back({EventKind::kUnitBegin, function, now});
      thread.stamps.emplace_back(4 + 2 * function, 0x300);
    }
  }

  void step() {
    ++now;
    SimulatedThread& thread = threads[draw(static_cast<uint32_t>(threads.size()))];
    if (thread.sleeps) {
      thread.sleeps = false;
      thread.cpu = draw(2);
      write(thread, record_bytes(RecordType::kSwitch, 0, trailer(thread)));
    } else if (!thread.stamps.empty()) {
      stamp(thread);
    } else if (const uint32_t what = draw(10); what < 6) {
      access(thread);
    } else if (what < 9) {
      call_or_return(thread);
    } else {
      thread.sleeps = true;
      write(thread, record_bytes(RecordType::kSwitch, misc::kSwitchOut, trailer(thread)));
    }
    if (draw(40) == 0) {
      end_round();
    }
  }

  void end_round() {
    for (auto& buffer : buffers) {
      for (const std::string& record : buffer) {
        records += record;
      }
      buffer.clear();
    }
    records += record_bytes(RecordType::kFinishedRound, 0, {});
  }

  std::string file() {
    for (SimulatedThread& thread : threads) {
      while (!thread.stamps.empty()) {
        ++now;
        stamp(thread);
      }
      // So that what was lost last is told.
      losses = false;
      ++now;
      write(thread, record_bytes(RecordType::kSwitch, misc::kSwitchOut, trailer(thread)));
    }
    for (uint32_t cpu = 0; cpu < 2; ++cpu) {
      ++now;
      threads[0].cpu = cpu;
      write(threads[0], record_bytes(RecordType::kSwitch, 0, trailer(threads[0])));
    }
    end_round();
    Fields index;
    index.put(uint64_t{2});
    for (uint64_t cpu = 0; cpu < 2; ++cpu) {
      index.put(uint64_t{1}).put(cpu).put(cpu).put(uint64_t{7});
    }
    const std::string name = "uprobe";
    const std::string pmus = Fields()
                                 .put(uint32_t{1})
                                 .put(uint32_t{8})
                                 .put(static_cast<uint32_t>(name.size() + 1))
                                 .put_bytes(name)
                                 .put_bytes(std::string(1, '\0'))
                                 .bytes();
    return file_of(attributes(twins),
                   record_bytes(RecordType::kIdIndex, 0, index.bytes()) + records, {{16, pmus}});
  }
};

Simulation simulate(uint32_t seed, bool mixed, bool losses, bool twins = true) {
  Simulation run;
  run.random.seed(seed);
  run.mixed = mixed;
  run.losses = losses;
  run.twins = twins;
  for (uint32_t i = 0; i < 3; ++i) {
    run.threads.push_back({});
    run.threads.back().tid = kFirstTid + i;
    run.threads.back().cpu = i % 2;
  }
  for (int i = 0; i < 400; ++i) {
    run.step();
  }
  return run;
}

bool is_access(EventKind kind) { return kind == EventKind::kRead || kind == EventKind::kWrite; }

// Every event that was decoded is one of the thread's story, in its order, at its time; returns how
// many accesses were found.
size_t compare(const Trace& trace, const SimulatedThread& thread) {
  const std::string name = std::to_string(thread.tid);
  size_t next = 0;
  size_t accesses = 0;
  std::vector<size_t> open;
  bool drained = true;
  for (const Event& event : trace.events) {
    if (trace.symbols.threads.text(event.thread) != name || event.kind() == EventKind::kFork) {
      continue;
    }
    if (event.kind() == EventKind::kFence) {
      drained = true;
      continue;
    }
    // A thread does nothing between an event and its stamps.
    const auto after =
        std::upper_bound(thread.story.begin(), thread.story.end(), trace.hi(event),
                         [](int64_t time, const Truth& truth) { return time < truth.time; });
    REQUIRE(after != thread.story.begin());
    const auto place = static_cast<size_t>(after - thread.story.begin()) - 1;
    const Truth& truth = thread.story[place];
    CHECK(place >= next);
    CHECK(truth.kind == event.kind());
    CHECK(truth.time >= trace.lo(event));
    next = place + 1;
    if (event.kind() == EventKind::kUnitEnd) {
      // The end of the call that began, or of one around it whose begin was taken for it.
      REQUIRE_FALSE(open.empty());
      CHECK(truth.what == thread.story[open.back()].what);
      CHECK(truth.partner <= open.back());
      open.pop_back();
    } else if (event.kind() == EventKind::kUnitBegin) {
      CHECK(trace.symbols.labels.text(static_cast<uint32_t>(event.address)) ==
            "uprobe+0x" + std::to_string(truth.what));
      open.push_back(place);
    } else {
      CHECK(truth.what == event.address);
      CHECK(drained);
      drained = false;
      ++accesses;
    }
  }
  return accesses;
}

size_t accesses_of(const SimulatedThread& thread) {
  return static_cast<size_t>(
      std::count_if(thread.story.begin(), thread.story.end(),
                    [](const Truth& truth) { return is_access(truth.kind); }));
}

bool mentions(const std::vector<std::string>& notes, const std::string& text) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

#ifdef TSOMON_SANITIZED
constexpr uint32_t kRuns = 20;
#else
constexpr uint32_t kRuns = 300;
#endif

}  // namespace

TEST_CASE("samples: every access, at its time, in its unit") {
  size_t units = 0;
  for (uint32_t seed = 0; seed < kRuns; ++seed) {
    CAPTURE(seed);
    Simulation run = simulate(seed, false, false);
    const auto samples = read_samples(run.file());
    REQUIRE(samples);
    CHECK(samples->problems.empty());
    CHECK(samples->trace.complete);
    CHECK(samples->trace.sampled);
    for (const SimulatedThread& thread : run.threads) {
      CHECK(compare(samples->trace, thread) == accesses_of(thread));
    }
    units += static_cast<size_t>(
        std::count_if(samples->trace.events.begin(), samples->trace.events.end(),
                      [](const Event& event) { return event.kind() == EventKind::kUnitBegin; }));
  }
  CHECK(units > kRuns);
}

TEST_CASE("samples: an instruction that reads and writes is not guessed at") {
  size_t seen = 0;
  size_t all = 0;
  for (uint32_t seed = 0; seed < kRuns; ++seed) {
    CAPTURE(seed);
    Simulation run = simulate(seed, true, false);
    const auto samples = read_samples(run.file());
    REQUIRE(samples);
    for (const SimulatedThread& thread : run.threads) {
      seen += compare(samples->trace, thread);
      all += accesses_of(thread);
    }
  }
  CHECK(seen < all);
  CHECK(seen > all / 2);
}

TEST_CASE("samples: without write breakpoints a hit says nothing of its direction") {
  Simulation run = simulate(1, false, false, false);
  const auto samples = read_samples(run.file());
  REQUIRE(samples);
  CHECK(mentions(samples->notes, "read-write breakpoints left out"));
  for (const SimulatedThread& thread : run.threads) {
    CHECK(compare(samples->trace, thread) == 0);
  }
}

TEST_CASE("samples: what was lost takes units and loads away, and makes none up") {
  size_t with_losses = 0;
  size_t units = 0;
  for (uint32_t seed = 0; seed < kRuns; ++seed) {
    CAPTURE(seed);
    Simulation run = simulate(seed, false, true);
    const auto samples = read_samples(run.file());
    REQUIRE(samples);
    for (const SimulatedThread& thread : run.threads) {
      compare(samples->trace, thread);
    }
    if (samples->trace.lost_events == 0) {
      continue;
    }
    ++with_losses;
    CHECK_FALSE(samples->trace.complete);
    for (const Event& event : samples->trace.events) {
      CHECK(event.kind() != EventKind::kRead);
      units += event.kind() == EventKind::kUnitBegin ? 1 : 0;
    }
  }
  CHECK(with_losses > kRuns / 4);
  CHECK(units > 0);
}

TEST_CASE("samples: of memory, only what the processor is sure of") {
  WrittenAttribute attribute;
  attribute.type = 4;  // the processor's
  attribute.sample_type = sample_type::kIp | sample_type::kTid | sample_type::kTime |
                          sample_type::kAddress | sample_type::kDataSource;
  std::string records;
  const auto sample = [&](uint64_t address, uint64_t source) {
    records += record_bytes(RecordType::kSample, misc::kUser | misc::kExactIp,
                            Fields()
                                .put(uint64_t{0x401000})
                                .put(uint32_t{5})
                                .put(uint32_t{6})
                                .put(uint64_t{500})
                                .put(address)
                                .put(source)
                                .bytes());
  };
  constexpr uint64_t kLoad = 2;
  constexpr uint64_t kStore = 4;
  constexpr uint64_t kLocked = 2ULL << 24;
  sample(0x10, kLoad);
  sample(0x20, kStore);
  sample(0x30, kLoad | kLocked);
  sample(0x40, 1);               // no access
  sample(0, kLoad);              // no address
  sample(0x50, kLoad | kStore);  // either
  const auto samples = read_samples(file_of({attribute}, records));
  REQUIRE(samples);
  const Trace& trace = samples->trace;
  REQUIRE(trace.events.size() == 3);
  CHECK(trace.events[0].kind() == EventKind::kRead);
  CHECK(trace.hi(trace.events[0]) == kTimeMax);
  CHECK(trace.events[1].kind() == EventKind::kWrite);
  CHECK(trace.hi(trace.events[1]) == 500);
  CHECK(trace.events[2].kind() == EventKind::kReadModifyWrite);
  CHECK(trace.events[2].address == 0x30);
  CHECK(trace.events[2].size == 1);
  CHECK(trace.symbols.location_text(trace.events[2].location) == "0x401001");
  CHECK(mentions(samples->notes, "2 samples left out"));
}

TEST_CASE("samples: processes do not share locations, and exec begins anew") {
  WrittenAttribute attribute;
  attribute.type = kTypeBreakpoint;
  attribute.breakpoint_type = 2;
  attribute.config1 = 0x1000;
  attribute.config2 = 4;
  attribute.sample_type = sample_type::kIp | sample_type::kTid | sample_type::kTime;
  attribute.flags = attribute_flag::kSampleIdAll;
  uint64_t now = 0;
  std::string records;
  const auto hit = [&](uint32_t pid) {
    records += record_bytes(RecordType::kSample, misc::kUser,
                            Fields().put(uint64_t{0x10}).put(pid).put(pid).put(now += 10).bytes());
  };
  const auto trailer = [&](uint32_t pid) {
    return Fields().put(pid).put(pid).put(now += 10).bytes();
  };
  const auto map = [&](uint32_t pid, const std::string& path) {
    records += record_bytes(RecordType::kMmap, 0,
                            Fields().put(pid)
                                    .put(pid)
                                    .put(uint64_t{0x10})
                                    .put(uint64_t{0x100})
                                    .put(uint64_t{0})
                                    .put_text(path)
                                    .bytes() +
                                trailer(pid));
  };
  map(1, "/one");
  hit(1);
  records += record_bytes(RecordType::kFork, 0,
                          Fields().put(uint32_t{2})
                                  .put(uint32_t{1})
                                  .put(uint32_t{2})
                                  .put(uint32_t{1})
                                  .put(uint64_t{0})
                                  .bytes() +
                              trailer(1));
  hit(2);
  records +=
      record_bytes(RecordType::kComm, misc::kCommExec,
                   Fields().put(uint32_t{1}).put(uint32_t{1}).put_text("new").bytes() + trailer(1));
  map(1, "/new");
  hit(1);
  const auto samples = read_samples(file_of({attribute}, records));
  REQUIRE(samples);
  std::vector<uint64_t> spaces;
  for (const Event& event : samples->trace.events) {
    if (event.kind() == EventKind::kWrite) {
      CHECK((event.address & 0xFFFF) == 0x1000);
      spaces.push_back(event.address >> 57);
    }
  }
  CHECK(spaces == std::vector<uint64_t>{0, 1, 2});
  std::vector<std::string> paths;
  for (const CodeMapping& mapping : samples->mappings) {
    paths.push_back(std::to_string(mapping.begin >> 57) + mapping.path);
  }
  std::sort(paths.begin(), paths.end());
  CHECK(paths == std::vector<std::string>{"0/one", "1/one", "2/new"});
}
