// What the monitor may use, and what its flight recorders keep.
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/service/budget.h"
#include "monitor/service/flight_ring.h"
#include "monitor/service/target_watcher.h"
#include "tests/monitor/folder.h"
#include "tests/monitor/service_store.h"

using namespace tsomon;
using namespace tsomon::service;
using namespace tsomon::testing;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const SightingPlace kPlace{"bank", "here", "abcd"};

}  // namespace

TEST_CASE("slices are dropped while more than the share was used, and so many that it is kept") {
  microseconds used{0};
  Budget budget(
      {uint64_t{1} << 30, 0.1, 1}, [&] { return used; }, [] { return uint64_t{1}; });
  auto now = Budget::Clock::now();
  std::mt19937_64 random(3);
  uint64_t planned = 0;
  uint64_t dropped = 0;
  const auto begin = now;
  while (planned < 100'000) {
    now += milliseconds(10);
    ++planned;
    const std::string reason = budget.refusal(now);
    if (!reason.empty()) {
      CHECK(reason == Budget::kProcessor);
      ++dropped;
      continue;
    }
    used += microseconds(random() % 10'000);  // half a processor, if all were judged
  }
  const double share =
      static_cast<double>(used.count()) /
      static_cast<double>(std::chrono::duration_cast<microseconds>(now - begin).count());
  CHECK(share == doctest::Approx(0.1).epsilon(0.02));
  CHECK(dropped > planned / 2);
  // Any share.
  budget.set_limits({uint64_t{1} << 30, 0, 1});
  used += seconds(1000);
  CHECK(budget.refusal(now).empty());
}

TEST_CASE(
    "memory is divided among the targets, and slices are dropped while there is too much of it") {
  uint64_t bytes = 0;
  Budget budget(
      {uint64_t{512} << 20, 0, 4}, [] { return microseconds(0); }, [&] { return bytes; });
  CHECK(budget.judging_bytes() == uint64_t{64} << 20);
  CHECK(budget.slice_bytes() == uint64_t{2} << 20);
  CHECK(budget.ring_bytes() == uint64_t{16} << 20);
  CHECK(budget.refusal().empty());
  bytes = (uint64_t{512} << 20) + 1;
  CHECK(budget.refusal() == Budget::kMemory);
  bytes = 0;
  CHECK(budget.refusal().empty());
}

TEST_CASE("counters of several processes are summed, each reason by itself") {
  SamplingSummary one;
  one.planned = 10;
  one.kinds[0].slices = 7;
  one.dropped = {{"cpu_share", 2}, {"not answered", 1}};
  one.gaps = milliseconds(40);
  TargetCounters counters;
  counters.sampling.add(one);
  counters.seen_events = 100;
  counters.lost_events = 20;
  counters.unjudged_events = 3;
  TargetCounters sum = counters;
  sum.add(counters);
  CHECK(sum.sampling.planned == 20);
  CHECK(sum.sampling.slices() + sum.sampling.dropped["cpu_share"] +
            sum.sampling.dropped["not answered"] ==
        sum.sampling.planned);
  CHECK(sum.sampling.gaps == milliseconds(80));
  CHECK(sum.sent_events() == 246);
}

TEST_CASE("the last slices are there for their time, and no more bytes of them") {
  const Folder place;
  const auto store = kept_store(place.write("x", "") + ".store");
  FlightRing ring(seconds(1), 1000, store.get(), kPlace);
  const Descriptor file = slice_of(100);
  std::string problem;
  CHECK(ring.keep("nothing is there", 0, false, &problem) == 0);
  for (int64_t i = 0; i < 30; ++i) {
    ring.add(file.get(), 100, i * 50'000);
    CHECK(ring.settle(0).empty());
    CHECK(ring.bytes() <= 1000);
    CHECK(ring.slices() <= 10);
  }
  CHECK(ring.slices() == 10);
  // Half of them are too old now.
  const int64_t number = ring.keep("a signal", 29 * 50'000 + 750'000, false, &problem);
  CHECK(number == 1);
  CHECK(problem.empty());
  auto all = store->incidents();
  REQUIRE(all);
  REQUIRE(all->size() == 1);
  CHECK(all->front().reason == "a signal");
  CHECK(all->front().slices == 6);
  CHECK(all->front().files.size() == 6);
  // Another one of the same time names the same slices.
  CHECK(ring.keep("again", 29 * 50'000 + 750'001, false, &problem) == 2);
  all = store->incidents();
  REQUIRE(all->size() == 2);
  CHECK(all->front().number == 2);
  CHECK(all->front().files.size() == 5);
  CHECK(all->back().files.back() == all->front().files.back());
  CHECK(store->bytes() > 0);
}

TEST_CASE("an incident has what comes after it, too, and slices of findings once") {
  const Folder place;
  const std::string folder = place.write("x", "") + ".store";
  const auto store = kept_store(folder);
  FlightRing ring(seconds(1), 100'000, store.get(), kPlace);
  std::string problem;
  const Descriptor file = slice_of(100);
  const auto watch = [&](int64_t at, bool finds) {
    ring.add(file.get(), 100, at);
    int64_t stored = 0;
    if (finds) {
      const auto added = store->add(kPlace, at, {seen_finding(1)}, file.get());
      REQUIRE(added);
      stored = added->slice;
    }
    CHECK(ring.settle(stored).empty());
    return stored;
  };
  watch(100'000, false);
  watch(500'000, false);
  CHECK(watch(600'000, true) == 1);
  CHECK(ring.keep("violation", 600'000, true, &problem) == 1);
  CHECK(ring.keep("another", 700'000, true, &problem) == 0);  // the first one goes on
  watch(900'000, false);
  CHECK(watch(1'500'000, true) != 0);
  watch(1'700'000, false);  // too late
  CHECK(problem.empty());
  const auto all = store->incidents();
  REQUIRE(all);
  REQUIRE(all->size() == 1);
  CHECK(all->front().slices == 5);
  CHECK(all->front().files.size() == 5);
  CHECK(store->findings()->front().files.size() == 2);
  const auto files = std::distance(std::filesystem::directory_iterator(folder + "/slices"),
                                   std::filesystem::directory_iterator());
  CHECK(files == 5);
}

TEST_CASE("slices of incidents go before those of findings, incidents before findings") {
  const Folder place;
  constexpr uint64_t kSmall = uint64_t{4} << 20;
  const auto store = kept_store(place.write("x", "") + ".store", kSmall);
  const Descriptor large = slice_of(200'000);
  std::string problem;
  REQUIRE(store->add(kPlace, 1, {seen_finding(1)}, large.get()));  // the oldest of all
  for (int64_t i = 0; i < 60; ++i) {
    std::vector<IncidentSlice> slices = {{large.get(), 100 + i, 0}};
    REQUIRE(
        store->begin_incident(kPlace, 100 + i, fmt::format("incident {}", i), &slices, &problem));
    CHECK(problem.empty());
    CHECK(store->bytes() <= kSmall);
  }
  CHECK(store->findings()->front().files.size() == 1);
  const auto all = store->incidents();
  REQUIRE(all);
  CHECK(all->size() == 60);
  CHECK(all->front().files.size() == 1);  // the last one
  CHECK(all->back().files.empty());
  CHECK(all->back().slices == 1);
}
