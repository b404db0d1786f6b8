// Plans of slices, with programs that are made up: what a slice costs is a number.
#include <algorithm>
#include <array>
#include <chrono>

#include <doctest/doctest.h>

#include "monitor/slices/plan.h"
#include "monitor/slices/trigger.h"

using namespace tsomon;
using std::chrono::microseconds;

namespace {

struct Made {
  std::array<double, kSliceKinds> cost{1000, 1000, 1000};  // microseconds a slice
  std::array<microseconds, kSliceKinds> length{microseconds(20'000), microseconds(20'000),
                                               microseconds(20'000)};
  std::vector<uint64_t> shown{1, 2, 3, 4};
  std::vector<uint64_t> met;
  double rate = 1;
};
struct Watched {
  std::array<microseconds, kSliceKinds> time{};
  std::array<int, kSliceKinds> slices{};
  double cost = 0;
  microseconds in_all{0};

  double share(SliceKind kind) const {
    return static_cast<double>(time[static_cast<size_t>(kind)].count()) /
           static_cast<double>(in_all.count());
  }
};

Watched watch(Plan& plan, const Made& made, microseconds until) {
  Watched watched;
  for (microseconds now{0}; now < until;) {
    const PlannedSlice slice = plan.next(made.rate);
    const auto kind = static_cast<size_t>(slice.kind);
    now = std::max(now, slice.begin);
    const microseconds length = std::min(made.length[kind], slice.time);
    now += length;
    watched.time[kind] += length;
    watched.cost += made.cost[kind];
    ++watched.slices[kind];
    watched.in_all = now;
    WatchedSlice learnt;
    learnt.kind = slice.kind;
    learnt.ended = now;
    learnt.watched = length;
    learnt.cost = microseconds(static_cast<int64_t>(made.cost[kind]));
    learnt.bytes = 100'000;
    learnt.shown = made.shown;
    if (slice.functions.which == WatchedFunctions::Which::kBut) {
      std::erase_if(learnt.shown, [&](uint64_t function) {
        return std::binary_search(slice.functions.entries.begin(), slice.functions.entries.end(),
                                  function);
      });
    }
    learnt.met = made.met;
    plan.learn(learnt);
  }
  return watched;
}

constexpr microseconds kHour{3'600'000'000};

}  // namespace

TEST_CASE("the share of time asked for is watched") {
  for (const double share : {0.01, 0.05, 0.5}) {
    Plan plan({microseconds(20'000), share, 0, false, false, 7});
    const Watched watched = watch(plan, {}, kHour);
    CHECK(watched.share(SliceKind::kAll) == doctest::Approx(share).epsilon(0.1));
  }
  Plan plan({microseconds(20'000), 1, 0, false, false, 7});
  CHECK(watch(plan, {}, microseconds(10'000'000)).share(SliceKind::kAll) == 1);
}

TEST_CASE("what watching may cost bounds the share, whatever the program is busy with") {
  for (const double rate : {0.2, 1.0, 8.0}) {
    Made made;
    made.rate = rate;
    Plan plan({microseconds(20'000), 1, 0.02, false, false, 7});
    const Watched watched = watch(plan, made, kHour);
    const double used = static_cast<double>(watched.in_all.count()) * rate;
    CHECK(watched.cost / used == doctest::Approx(0.02).epsilon(0.1));
  }
}

TEST_CASE("focus: the same cost, and more time for functions that cost less") {
  Made made;
  made.met = {2};
  made.cost = {1000, 50, 1000};
  Plan plan({microseconds(20'000), 0.01, 0, true, false, 7});
  const Watched watched = watch(plan, made, kHour);
  CHECK(watched.share(SliceKind::kAll) == doctest::Approx(0.005).epsilon(0.1));  // the floor
  CHECK(watched.share(SliceKind::kFocus) == doctest::Approx(0.1).epsilon(0.1));
  CHECK(watched.cost / static_cast<double>(watched.in_all.count()) ==
        doctest::Approx(1000.0 / 20'000 * 0.01).epsilon(0.1));
  CHECK(plan.in_focus() == 1);
}

TEST_CASE("focus ends when units do not meet any more, and nothing is in focus without") {
  Made made;
  Plan plan({microseconds(20'000), 0.01, 0, true, false, 7});
  const Watched without = watch(plan, made, kHour);
  CHECK(without.slices[static_cast<size_t>(SliceKind::kFocus)] == 0);
  CHECK(without.share(SliceKind::kAll) == doctest::Approx(0.005).epsilon(0.1));
  WatchedSlice slice;
  slice.ended = without.in_all;
  slice.met = {5, 6};
  plan.learn(slice);
  CHECK(plan.in_focus() == 2);
  slice.met = {6};
  int slices = 0;
  for (; plan.in_focus() == 2; ++slices) {
    REQUIRE(slices < 10);
    plan.learn(slice);
  }
  CHECK(slices > 1);
  const PlannedSlice next = plan.next(1);
  CHECK(plan.in_focus() == 1);
  CHECK((next.kind == SliceKind::kAll || next.functions.entries == std::vector<uint64_t>{6}));
}

TEST_CASE("cold: a function that is shown again and again rests, a new one is watched") {
  Made made;
  Plan plan({microseconds(20'000), 0.05, 0, false, true, 7});
  const Watched watched = watch(plan, made, kHour);
  CHECK(watched.slices[static_cast<size_t>(SliceKind::kCold)] > 100);
  // All four have been shown by nearly every slice that watched them.
  int seen = 0;
  int with_all = 0;
  for (int i = 0; i < 400; ++i) {
    const PlannedSlice slice = plan.next(1);
    WatchedSlice learnt;
    learnt.kind = slice.kind;
    learnt.ended = slice.begin + slice.time;
    learnt.watched = slice.time;
    learnt.cost = microseconds(1000);
    learnt.bytes = 100'000;
    if (slice.kind == SliceKind::kCold) {
      CHECK(slice.most_bytes > 50'000);
      CHECK(slice.most_bytes < 200'000);
      CHECK(slice.time == microseconds(20'000) * Plan::kLonger);
      CHECK(slice.functions.which == WatchedFunctions::Which::kBut);
      ++seen;
      with_all += slice.functions.entries.size() == 4 ? 1 : 0;
      CHECK(!std::binary_search(slice.functions.entries.begin(), slice.functions.entries.end(),
                                uint64_t{9}));  // never shown
    } else {
      learnt.shown = made.shown;
    }
    plan.learn(learnt);
  }
  CHECK(seen > 50);
  CHECK(with_all > seen / 2);
}

TEST_CASE("what a trigger may be") {
  const auto function = parse_trigger("function=commit*");
  REQUIRE(function.has_value());
  CHECK(function->kind == TriggerName::Kind::kFunction);
  CHECK(function->name == "commit*");
  const auto counter = parse_trigger("counter=page-faults>200");
  REQUIRE(counter.has_value());
  CHECK(counter->name == "page-faults");
  CHECK(counter->rate == 200);
  const auto marker = parse_trigger("usdt=memcached:command__set");
  REQUIRE(marker.has_value());
  CHECK(marker->provider == "memcached");
  CHECK(marker->name == "command__set");
  CHECK(parse_trigger("signal").has_value());
  for (const char* const wrong :
       {"", "signal=3", "function", "function=", "counter=page-faults", "counter=>3", "counter=x>",
        "counter=x>-1", "counter=x>3y", "usdt=x", "usdt=:x", "usdt=x:", "often"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_trigger(wrong).has_value());
  }
}
