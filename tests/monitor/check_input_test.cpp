// Checked as a stream, an input is judged like the whole trace, and its events keep their numbers.
#include "monitor/check/check_input.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/std/writer.h"
#include "tests/monitor/folder.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/model/location_table.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(200, 2500);
#if defined(TSOMON_SANITIZED)
constexpr int kLong = 30'000;
#else
constexpr int kLong = 60'000;
#endif

constexpr Property kProperties[] = {Property::kSerializability, Property::kScSerializability,
                                    Property::kAtomicSets, Property::kRobustness};

// Moves lines back and forth, each thread staying in order, and begins some intervals earlier.
void disturb(std::mt19937_64& random, Trace& trace) {
  auto& events = trace.events;
  for (size_t n = 0; n < 2 * events.size(); ++n) {
    const size_t i = random() % events.size();
    if (i + 1 < events.size() && events[i].thread != events[i + 1].thread) {
      std::swap(events[i], events[i + 1]);
    }
  }
  for (Event& event : events) {
    if (random() % 4 == 0 && !event.has_extras()) {
      const auto earlier = static_cast<int64_t>(random() % 20);
      event.lo -= earlier;
      event.span_or_extra += static_cast<uint32_t>(earlier);
    }
  }
}

void check_events(const CheckReport& report, const Trace& trace) {
  for (const Finding& finding : report.findings) {
    for (size_t i = 0; i < finding.index.size(); ++i) {
      REQUIRE(finding.index[i] < trace.events.size());
      const Event& shown = finding.events.events[i];
      const Event& event = trace.events[finding.index[i]];
      REQUIRE(shown.thread == event.thread);
      if (!is(shown, kinds::kNodes)) {
        continue;  // where a unit begins and ends, as far as the detector remembers
      }
      REQUIRE(shown.kind() == event.kind());
      if (is(event, kinds::kAccesses)) {
        // Of an access to several locations of sets the detector remembers one.
        REQUIRE(overlap({shown.address, shown.size}, {event.address, event.size}));
      }
    }
  }
}

CheckReport check_file(const std::string& path, const CheckOptions& options) {
  auto checked = check_input(path, InputFormat::kAuto, options);
  REQUIRE_MESSAGE(checked.has_value(), checked.error().to_string());
  return std::move(checked->report);
}

}  // namespace

TEST_CASE("files of text traces are judged like the whole trace") {
  constexpr uint64_t kSeed = 2024;
  std::mt19937_64 random(kSeed);
  const Folder folder;
  int verdicts[4] = {};
  int moved = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 3);
    made.locations = 1 + static_cast<uint32_t>(random() % 5);
    made.steps = 4 + static_cast<uint32_t>(random() % 14);
    made.units = 30;
    made.locks = random() % 3 == 0 ? 30 : 0;
    made.nesting = random() % 2 == 0;
    made.mixed_sizes = random() % 4 == 0;
    made.threads_start = random() % 4 == 0;
    made.values = random() % 2 == 0;
    made.intervals = random() % 3 != 0;
    Trace written = random_trace(random, made).trace;
    const bool disturbed = made.intervals && random() % 2 == 0;
    if (disturbed) {
      disturb(random, written);
    }
    const std::string path = folder.write("trace.std", write_std(written));
    CheckOptions options;
    options.property = kProperties[random() % 4];
    options.jobs = 1 + static_cast<unsigned>(random() % 2);
    INFO("seed " << kSeed << " round " << round << " property " << property_name(options.property)
                 << "\n"
                 << write_std(written));
    const auto loaded = load_trace(path);
    REQUIRE_MESSAGE(loaded.has_value(), loaded.error().to_string());
    const Trace& trace = loaded->trace;
    const auto whole = check_trace(trace, options);
    if (!whole) {
      REQUIRE_FALSE(check_input(path, InputFormat::kAuto, options));
      continue;
    }
    CheckReport streamed = check_file(path, options);
    ++verdicts[static_cast<int>(streamed.verdict())];
    REQUIRE(streamed.verdict() == whole->verdict());
    REQUIRE(streamed.complete() == whole->complete());
    REQUIRE(streamed.events == whole->events);
    REQUIRE(streamed.threads == whole->threads);
    REQUIRE(streamed.units == whole->units);
    REQUIRE(streamed.violations() == whole->violations());
    check_events(streamed, trace);
    const bool in_order =
        std::is_sorted(trace.events.begin(), trace.events.end(),
                       [](const Event& a, const Event& b) { return a.lo < b.lo; });
    if (!in_order && options.property != Property::kRobustness) {
      ++moved;
      // What was put in order is restored: the same report, to the last field; and so is the input that is kept.
      if (streamed.judged != nullptr) {
        const std::vector<Event>& kept = streamed.judged->trace.events;
        REQUIRE(std::equal(kept.begin(), kept.end(), trace.events.begin(), trace.events.end(),
                           [](const Event& a, const Event& b) {
                             return a.kind() == b.kind() && a.thread == b.thread && a.lo == b.lo;
                           }));
        streamed.judged.reset();
      }
      REQUIRE(report_json("t", trace.symbols, streamed) == report_json("t", trace.symbols, *whole));
    }
    // With little history it may know less, and not something else.
    options.history_events = 1 + random() % 16;
    const CheckReport shorter = check_file(path, options);
    check_events(shorter, trace);
    // An order restored from intervals is sharper than the lines' own, above all for atomic sets,
    // whose order is that of the events as they come.
    if (in_order ||
        (options.property != Property::kAtomicSets && whole->verdict() == Verdict::kDefinite)) {
      REQUIRE((shorter.verdict() != Verdict::kClean || whole->verdict() == Verdict::kClean ||
               whole->verdict() == Verdict::kInconclusive));
    }
  }
  MESSAGE(kRounds << " traces: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                  << verdicts[2] << " definite, " << verdicts[3] << " inconclusive; " << moved
                  << " out of order");
  CHECK(verdicts[0] > kRounds / 20);
  CHECK(verdicts[1] > kRounds / 50);
  CHECK(verdicts[2] > kRounds / 20);
  CHECK(moved > kRounds / 20);
}

