// Candidates of atomic sets against what happened and what may have happened.
#include "monitor/judge/set_candidate.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "monitor/judge/watch.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"
#include "tso/check/atomic_sets.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(2'000, 40'000);

struct Watched {
  std::vector<ReportedFinding> found;
  WatchSummary summary;
};

Watched watch_sets(const Trace& trace, SetChoice sets, uint64_t history = 1000) {
  WatchOptions options;
  options.detector.policy = DetectorPolicy::kAtomicSets;
  options.detector.sets = sets;
  options.detector.history_events = history;
  Watched result;
  Watch watch(trace.symbols, options,
              [&](const ReportedFinding& found) { result.found.push_back(found); });
  EventBlock block;
  for (size_t e = 0; e < trace.events.size(); ++e) {
    block.clear();
    block.append(trace, e, e + 1);
    watch.add(block);
  }
  watch.finish();
  result.summary = watch.summary();
  return result;
}

RandomTraceOptions overlapping_options(std::mt19937_64& random) {
  RandomTraceOptions made;
  made.threads = 2 + static_cast<uint32_t>(random() % 2);
  made.locations = 1 + static_cast<uint32_t>(random() % 3);
  made.units = 20 + static_cast<uint32_t>(random() % 3) * 15;
  made.locked = static_cast<uint32_t>(random() % 3) * 20;
  made.locks = random() % 2 == 0 ? 30 : 0;
  made.fences = static_cast<uint32_t>(random() % 2) * 10;
  made.nesting = random() % 3 == 0;
  made.intervals = true;
  return made;
}

// An object of a few bytes that is there from the beginning.
Trace with_object(const Trace& trace) {
  Trace result;
  result.symbols = trace.symbols;
  Event begin;
  begin.set_kind(EventKind::kAllocate);
  begin.address = 0x1000;
  begin.size = 4;
  result.add(begin, kTimeMin, kTimeMin);
  result.append(trace);
  return result;
}

}  // namespace

TEST_CASE("atomic sets while they run: what is certain is what happened") {
  constexpr uint64_t kSeed = 20261123;
  std::mt19937_64 random(kSeed);
  int judged[4] = {};
  int by_candidate = 0;
  int of_violated = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made = overlapping_options(random);
    made.steps = 4 + static_cast<uint32_t>(random() % 20);
    made.values = random() % 3 != 0;
    made.unvalued = random() % 2 == 0 ? 30 : 0;
    made.flags = random() % 2 == 0;
    made.mixed_sizes = random() % 3 == 0;
    Trace trace = random_trace(random, made).trace;
    SetChoice sets = SetChoice::kDeclared;
    if (made.mixed_sizes) {
      trace = with_object(trace);
      sets = SetChoice::kObjects;
    } else if (random() % 2 == 0) {
      trace.symbols.sets = {{"A", {{0, 0}, {1, 0}}}};
    }
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const AtomicSetOptions choice{sets, true, true, {}};
    const Verdict happened = analyse_atomic_sets(truth(trace), choice).verdict();
    const Trace observed = seen(trace);
    const uint64_t history = random() % 2 == 0 ? 1000 : 1 + random() % 8;
    const Watched watched = watch_sets(observed, sets, history);
    const Verdict verdict = watched.summary.verdict();
    if (verdict == Verdict::kClean || verdict == Verdict::kDefinite) {
      REQUIRE(verdict == happened);
    }
    // What the whole trace shows may be possible, definite or not known while it runs, not clean.
    const Verdict whole = analyse_atomic_sets(observed, choice).verdict();
    REQUIRE((verdict != Verdict::kClean || whole == Verdict::kClean));
    ++judged[static_cast<int>(verdict)];
    of_violated += whole == Verdict::kPossible ? 1 : 0;
    by_candidate += whole == Verdict::kPossible && verdict == Verdict::kPossible ? 1 : 0;
  }
  MESSAGE("clean " << judged[0] << ", possible " << judged[1] << ", definite " << judged[2]
                   << ", inconclusive " << judged[3] << "; of " << of_violated
                   << " possible as a whole " << by_candidate << " while they run");
  for (const int each : judged) {
    CHECK(each > kRounds / 50);
  }
  CHECK(by_candidate > of_violated / 10 * 9);
}

TEST_CASE("atomic sets while they run: what is possible is violated in some sequence") {
  constexpr uint64_t kSeed = 231126;
  std::mt19937_64 random(kSeed);
  int compared = 0;
  int possible = 0;
  int found = 0;
  for (int round = 0; round < kRounds / 10; ++round) {
    RandomTraceOptions made = overlapping_options(random);
    made.threads = 2;
    made.locations = 1 + static_cast<uint32_t>(random() % 2);
    made.locks = 0;
    made.steps = 3 + static_cast<uint32_t>(random() % 4);
    const Trace trace = random_trace(random, made).trace;
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const AllSequences sequences(trace);
    if (!sequences.all()) {
      continue;
    }
    ++compared;
    const Watched watched = watch_sets(seen(trace), SetChoice::kDeclared);
    REQUIRE((watched.found.empty() || sequences.some_violated()));
    REQUIRE((watched.summary.verdict() != Verdict::kClean || !sequences.some_violated()));
    possible += sequences.some_violated() ? 1 : 0;
    found += watched.found.empty() ? 0 : 1;
  }
  MESSAGE(compared << " compared, " << possible << " violated in some sequence, " << found
                   << " of them found");
  CHECK(compared > kRounds / 40);
  CHECK(found > possible / 10 * 7);
}

