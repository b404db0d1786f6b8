// Verdicts on runs whose time stamps come from counters that disagree, against what really
// happened.
//
// A simulated run has true times. Its events are stamped by processors whose counters are ahead of
// these times by up to a margin, threads wander between processors, and stamps are put in order as
// the probe does (last_stamps.h). Intervals are made as readers of captures make them.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/capture/clock_margin.h"
#include "monitor/judge/stream_check.h"
#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/naive_checker.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(1000, 12'000);

constexpr int64_t kStep = 4;  // cycles between two events of a run

struct Skewed {
  Trace trace;
  int64_t backwards = 0;  // by how much a stamp came before one that it follows
};

// `margin`: how far counters differ; `allowed`: what the reader is told of that.
Skewed skewed(const Trace& run, int64_t margin, int64_t allowed, bool wander,
              std::mt19937_64& random) {
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  std::vector<int64_t> ahead(3);  // of each processor
  for (int64_t& offset : ahead) {
    offset = below(margin + 1);
  }
  ahead[0] = 0;
  ahead[1] = margin;
  std::map<ThreadId, size_t> processors;
  std::map<ThreadId, int64_t> last;  // of a thread; what its first stamp must be behind
  std::map<ThreadId, int64_t> first;
  std::map<uint64_t, int64_t> under_lock;
  Skewed result;
  std::vector<int64_t> stamps(run.events.size());
  for (size_t i = 0; i < run.events.size(); ++i) {
    const Event& event = run.events[i];
    if (processors.count(event.thread) == 0 || (wander && random() % 3 == 0)) {
      processors[event.thread] = static_cast<size_t>(below(3));
    }
    int64_t stamp = kStep * static_cast<int64_t>(i) + ahead[processors[event.thread]];
    const auto behind = [&](int64_t other) {
      result.backwards = std::max(result.backwards, other - stamp);
      stamp = std::max(stamp, other);
    };
    if (const auto known = last.find(event.thread); known != last.end()) {
      behind(known->second);
    } else if (const auto forked = first.find(event.thread); forked != first.end()) {
      behind(forked->second + 1);
    }
    if (is(event, kinds::kAcquisitions) && under_lock.count(event.address) != 0) {
      behind(under_lock[event.address] + 1);
    }
    if (event.kind() == EventKind::kJoin && last.count(static_cast<ThreadId>(event.address)) != 0) {
      behind(last[static_cast<ThreadId>(event.address)] + 1);
    }
    if (event.kind() == EventKind::kRelease || event.kind() == EventKind::kReleaseShared) {
      int64_t& latest = under_lock.try_emplace(event.address, kTimeMin).first->second;
      latest = std::max(latest, stamp);
    }
    if (event.kind() == EventKind::kFork) {
      first[static_cast<ThreadId>(event.address)] = stamp;
    }
    last[event.thread] = stamps[i] = stamp;
  }
  // As a reader merges the threads.
  std::vector<uint32_t> order(run.events.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return stamps[a] < stamps[b]; });
  result.trace.symbols = run.symbols;
  for (const uint32_t i : order) {
    Event event = run.events[i];
    const auto read = run.read_value(event);
    const auto write = run.write_value(event);
    event.has_hi = event.has_read_value = event.has_write_value = 0;
    // Some accesses lie between two stamps.
    const bool wide = is(event, kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                                    kind_mask(EventKind::kFence)) &&
                      random() % 4 == 0;
    result.trace.add(event, stamps[i], stamps[i] + (wide ? below(3 * kStep) : 0), read, write);
  }
  capture::widen(result.trace, 0, allowed);
  return result;
}

struct Question {
  RandomTrace made;
  CheckOptions options;
  int64_t margin = 0;
};

Question random_question(std::mt19937_64& random, bool small) {
  RandomTraceOptions made;
  made.threads = 2 + static_cast<uint32_t>(random() % 2);
  made.locations = 1 + static_cast<uint32_t>(random() % 3);
  made.steps = (small ? 5 : 9) + static_cast<uint32_t>(random() % 6);
  made.units = 40;
  made.locked = static_cast<uint32_t>(random() % 2) * 15;
  made.fences = static_cast<uint32_t>(random() % 3) * 10;
  made.locks = random() % 2 == 0 ? 40 : 0;
  made.lock_count = 1 + static_cast<uint32_t>(random() % 2);
  made.readers = random() % 3 == 0 ? 40 : 0;
  made.fenced = random() % 3 == 0;
  made.threads_start = random() % 3 == 0;
  made.values = !small && random() % 2 == 0;
  Question question{random_trace(random, made), {}, static_cast<int64_t>(random() % 40)};
  question.options.analysis.values = made.values;
  return question;
}

bool violated(const Question& question) {
  const Executions executions(question.made.trace, question.options.analysis.relation);
  return executions.violates(Property::kSerializability, question.made.execution);
}

CheckReport stream(const Trace& trace, const CheckOptions& options) {
  StreamCheck check(trace.symbols, options);
  check.add(trace);
  auto report = check.finish(trace.complete, trace.lost_events);
  REQUIRE_MESSAGE(report.has_value(), report.error().to_string());
  return *report;
}