TEST_CASE("reports on long reordered inputs count the lines of the input") {
  // Two threads in turns, every line some places away from where its time is. One unit stays open
  // from the beginning: it reads x first and writes it at the end, after the other thread did.
  std::mt19937_64 random(8);
  struct Line {
    int64_t key;
    std::string text;
  };
  std::vector<Line> lines;
  std::map<char, int64_t> last;  // each thread stays in its order
  const auto add = [&](const char* what, int64_t time) {
    int64_t& key = last[what[0]];
    key = std::max(key, time + static_cast<int64_t>(random() % 600));
    lines.push_back({key, fmt::format("{}|{}..{}\n", what, time, time + 3)});
  };
  add("A|begin(long)|", 0);
  lines.back().key = -2;
  add("A|r(x)|first", 5);
  lines.back().key = -1;
  for (int i = 1; i < kLong; ++i) {
    const int64_t time = 10 * i;
    const std::string own = fmt::format("{}|r(y{})|", i % 2 == 0 ? "B" : "C", i % 50);
    add(i == kLong / 2 ? "D|rmw(x)|second" : own.c_str(), time);
  }
  add("A|rmw(x)|third", 10 * kLong);
  lines.back().key = 20 * kLong;
  add("A|end|", 10 * kLong + 5);
  lines.back().key = 20 * kLong + 1;
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.key < b.key; });
  std::string text;
  std::vector<uint64_t> expected(3);
  for (size_t i = 0; i < lines.size(); ++i) {
    text += lines[i].text;
    const char* const places[] = {"first", "second", "third"};
    for (size_t p = 0; p < 3; ++p) {
      expected[p] = lines[i].text.find(places[p]) != std::string::npos ? i : expected[p];
    }
  }
  const Folder folder;
  const std::string path = folder.write("long.std", text);
  const auto loaded = load_trace(path);
  REQUIRE(loaded);
  for (const uint64_t history : {uint64_t{1} << 20, uint64_t{9000}}) {
    CheckOptions options;
    options.history_events = history;
    const CheckReport report = check_file(path, options);
    REQUIRE(report.verdict() == Verdict::kDefinite);
    check_events(report, loaded->trace);
    REQUIRE(report.findings.size() == 1);
    const std::vector<uint64_t>& index = report.findings[0].index;
    for (const uint64_t line : expected) {
      CHECK(std::find(index.begin(), index.end(), line) != index.end());
    }
  }
}

TEST_CASE("errors come with the input's name, whoever reads") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 50'000; ++i) {
    text += "A|w(x)|1\n";
  }
  const std::string path = folder.write("bad.std", text + "A|wibble|2\n");
  for (const unsigned jobs : {1U, 2U}) {
    CheckOptions options;
    options.jobs = jobs;
    const auto checked = check_input(path, InputFormat::kAuto, options);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().input == path);
    CHECK(checked.error().where == "line 50001");
  }
}

TEST_CASE("headers and new labels reach the judging thread with their events") {
  const Folder folder;
  // Every unit has a label of its own; the set is declared late, its violation comes after.
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    text += fmt::format("A|begin(a{};s)|\nA|r(z)|\nA|end|\n", i);
  }
  text += "-|set(s;x,y)|\n";
  text += "A|begin(p;s)|\nA|r(x)|\nB|begin(q;s)|\nB|w(x)|\nB|end|\nA|w(x)|\nA|end|\n";
  const std::string path = folder.write("sets.std", text);
  for (const unsigned jobs : {1U, 2U}) {
    CheckOptions options;
    options.jobs = jobs;
    options.property = Property::kAtomicSets;
    const auto checked = check_input(path, InputFormat::kAuto, options);
    REQUIRE(checked);
    CHECK(checked->report.verdict() == Verdict::kDefinite);
    CHECK(checked->symbols.labels.size() == 20'002);
    CHECK(report_text(path, checked->symbols, checked->report).find("unit q") != std::string::npos);
  }
}