// A section behind a flag that the threads exchange. A's stores end with A's next stamp, behind the
// beginning of B's section; `set_up` is a plain store, whose value is not known.
TEST_CASE("atomic sets while they run: values around two units exclude what intervals leave open") {
  const auto verdicts = [](const std::string& text) {
    auto trace =
        read_std_text("-|set(c;c)||\n-|set(busy;busy)||\n-|init(unknown)||\n" + text, "test");
    REQUIRE(trace);
    const AtomicSetOptions choice{SetChoice::kDeclared, true, true, {}};
    return std::pair(analyse_atomic_sets(*trace, choice).verdict(),
                     watch_sets(*trace, SetChoice::kDeclared).found.size());
  };
  const std::string set_up =
      "M|w(busy)||1..9\nM|w(c)||1..9\nM|fork(A)||10..10\nM|fork(B)||12..12\n";
  const std::string section_of_a =
      "A|begin(count;c)||30..60\nA|r(c)||30..60\nA|w(c)||30..60\nA|end||30..60\n"
      "A|w(busy=0)||30..60\nA|fence||30..60\n";
  const std::string section_of_b =
      "B|begin(count;c)||50..80\nB|r(c)||50..80\nB|w(c)||50..80\nB|end||50..80\n"
      "B|w(busy=0)||50..80\nB|fence||50..80\n";
  // B's exchange is over where its section begins: what it has read only what follows tells.
  const auto [whole, found] =
      verdicts(set_up + "A|rmw(busy=0,1)||20..30\nB|rmw(busy=1,1)||21..32\n" + section_of_a +
               "B|rmw(busy=0,1)||45..50\n" + section_of_b);
  CHECK(whole == Verdict::kClean);
  CHECK(found == 0);
  // Both exchanges have read 0, A's the one that was stored first.
  const auto [unknown, found_unknown] = verdicts(
      set_up + "B|rmw(busy=0,1)||19..50\nA|rmw(busy=0,1)||20..30\n" + section_of_a + section_of_b);
  CHECK(unknown == Verdict::kClean);
  CHECK(found_unknown == 0);
  // Without the exchanges nothing excludes it.
  CHECK(verdicts(set_up + section_of_a + section_of_b) == std::pair(Verdict::kPossible, size_t{1}));
}

TEST_CASE("atomic sets while they run: what a slice does not show makes nothing definite") {
  const auto judged = [](const char* text, SetChoice sets) {
    auto trace = read_std_text(text, "test");
    REQUIRE(trace);
    return watch_sets(*trace, sets).summary.verdict();
  };
  // The slice begins in front of the object: what lay there before was two others.
  CHECK(judged("M|alloc(0x1000+16)||10..10\nM|alloc(0x1010+16)||20..20\nA|begin(a)||30..30\n"
               "B|begin(b)||40..40\nA|w(0x1000+8)||50..50\nB|r(0x1000+8)||60..60\n"
               "B|w(0x1010+8)||70..70\nA|r(0x1010+8)||80..80\nA|free(0x1010)||90..90\n"
               "A|free(0x1000)||100..100\nA|alloc(0x1000+32)||110..110\n"
               "A|w(0x1000+8)||120..220\nB|r(0x1000+8)||140..220\nA|end||350..350\n"
               "B|end||360..360\n",
               SetChoice::kObjects) == Verdict::kClean);
  // Accesses that may have come before the object.
  CHECK(judged("M|alloc(0x1000+32)||10..1000\nA|begin(a)||20..20\nB|begin(b)||21..21\n"
               "A|w(0x1000+8)||30..30\nB|r(0x1000+8)||40..40\nB|w(0x1010+8)||50..50\n"
               "A|r(0x1010+8)||60..60\nA|w(0x1000+8)||100..200\nB|r(0x1000+8)||110..190\n"
               "A|end||300..300\nB|end||310..310\n",
               SetChoice::kObjects) == Verdict::kPossible);
  // B has read what C stored, which is behind the slice of A and B.
  CHECK(judged("D|w(q=0)||0..0\nA|begin(a)||1..1\nD|w(x=0)||2..3\nD|fence||4..4\n"
               "B|begin(b)||5..5\nA|w(x=1)||10..2000\nB|w(y=7)||40..50\nB|fence||51..51\n"
               "B|r(x=1)||55..1000\nA|r(y=7)||110..2100\nC|w(x=1)||200..300\n"
               "C|fence||301..301\nB|end||1100..1100\nA|end||2200..2200\n",
               SetChoice::kAuto) == Verdict::kPossible);
}