bool lies(Verdict verdict, bool violated) {
  return (verdict == Verdict::kDefinite && !violated) || (verdict == Verdict::kClean && violated);
}

}  // namespace

TEST_CASE("no verdict is wrong where counters differ within the margin") {
  std::mt19937_64 random(20261125);
  int verdicts[4] = {};
  int lies_without = 0;
  int backwards = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Question question = random_question(random, false);
    const bool truth = violated(question);
    const bool wander = random() % 2 == 0;
    const Skewed run =
        skewed(question.made.trace, question.margin, question.margin, wander, random);
    INFO("round " << round << " margin " << question.margin << "\nthe run\n"
                  << show(question.made.trace) << "\nas it was recorded\n"
                  << show(run.trace));
    // A reader that is told by how much stamps went back does not find a contradiction.
    REQUIRE(run.backwards <= question.margin);
    backwards += run.backwards > 0 ? 1 : 0;
    const auto whole = check_trace(run.trace, question.options);
    REQUIRE(whole.has_value());
    ++verdicts[static_cast<int>(whole->verdict())];
    REQUIRE_FALSE(lies(whole->verdict(), truth));
    const CheckReport streamed = stream(run.trace, question.options);
    REQUIRE(streamed.verdict() == whole->verdict());
    // The same stamps, believed.
    const Skewed believed = skewed(question.made.trace, question.margin, 0, wander, random);
    CheckOptions options = question.options;
    options.analysis.values = false;
    const auto wrong = check_trace(believed.trace, options);
    REQUIRE(wrong.has_value());
    lies_without += lies(wrong->verdict(), truth) ? 1 : 0;
  }
  MESSAGE(kRounds << " runs: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                  << verdicts[2] << " definite, " << verdicts[3] << " inconclusive; without the "
                  << "margin " << lies_without << " wrong");
  CHECK(lies_without > kRounds / 200);
  CHECK(backwards > kRounds / 20);
  CHECK(verdicts[0] > kRounds / 20);
  CHECK(verdicts[1] > kRounds / 50);
  CHECK(verdicts[2] > kRounds / 50);
}

TEST_CASE("events of a lock that are ordered by their beginnings, against the plainest means") {
  std::mt19937_64 random(20261126);
  int compared = 0;
  int sharper = 0;
  for (int round = 0; round < kRounds / 2; ++round) {
    const Question question = random_question(random, true);
    const Skewed run = skewed(question.made.trace, question.margin, question.margin, true, random);
    INFO("round " << round << "\n" << show(run.trace));
    const AnalysisOptions options = question.options.analysis;
    const auto judged = analyse(run.trace, options);
    REQUIRE(judged.has_value());
    Trace plain = run.trace;
    for (Event& event : plain.events) {
      if (is(event, kinds::kLocks) && event.has_write_value != 0) {
        const int64_t hi = plain.hi(event);
        event.has_hi = event.has_write_value = event.span_or_extra = 0;
        static_cast<EventBlock&>(plain).complete(event, hi);
      }
    }
    const auto weaker = analyse(plain, options);
    REQUIRE(weaker.has_value());
    sharper += judged->verdict() != weaker->verdict() ? 1 : 0;
    REQUIRE((weaker->verdict() == judged->verdict() || weaker->verdict() == Verdict::kPossible ||
             weaker->verdict() == Verdict::kInconclusive));
    const NaiveChecker naive(run.trace, question.options.analysis.relation);
    if (const auto expected = naive.verdict(Property::kSerializability)) {
      REQUIRE(judged->verdict() == *expected);
      ++compared;
    }
  }
  CHECK(compared > kRounds / 20);
  CHECK(sharper > kRounds / 2000);
}

TEST_CASE("short critical sections of one lock stay in order under any margin") {
  Trace trace;
  const uint32_t label = trace.symbols.labels.intern("deposit");
  int64_t time = 1'000'000;
  for (int round = 0; round < 200; ++round) {
    const ThreadId thread = static_cast<ThreadId>(round % 2);
    trace.symbols.threads.intern(round % 2 == 0 ? "A" : "B");
    const auto add = [&](EventKind kind, uint64_t address, uint32_t size) {
      Event event;
      event.set_kind(kind);
      event.thread = thread;
      event.address = address;
      event.size = size & Event::kMaxSize;
      time += 10;
      trace.add(event, time, time);
    };
    add(EventKind::kUnitBegin, label, 0);
    add(EventKind::kAcquire, 0x1000, 0);
    add(EventKind::kRead, 0x2000, 8);
    add(EventKind::kWrite, 0x2000, 8);
    add(EventKind::kRelease, 0x1000, 0);
    add(EventKind::kUnitEnd, 0, 0);
  }
  capture::widen(trace, 0, 1000);
  CheckOptions options;
  for (const auto& report : {*check_trace(trace, options), stream(trace, options)}) {
    CHECK(report.verdict() == Verdict::kClean);
    CHECK(report.components == 0);  // nothing had to be searched
  }
}
