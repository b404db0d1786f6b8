// Predictions from inputs that are longer than a window, against all reorderings of the whole.
#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "monitor/findings/result_json.h"
#include "monitor/predict/merge_parts.h"
#include "monitor/predict/predict.h"
#include "tests/predict/small_traces.h"
#include "tests/rounds.h"

using namespace tsomon;
using predict::Branches;
using tsomon::testing::NaivePlayer;
using tsomon::testing::random_small_trace;
using tsomon::testing::SmallTraceShape;
using tsomon::testing::text;

namespace {

const int kRounds = rounds(150, 1'500);

// A trace as an input, in blocks of three events.
class TraceSource : public EventSource {
 public:
  explicit TraceSource(const Trace& trace) : trace_(trace) {}

  Result<bool> next(EventBlock& block) override {
    block.clear();
    const size_t end = std::min(trace_.events.size(), at_ + 3);
    block.append(trace_, at_, end);
    at_ = end;
    return !block.events.empty();
  }
  const Symbols& symbols() const override { return trace_.symbols; }
  Symbols take_symbols() override { return trace_.symbols; }
  const std::vector<capture::Module>& modules() const override { return modules_; }
  std::vector<std::string> warnings() const override { return {}; }
  bool complete() const override { return true; }
  uint64_t lost_events() const override { return 0; }

 private:
  const Trace& trace_;
  size_t at_ = 0;
  std::vector<capture::Module> modules_;
};

Prediction predicted(const Trace& trace, uint64_t window, Branches branches = Branches::kAuto,
                     bool buffers = false) {
  PredictOptions options;
  options.window_events = window;
  options.race.branches = branches;
  options.store_buffers = buffers;
  TraceSource source(trace);
  auto prediction = predict_source(source, options);
  REQUIRE(prediction.has_value());
  return std::move(*prediction);
}

Prediction predicted(const std::string& lines, uint64_t window,
                     Branches branches = Branches::kAuto) {
  const auto trace = read_std_text(lines, "test");
  REQUIRE(trace.has_value());
  return predicted(*trace, window, branches);
}

// All events of a witness, as numbers of the whole trace.
std::vector<uint32_t> order_of(const Trace& trace, const Prediction& prediction,
                               const predict::ShortWitness& brief) {
  std::vector<uint32_t> order;
  for (uint32_t event = 0; event < trace.events.size(); ++event) {
    for (const uint32_t last : brief.last) {
      if (prediction.trace.events[last].thread == trace.events[event].thread &&
          event <= prediction.line(last)) {
        order.push_back(event);
      }
    }
  }
  for (const uint32_t event : brief.tail) {
    order.push_back(static_cast<uint32_t>(prediction.line(event)));
  }
  return order;
}

struct Found {
  int windows = 0;
  int races = 0;
  int deadlocks = 0;
  int violations = 0;
  int missed = 0;  // races
};

// Whatever is predicted in windows can happen in the whole, and its witness does.
Found compare(uint32_t seed, const SmallTraceShape& shape, Branches branches, uint64_t window) {
  std::mt19937 random(seed);
  Found found;
  for (int round = 0; round < kRounds; ++round) {
    const Trace trace = random_small_trace(random, shape);
    const Prediction part = predicted(trace, window, branches);
    CAPTURE(text(trace));
    REQUIRE(part.windows > 1);
    REQUIRE_FALSE(part.complete());
    CHECK(part.races.invalid + part.deadlocks.invalid + part.atomicity.invalid == 0);
    found.windows += static_cast<int>(part.windows);
    NaivePlayer player(trace, branches);
    const auto number = [&](uint32_t event) { return static_cast<uint32_t>(part.line(event)); };
    const auto races = player.races();
    std::set<std::pair<uint32_t, uint32_t>> reported;
    for (const auto& race : part.races.races) {
      const std::pair pair(number(race.first), number(race.second));
      CAPTURE(pair.first);
      CAPTURE(pair.second);
      REQUIRE(races.count(pair) == 1);
      REQUIRE(reported.insert(pair).second);
      std::vector<uint32_t> order = order_of(trace, part, race.brief);
      REQUIRE(order.size() >= 2);
      REQUIRE(std::set(order.end() - 2, order.end()) == std::set{pair.first, pair.second});
      order.resize(order.size() - 2);
      REQUIRE(player.allows(order));
    }
    found.races += static_cast<int>(reported.size());
    found.missed += static_cast<int>(races.size() - reported.size());
    const auto deadlocks = player.deadlocks();
    const auto lost = player.lost();
    for (const auto& deadlock : part.deadlocks.deadlocks) {
      std::vector<uint32_t> requests;
      for (const uint32_t request : deadlock.requests) {
        requests.push_back(number(request));
      }
      std::sort(requests.begin(), requests.end());
      CAPTURE(requests.front());
      const bool circle = deadlock.kind == predict::DeadlockKind::kCircle;
      REQUIRE((circle ? deadlocks.count(requests) : lost.count(requests.front())) == 1);
      REQUIRE(player.allows(order_of(trace, part, deadlock.brief)));
      ++found.deadlocks;
    }
    const auto closing = player.closing(UnitTable(trace));
    for (const auto& violation : part.atomicity.violations) {
      CAPTURE(number(violation.last));
      REQUIRE(closing.all.count(number(violation.last)) == 1);
      ++found.violations;
    }
  }
  return found;
}

}  // namespace

TEST_CASE("windows: everything that is predicted can happen in the whole run") {
  for (const Branches branches :
       {Branches::kAsRecorded, Branches::kAfterEveryRead, Branches::kNone}) {
    for (const uint32_t threads : {2U, 3U}) {
      SmallTraceShape shape;
      shape.threads = threads;
      shape.events = 16;
      shape.forks = threads == 3;
      shape.reader_locks = branches == Branches::kAfterEveryRead;
      shape.units = true;
      const Found found = compare(threads, shape, branches, 9);
      CHECK(found.races > 0);
      CHECK(found.violations > 0);
      CHECK(found.missed > 0);
    }
  }
}

TEST_CASE("windows: locks, upgrades, tries, waits and exchanges across their beginnings") {
  for (const Branches branches : {Branches::kAsRecorded, Branches::kAfterEveryRead}) {
    SmallTraceShape shape;
    shape.events = 16;
    shape.mostly_locks = true;
    shape.reader_locks = true;
    shape.upgrades = true;
    Found found = compare(10, shape, branches, 8);
    shape.upgrades = shape.reader_locks = false;
    shape.waits = true;
    shape.tries = true;
    found.deadlocks += compare(11, shape, branches, 10).deadlocks;
    shape.threads = 3;
    found.deadlocks += compare(12, shape, branches, 10).deadlocks;
    CHECK(found.deadlocks > 0);
    shape.exchanges = true;
    shape.mostly_locks = false;
    CHECK(compare(13, shape, branches, 8).races > 0);
  }
}

TEST_CASE("windows: what was done before one is no part of how its schedules end") {
  // The lock of the first window is released before the other thread takes it, earlier than it did.
  const auto trace = read_std_text(
      "T1|w(1)|\nT0|acq(100)|\nT1|w(0)|\nT0|racq(101)|\nT0|r(0)|\nT1|w(0)|\nT1|racq(101)|\nT1|w(1)|"
      "\n"
      "T1|rrel(101)|\nT0|rrel(101)|\nT0|acq(101)|\nT0|rel(101)|\nT1|racq(101)|\nT0|w(1)|\n"
      "T1|branch|\nT1|r(0)|\n",
      "test");
  REQUIRE(trace.has_value());
  const Prediction part = predicted(*trace, 8, Branches::kAsRecorded);
  NaivePlayer player(*trace, Branches::kAsRecorded);
  bool seen = false;
  for (const auto& race : part.races.races) {
    std::vector<uint32_t> order = order_of(*trace, part, race.brief);
    REQUIRE(order.size() >= 2);
    CHECK(std::set(order.begin(), order.end()).size() == order.size());  // each event once
    order.resize(order.size() - 2);
    CHECK(player.allows(order));
    seen = seen || part.line(race.second) == 13;
  }
  CHECK(seen);
}

TEST_CASE("windows: what is in one of them is found as in the whole, and reported once") {
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += "T1|w(x)|1\nT2|r(y)|2\nT2|w(x)|3\nT1|r(y)|4\n";
  }
  const Prediction whole = predicted(lines, 1'000);
  const Prediction part = predicted(lines, 16);
  CHECK(whole.windows == 1);
  CHECK(whole.complete());
  CHECK(part.windows == 13);
  CHECK(part.events == 160);
  CHECK(whole.races.races.size() == 1);
  CHECK(part.races.races.size() == 1);
  CHECK(part.races.candidates == 1);
  CHECK(part.races.refused == 0);
  CHECK(prediction_fingerprint(part, part.races.races.front()) ==
        prediction_fingerprint(whole, whole.races.races.front()));
  // Without source locations: by thread and memory.
  std::string bare = lines;
  for (const char* place : {"|1\n", "|2\n", "|3\n", "|4\n"}) {
    for (size_t at = 0; (at = bare.find(place, at)) != std::string::npos;) {
      bare.replace(at, 3, "|\n");
    }
  }
  CHECK(predicted(bare, 16).races.races.size() == predicted(bare, 1'000).races.races.size());
}

TEST_CASE(
    "windows: a lock that is held twice when one begins is held until it is given back twice") {
  const std::string run =
      "T1|acq(l)|1\nT1|acq(l)|2\nT1|w(a)|3\nT1|w(a)|4\nT1|rel(l)|5\nT1|w(x)|6\nT1|rel(l)|7\n"
      "T2|acq(l)|8\nT2|w(x)|9\nT2|rel(l)|10\n";
  for (uint64_t window = 4; window < 10; ++window) {
    CHECK(predicted(run, window, Branches::kNone).races.races.empty());
  }
  // And a deadlock has its holder before the window.
  const std::string inversion =
      "T1|acq(a)|1\nT1|w(p)|2\nT1|w(p)|3\nT1|w(p)|4\nT1|w(p)|5\nT1|acq(b)|6\nT1|rel(b)|7\n"
      "T1|rel(a)|8\nT2|acq(b)|9\nT2|acq(a)|10\nT2|rel(a)|11\nT2|rel(b)|12\n";
  const Prediction part = predicted(inversion, 6, Branches::kNone);
  REQUIRE(part.windows == 3);
  REQUIRE(part.deadlocks.deadlocks.size() == 1);
  const predict::Deadlock& deadlock = part.deadlocks.deadlocks.front();
  CHECK(part.line(deadlock.requests.front()) == 5);
  CHECK(part.line(deadlock.holders.back()) == 0);
}

TEST_CASE("windows: what events outside of one rule out is not reported") {
  const std::string filler = "T1|w(p)|90\nT1|w(p)|90\nT1|w(p)|90\nT1|w(p)|90\nT1|w(p)|90\n";
  const auto size = [](const auto& all) { return all.size(); };
  // Memory that is exchanged is atomic, wherever that is.
  const std::string race = "T1|w(0x100+4)|1\nT2|w(0x100+4)|2\n";
  CHECK(size(predicted(race + filler, 4).races.races) == 1);
  CHECK(size(predicted(race + filler + "T1|rmw(0x100+8)|3\n", 4).races.races) == 0);
  CHECK(size(predicted(race + filler + "T1|rmw(0x104+4)|3\n", 4).races.races) == 1);
  // A notification that comes again is not lost.
  const std::string lost =
      "T1|acq(m)|2\nT1|rel(m)|3\nT1|wait(c)|4\nT1|acq(m)|5\nT1|rel(m)|6\nT2|notify(c)|8\n";
  CHECK(size(predicted(lost + filler, 6).deadlocks.deadlocks) == 1);
  CHECK(size(predicted(lost + filler + "T2|notify(c)|9\n", 6).deadlocks.deadlocks) == 0);
  CHECK(size(predicted(lost + filler + "T2|notify(d)|9\n", 6).deadlocks.deadlocks) == 1);
  PredictOptions first;
  first.max_events = 6;
  const auto trace = read_std_text(lost + filler + "T2|notify(c)|9\n", "test");
  REQUIRE(trace.has_value());
  TraceSource source(*trace);
  CHECK(predict_source(source, first)->deadlocks.deadlocks.empty());
  // An object that is freed in another window than it was made in.
  const std::string object =
      "T1|alloc(0x100+8)|0\n" + filler + "T1|w(0x100+8)|1\nT1|free(0x100)|2\n";
  CHECK(size(predicted(object + "T2|alloc(0x100+8)|3\nT2|w(0x100+8)|4\n", 6).races.races) == 0);
  // Nothing orders what follows a free with it.
  const auto used = predicted(object + "T2|w(0x100+8)|4\n", 6);
  CHECK(size(used.races.races) == 1);
  CHECK(size(used.lifetimes.after_free) == 1);
  // A unit that is cancelled in another window than it was begun in.
  const std::string unit = "T2|w(y)|7\nT1|begin(u)|0\nT1|r(x)|1\nT2|w(x)|2\nT1|r(x)|3\n";
  CHECK(size(predicted(unit + filler + "T1|cancel|4\n", 5).atomicity.violations) == 0);
  CHECK(size(predicted(unit + "T1|end|4\n" + filler, 6).atomicity.violations) == 1);
}

TEST_CASE("windows under TSO: stores have been committed when one begins") {
  std::string run;
  for (int i = 0; i < 9; ++i) {
    run += "T1|w(p)|1\n";
  }
  run +=
      "T1|begin(one)|1\nT1|w(x)|2\nT1|r(y)|3\nT1|end|4\nT2|begin(other)|5\nT2|w(y)|6\nT2|r(x)|"
      "7\nT2|end|8\n";
  const auto trace = read_std_text(run, "test");
  REQUIRE(trace.has_value());
  const Prediction part = predicted(*trace, 12, Branches::kAuto, true);
  CHECK(part.windows == 2);
  CHECK(part.atomicity.violations.size() == 2);
  CHECK(part.atomicity.invalid == 0);
}

namespace {

std::string json_of(const Trace& trace, uint64_t window, std::optional<PartChoice> part,
                    uint64_t max_events = UINT64_MAX) {
  PredictOptions options;
  options.window_events = window;
  options.max_events = max_events;
  options.part = part;
  TraceSource source(trace);
  const auto prediction = predict_source(source, options);
  REQUIRE(prediction.has_value());
  std::string text;
  put_json_line(prediction_json("input", *prediction), "tsomon predict",
                [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace

TEST_CASE("windows: what parts find is what one process finds, put together") {
  std::mt19937 random(77);
  int found = 0;
  for (int round = 0; round < kRounds; ++round) {
    SmallTraceShape shape;
    shape.threads = 2 + random() % 2;
    shape.events = 10 + random() % 20;
    shape.units = random() % 2 == 0;
    shape.waits = random() % 2 == 0;
    shape.tries = shape.waits;
    shape.mostly_locks = random() % 4 == 0;
    shape.exchanges = random() % 3 == 0;
    const Trace trace = random_small_trace(random, shape);
    const uint64_t window = 5 + random() % 8;
    const uint64_t most = random() % 4 == 0 ? 9 + random() % 9 : UINT64_MAX;
    const uint64_t of = 1 + random() % 5;
    CAPTURE(text(trace));
    CAPTURE(window);
    const std::string whole = json_of(trace, window, {}, most);
    std::vector<std::pair<std::string, std::string>> parts;
    for (uint64_t number = of; number > 0; --number) {
      parts.emplace_back("part", json_of(trace, window, PartChoice{number, of}, most));
    }
    const auto merged = merge_prediction_parts(parts);
    REQUIRE(merged.has_value());
    CHECK(json_line(merged->object, "tsomon predict") == whole);
    CHECK(merged->found == (whole.find("\"predicted\"") != std::string::npos));
    found += merged->found ? 1 : 0;
    if (of > 1) {
      parts.pop_back();
      CHECK_FALSE(merge_prediction_parts(parts).has_value());
    }
  }
  CHECK(found > 0);
}

TEST_CASE("windows: what no part has written is not put together") {
  const auto trace = read_std_text("T1|w(x)|1\nT2|w(x)|2\nT1|w(y)|3\nT1|w(y)|4\n", "test");
  REQUIRE(trace.has_value());
  const std::string one = json_of(*trace, 2, PartChoice{1, 2});
  const std::string two = json_of(*trace, 2, PartChoice{2, 2});
  const auto merged = [](const std::string& a, const std::string& b) {
    return merge_prediction_parts({{"a", a}, {"b", b}});
  };
  REQUIRE(merged(two, one).has_value());
  for (const char* const wrong : {"", "{}", "[1]", "{\"part\": 1}", "{\"part\": {\"number\": 1}}",
                                  "{\"part\": {\"number\": 3, \"of\": 2}}"}) {
    CHECK_FALSE(merged(one, wrong).has_value());
  }
  CHECK_FALSE(merged(one, one).has_value());
  CHECK_FALSE(merged(one, json_of(*trace, 3, PartChoice{2, 2})).has_value());
  // Each member in turn is something else.
  const auto whole = nlohmann::ordered_json::parse(two);
  const auto spoil = [&](const auto& spoil_rest, nlohmann::ordered_json at,
                         const std::function<std::string(nlohmann::ordered_json)>& text) -> void {
    for (auto it = at.begin(); it != at.end(); ++it) {
      for (const nlohmann::ordered_json& wrong :
           {nlohmann::ordered_json(nullptr), nlohmann::ordered_json(-1),
            nlohmann::ordered_json("x"), nlohmann::ordered_json::array({1}),
            nlohmann::ordered_json::object()}) {
        nlohmann::ordered_json other = at;
        if (at.is_object()) {
          other[it.key()] = wrong;
        } else {
          other[static_cast<size_t>(it - at.begin())] = wrong;
        }
        (void)merged(one, text(other));  // an answer or an error
      }
      if (it->is_structured() && !it->empty()) {
        spoil_rest(spoil_rest, *it, [&, it](nlohmann::ordered_json inner) {
          nlohmann::ordered_json other = at;
          if (at.is_object()) {
            other[it.key()] = std::move(inner);
          } else {
            other[static_cast<size_t>(it - at.begin())] = std::move(inner);
          }
          return text(other);
        });
      }
    }
  };
  spoil(spoil, whole, [](const nlohmann::ordered_json& object) { return object.dump(); });
}
