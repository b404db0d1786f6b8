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
  double cost_of_time = 0;                                 // ... and for each that it lasts
  microseconds unit{0};  // the time that a unit takes; units of one thread, one after another
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
  microseconds longest_gap{0};  // between slices of everything
  microseconds last_length{0};  // of one

  double share(SliceKind kind) const {
    return static_cast<double>(time[static_cast<size_t>(kind)].count()) /
           static_cast<double>(in_all.count());
  }
};

Watched watch(Plan& plan, const Made& made, microseconds until) {
  Watched watched;
  microseconds last_end{0};
  for (microseconds now{0}; now < until;) {
    const PlannedSlice slice = plan.next(made.rate);
    const auto kind = static_cast<size_t>(slice.kind);
    now = std::max(now, slice.begin);
    const microseconds length = std::min(made.length[kind], slice.time);
    if (slice.kind == SliceKind::kAll) {
      watched.longest_gap = std::max(watched.longest_gap, now - last_end);
      watched.last_length = length;
      last_end = now + length;
    }
    now += length;
    watched.time[kind] += length;
    const double cost = made.cost[kind] + made.cost_of_time * static_cast<double>(length.count());
    watched.cost += cost;
    ++watched.slices[kind];
    watched.in_all = now;
    WatchedSlice learnt;
    learnt.kind = slice.kind;
    learnt.ended = now;
    learnt.watched = length;
    learnt.cost = microseconds(static_cast<int64_t>(cost));
    learnt.cut_units = made.unit.count() == 0 ? 0 : 1;
    learnt.units = made.unit.count() == 0 ? 0 : static_cast<uint64_t>(length / made.unit) + 1;
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

TEST_CASE(
    "a program at full rate is watched for a moment each second, not for long once in minutes") {
  Made made;
  made.rate = 2;
  made.cost_of_time = 390;  // 300 events a microsecond, 1.3 microseconds for each
  Plan plan({microseconds(20'000), 1, 0.02, false, false, 7});
  const Watched watched = watch(plan, made, kHour / 6);
  const double used = static_cast<double>(watched.in_all.count()) * made.rate;
  CHECK(watched.cost / used == doctest::Approx(0.02).epsilon(0.1));
  CHECK(watched.longest_gap < microseconds(5'000'000));
  CHECK(watched.slices[0] > 500);

  // One with little to do is watched as long as was asked for.
  made.cost_of_time = 0.1;
  Plan other({microseconds(20'000), 1, 0.02, false, false, 7});
  CHECK(watch(other, made, kHour / 6).last_length == microseconds(20'000));
}

TEST_CASE("slices become as long as units need, whatever they cost") {
  Made made;
  made.cost_of_time = 390;
  made.unit = microseconds(2000);
  Plan plan({microseconds(20'000), 1, 0.02, false, false, 7});
  const Watched watched = watch(plan, made, kHour);
  CHECK(watched.time[0] / watched.slices[0] > microseconds(2000));
  CHECK(watched.cost / static_cast<double>(watched.in_all.count()) ==
        doctest::Approx(0.02).epsilon(0.1));
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
