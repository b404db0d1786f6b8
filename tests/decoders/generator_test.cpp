#include "decoders/std/generator.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "tso/check/analysis.h"
#include "tso/check/atomic_sets.h"
#include "tso/model/cancelled_units.h"

using namespace tsomon;

namespace {

struct Generated {
  std::string text;
  uint64_t units = 0;
  uint64_t violating = 0;
};

Generated generate(const StdGeneratorOptions& options) {
  auto generator = StdGenerator::create(options);
  REQUIRE_MESSAGE(generator.has_value(), (generator ? "" : generator.error().to_string()));
  Generated result;
  std::string part;
  while (generator->next(part)) {
    result.text += part;
  }
  result.units = generator->units();
  result.violating = generator->violating();
  return result;
}

Trace read(const std::string& text) {
  auto trace = read_std_text(text, "generated");
  REQUIRE_MESSAGE(trace.has_value(), (trace ? "" : trace.error().to_string()));
  return std::move(*trace);
}

Verdict verdict(const Trace& trace, Property property, Semantics semantics = Semantics::kExact) {
  AnalysisOptions options;
  options.property = property;
  options.relation.semantics = semantics;
  const auto analysis = analyse(trace, options);
  REQUIRE(analysis.has_value());
  return analysis->verdict();
}

uint64_t count(const Trace& trace, EventKind kind) {
  return static_cast<uint64_t>(std::count_if(trace.events.begin(), trace.events.end(),
                                             [&](const Event& e) { return e.kind() == kind; }));
}

std::string refusal(const StdGeneratorOptions& options) {
  const auto generator = StdGenerator::create(options);
  return generator ? "accepted" : generator.error().to_string();
}

}  // namespace

TEST_CASE("generator: the same options give the same text, another seed another one") {
  StdGeneratorOptions options;
  options.events = 20000;
  options.violations = 0.1;
  options.buffered = 0.1;
  options.rmw = 0.1;
  const std::string first = generate(options).text;
  CHECK(generate(options).text == first);
  options.seed = 2;
  CHECK(generate(options).text != first);
}

TEST_CASE("generator: clean traces are clean for every property and relation") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    StdGeneratorOptions options;
    options.seed = seed;
    options.events = 1000 + 100 * seed;  // cut at different places
    options.threads = 1 + static_cast<uint32_t>(seed) % 5;
    options.locks = 1 + static_cast<uint32_t>(seed * 7) % 9;
    options.locations = 3 * options.locks - 2;
    options.unit_length = seed % 2 == 0 ? 3 : 12;
    options.locked = seed % 4 == 0 ? 1 : 0.6;
    options.rmw = seed % 3 == 0 ? 0.2 : 0;
    options.fences = seed % 5 == 0 ? 0 : 0.05;
    options.waits = seed % 3 == 0 ? 0.5 : 0;
    for (const LongUnit mode : {LongUnit::kNone, LongUnit::kPrivate, LongUnit::kShared}) {
      options.long_unit = mode;
      CAPTURE(seed);
      CAPTURE(static_cast<int>(mode));
      const Generated generated = generate(options);
      const Trace trace = read(generated.text);
      CHECK(trace.events.size() == options.events);
      CHECK(count(trace, EventKind::kUnitBegin) == generated.units);
      CHECK(count(trace, EventKind::kUnitEnd) == generated.units);
      CHECK(count(trace, EventKind::kAcquire) == count(trace, EventKind::kRelease));
      CHECK((count(trace, EventKind::kWait) > 0) == (options.waits > 0));
      CHECK(generated.violating == 0);
      for (const Semantics semantics : {Semantics::kExact, Semantics::kPaper}) {
        CHECK(verdict(trace, Property::kSerializability, semantics) == Verdict::kClean);
        CHECK(verdict(trace, Property::kRobustness, semantics) == Verdict::kClean);
      }
      CHECK(verdict(trace, Property::kScSerializability) == Verdict::kClean);
      CHECK(analyse_atomic_sets(trace).verdict() == Verdict::kClean);
    }
  }
}

TEST_CASE("generator: a lock is held by one thread at a time") {
  StdGeneratorOptions options;
  options.events = 50000;
  options.locks = 3;
  options.locations = 3;
  options.violations = 0.2;
  const Trace trace = read(generate(options).text);
  std::vector<uint64_t> owner(trace.symbols.names.size(), ~uint64_t{0});
  for (const Event& event : trace.events) {
    if (event.kind() == EventKind::kAcquire) {
      REQUIRE(owner[event.address] == ~uint64_t{0});
      owner[event.address] = event.thread;
    } else if (event.kind() == EventKind::kRelease) {
      REQUIRE(owner[event.address] == event.thread);
      owner[event.address] = ~uint64_t{0};
    }
  }
}

