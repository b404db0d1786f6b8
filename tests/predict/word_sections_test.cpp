// Candidates that locks of atomic operations exclude: what is predicted is the same without it.
#include "offline/predict/word_sections.h"

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "offline/predict/atomicity.h"
#include "tests/predict/small_traces.h"
#include "tests/rounds.h"

using namespace tsomon;
using predict::AtomicityResult;
using predict::Branches;
using predict::KnownValues;
using predict::Query;
using tsomon::testing::small_windows;
using tsomon::testing::text;

namespace {

const int kRounds = rounds(300, 4'000);

constexpr uint64_t kWord = 100;
constexpr uint64_t kVariable = 200;

struct Shape {
  uint32_t threads = 2;
  uint32_t events = 16;
  size_t free = 0;      // of kFreeValues
  uint32_t strays = 0;  // per 100 events: stores and locked operations that no lock has
};

// A run of threads with units that take a word, or do not.
class Run {
 public:
  Run(std::mt19937& random, const Shape& shape) : random_(random), shape_(shape) {
    word_ = shape.free == 1 ? 1 : 0;
    if (below(2) == 0) {
      store(0, word_);  // its making, before or while others begin
    }
    std::vector<bool> holds(shape.threads);
    std::vector<bool> in_unit(shape.threads);
    while (trace_.events.size() < shape.events) {
      const uint32_t thread = below(shape.threads);
      if (below(in_unit[thread] ? 8 : 2) == 0) {
        add(thread, in_unit[thread] ? EventKind::kUnitEnd : EventKind::kUnitBegin, 0);
        in_unit[thread] = !in_unit[thread];
      } else if (below(100) < shape.strays) {
        below(2) == 0 ? store(thread, below(4)) : exchange(thread, below(4));
      } else if (below(10) == 0) {
        add(thread, EventKind::kBranch, 0);
      } else if (below(3) != 0) {
        add(thread, below(2) == 0 ? EventKind::kRead : EventKind::kWrite, kVariable + 8 * below(2));
      } else if (!holds[thread]) {
        holds[thread] = is_free_value(shape.free, word_);
        exchange(thread, holds[thread] ? held_by(thread) : word_);
      } else if (below(4) == 0) {
        exchange(thread, held_by(thread));
      } else {
        holds[thread] = false;
        below(2) == 0 ? store(thread, free_value()) : exchange(thread, free_value());
      }
    }
  }

  const Trace& trace() const { return trace_; }
  const KnownValues& values() const { return values_; }
  // It would fail, and be no access, while another thread holds the word, with some free values.
  bool takes(uint32_t event) const {
    const auto read = values_.words[event].read();
    const auto written = values_.words[event].written();
    for (size_t free = 0; read && free < kFreeValues; ++free) {
      if (is_free_value(free, *read) && !is_free_value(free, *written)) {
        return true;
      }
    }
    return false;
  }

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  uint64_t held_by(uint32_t thread) const {
    return shape_.free == 1 ? uint64_t{0} : 2 * uint64_t{thread} + 1;
  }
  uint64_t free_value() { return shape_.free == 2 ? 2 * uint64_t{below(3)} : shape_.free; }
  void store(uint32_t thread, uint64_t value) {
    add(thread, EventKind::kWrite, kWord, {}, value);
    word_ = value;
  }
  void exchange(uint32_t thread, uint64_t value) {
    add(thread, EventKind::kReadModifyWrite, kWord, word_, value);
    word_ = value;
  }
  void add(uint32_t thread, EventKind kind, uint64_t address, std::optional<uint64_t> read = {},
           std::optional<uint64_t> written = {}) {
    Event event;
    event.size = address != 0 ? 8 : 0;
    event.thread = thread;
    event.set_kind(kind);
    event.address = address;
    event.location = Event::kNumericLocation | static_cast<uint32_t>(trace_.events.size());
    const auto now = static_cast<int64_t>(trace_.events.size());
    trace_.add(event, now, now);
    values_.words.emplace_back(read, written);
  }

  std::mt19937& random_;
  const Shape shape_;
  uint64_t word_ = 0;
  Trace trace_;
  KnownValues values_;
};

// Violations of two threads, one a line. Those of three are looked for where none of two was found.
std::string found_by(const AtomicityResult& result, const Run& run) {
  std::string found;
  for (const auto& violation : result.violations) {
    if (violation.via.empty() && (violation.to != violation.from || !run.takes(violation.to))) {
      found += fmt::format("{} to {}, {} to {}\n", violation.first, violation.to, violation.from,
                           violation.last);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("word sections: nothing is lost, and less is asked") {
  for (const Branches branches :
       {Branches::kAsRecorded, Branches::kAfterEveryRead, Branches::kNone}) {
    uint64_t found = 0;
    uint64_t asked = 0;
    uint64_t spared = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::mt19937 random(1'000 * static_cast<uint32_t>(branches) + static_cast<uint32_t>(round));
      Shape shape;
      shape.threads = 2 + random() % 2;
      shape.events = 12 + random() % 30;
      shape.free = random() % kFreeValues;
      shape.strays = random() % 3 == 0 ? 6 : 0;
      const Run run(random, shape);
      CAPTURE(text(run.trace()));
      CAPTURE(shape.free);
      predict::AtomicityOptions options{round % 2 == 0, UINT64_MAX, true};
      Query query(run.trace(), branches, small_windows(round));
      const AtomicityResult all = predict::predict_atomicity(query, options);
      options.values = &run.values();
      const AtomicityResult rest = predict::predict_atomicity(query, options);
      REQUIRE(all.complete());
      REQUIRE(rest.complete());
      REQUIRE(found_by(all, run) == found_by(rest, run));
      found += all.violations.size();
      asked += all.candidates;
      REQUIRE(rest.candidates <= all.candidates);
      spared += all.candidates - rest.candidates;
    }
    std::printf("%llu found; of %llu candidates %llu spared\n",
                static_cast<unsigned long long>(found), static_cast<unsigned long long>(asked),
                static_cast<unsigned long long>(spared));
    CHECK(found > 0);
    CHECK(spared > 0);
  }
}
