// Slices with a load whose value may come from behind them.
#include "monitor/judge/late_reads.h"

#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "tso/check/analysis.h"

using namespace tsomon;

namespace {

constexpr uint64_t kLock = 0x1000;
constexpr uint64_t kData = 0x2000;

class Events {
 public:
  Events() { trace_.symbols.initial_zero = false; }

  Events& add(ThreadId thread, EventKind kind, int64_t lo, int64_t hi, uint64_t address = 0,
              std::optional<uint64_t> read = {}, std::optional<uint64_t> written = {}) {
    Event event;
    event.thread = thread;
    event.set_kind(kind);
    event.address = address;
    event.size = address != 0 ? 4 : 0;
    event.lo = lo;
    trace_.add(event, lo, hi, read, written);
    return *this;
  }
  const Trace& trace() const { return trace_; }

 private:
  Trace trace_;
};

Result<Analysis> analysed(const Trace& trace) {
  AnalysisOptions options;
  return analyse(trace, options);
}

Verdict verdict(const Trace& trace, const std::vector<LateRead>& reads) {
  const auto found = with_late_reads(analysed(trace), trace, reads, analysed);
  REQUIRE(found);
  return found->verdict();
}

}  // namespace

// Thread 1 takes a lock of one word some time; thread 2 has it meanwhile.
static Trace two_holders() {
  Events events;
  events.add(1, EventKind::kUnitBegin, 0, 1)
      .add(1, EventKind::kRead, 2, 3, kData)
      .add(1, EventKind::kReadModifyWrite, 4, 1000, kLock, {}, 1)
      .add(2, EventKind::kUnitBegin, 10, 11)
      .add(2, EventKind::kReadModifyWrite, 12, 13, kLock, 0, 1)
      .add(2, EventKind::kWrite, 14, 15, kLock, {}, 0)
      .add(2, EventKind::kUnitEnd, 14, 15)
      .add(2, EventKind::kFence, 16, 17);
  return events.trace();
}

TEST_CASE("late reads: what is possible without the value must be so one of the ways") {
  // In the middle of the other section, as nothing says what the operation read.
  const Trace slice = two_holders();
  CHECK(verdict(slice, {}) == Verdict::kPossible);
  CHECK(verdict(slice, {{2, 0, 500}}) == Verdict::kClean);
}

TEST_CASE("late reads: what is possible with the value stays so") {
  Events events;
  events.add(1, EventKind::kUnitBegin, 0, 1)
      .add(1, EventKind::kRead, 2, 100, kData, 1)
      .add(1, EventKind::kRead, 4, 1000, kLock)
      .add(2, EventKind::kUnitBegin, 10, 11)
      .add(2, EventKind::kWrite, 12, 13, kLock, {}, 1)
      .add(2, EventKind::kWrite, 14, 15, kData, {}, 2)
      .add(2, EventKind::kUnitEnd, 14, 15)
      .add(2, EventKind::kFence, 16, 17);
  const Trace& slice = events.trace();
  CHECK(verdict(slice, {}) == Verdict::kPossible);
  CHECK(verdict(slice, {{2, 1, 500}}) == Verdict::kPossible);
}

TEST_CASE("late reads: of many nothing is decided") {
  const Trace slice = two_holders();
  CHECK(verdict(slice, {{2, 0, 500}, {2, 0, 500}, {2, 0, 500}, {2, 0, 500}}) ==
        Verdict::kInconclusive);
}