TEST_CASE("generator: one violating unit is a definite violation") {
  for (const LongUnit mode : {LongUnit::kNone, LongUnit::kPrivate, LongUnit::kShared}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      StdGeneratorOptions options;
      options.seed = seed;
      options.events = 1500;
      options.threads = 4;
      options.locks = 8;
      options.locations = 40;
      options.violations = 0.02;
      options.waits = seed % 2 == 0 ? 0.7 : 0;
      options.long_unit = mode;
      const Generated generated = generate(options);
      CAPTURE(seed);
      CAPTURE(static_cast<int>(mode));
      CAPTURE(generated.violating);
      const Trace trace = read(generated.text);
      const Verdict expected = generated.violating > 0 ? Verdict::kDefinite : Verdict::kClean;
      CHECK(verdict(trace, Property::kSerializability) == expected);
      CHECK(verdict(trace, Property::kSerializability, Semantics::kPaper) == expected);
      CHECK(verdict(trace, Property::kScSerializability) == expected);
      CHECK(analyse_atomic_sets(trace).verdict() == expected);
      CHECK(verdict(trace, Property::kRobustness) == Verdict::kClean);
    }
  }
}

TEST_CASE("generator: violating units that are cancelled violate nothing") {
  int cancels = 0;
  for (const double cancelled : {0.5, 1.0}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      StdGeneratorOptions options;
      options.seed = seed;
      options.events = 1500;
      options.threads = 4;
      options.locks = 8;
      options.locations = 40;
      options.violations = 0.05;
      options.cancelled = cancelled;
      const Generated generated = generate(options);
      CAPTURE(seed);
      CAPTURE(generated.violating);
      CHECK((generated.violating == 0 || cancelled < 1));
      const Trace trace = read(generated.text);
      cancels += static_cast<int>(count(trace, kUnitCancel));
      const Verdict expected = generated.violating > 0 ? Verdict::kDefinite : Verdict::kClean;
      CHECK(verdict(trace, Property::kSerializability) == expected);
      CHECK(verdict(trace, Property::kScSerializability) == expected);
      CHECK(analyse_atomic_sets(trace).verdict() == expected);
    }
  }
  CHECK(cancels > 20);
}

TEST_CASE("generator: shares are what was asked for") {
  StdGeneratorOptions options;
  options.events = 400000;
  options.violations = 0.05;
  options.rmw = 0.1;
  options.fences = 0.02;
  options.locked = 0.3;
  options.buffered = 0.2;
  options.unit_length = 20;
  const Generated generated = generate(options);
  const Trace trace = read(generated.text);
  const auto share = [](uint64_t part, uint64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  CHECK(share(generated.violating, generated.units) == doctest::Approx(0.05).epsilon(0.1));
  const uint64_t rmws = count(trace, EventKind::kReadModifyWrite);
  const uint64_t accesses = rmws + count(trace, EventKind::kRead) + count(trace, EventKind::kWrite);
  CHECK(share(accesses, generated.units) == doctest::Approx(20).epsilon(0.1));
  uint64_t shared = 0;
  uint64_t racing = 0;
  for (const Event& event : trace.events) {
    if (is(event, kinds::kAccesses & ~kinds::kLocks)) {
      const std::string name = trace.symbols.access_text(event);
      shared += name[0] == 'V' ? 1 : 0;
      racing += name[0] == 'B' ? 1 : 0;
    }
  }
  CHECK(share(shared, accesses) == doctest::Approx(0.3).epsilon(0.1));
  CHECK(share(racing, accesses - shared) == doctest::Approx(0.2).epsilon(0.1));
  // Racing accesses are loads and stores.
  CHECK(share(rmws, accesses - racing) == doctest::Approx(0.1).epsilon(0.1));
  CHECK(share(count(trace, EventKind::kFence), accesses) == doctest::Approx(0.02).epsilon(0.15));
}

TEST_CASE("generator: racing accesses leave verdicts open") {
  StdGeneratorOptions options;
  options.events = 200;
  options.threads = 2;
  options.locks = 1;
  options.locked = 0;
  options.buffered = 1;
  options.fences = 0;
  CHECK(verdict(read(generate(options).text), Property::kScSerializability) != Verdict::kClean);
}

TEST_CASE("generator: what cannot be is refused") {
  StdGeneratorOptions options;
  options.events = 5;
  CHECK(refusal(options) == "at least 40 events to start and end the threads, not 5");
  options = {};
  options.locked = 1.5;
  CHECK(refusal(options) == "locked: a share from 0 to 1, not 1.5");
  options = {};
  options.fences = 1;
  CHECK(refusal(options) == "fences: a share from 0 to below 1, not 1");
  options = {};
  options.threads = 0;
  CHECK(refusal(options) == "threads: from 1 to 10000000, not 0");
  options = {};
  options.locations = 63;
  CHECK(refusal(options) == "every lock guards a location: at least 64 locations, not 63");
  options = {};
  options.threads = 2;
  options.violations = 0.1;
  CHECK(refusal(options) == "accepted");
  options.long_unit = LongUnit::kShared;
  CHECK(refusal(options) == "a violation takes two threads, the one of the long unit not counted");
}
