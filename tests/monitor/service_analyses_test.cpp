// What the store knows of analyses of its slices: what is next, what came of it, whoever is killed meanwhile.
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/report/results.h"
#include "monitor/service/kept_report.h"
#include "tests/monitor/folder.h"
#include "tests/monitor/service_store.h"
#include "tests/rounds.h"

using namespace tsomon;
using namespace tsomon::service;
using namespace tsomon::testing;

namespace {

const SightingPlace kPlace{"bank", "here", "abcd"};
using What = SliceAnalysis::What;
using How = AnalysisEnd::How;

SliceAnalysis begun(Store& store) {
  auto next = store.begin_analysis(1);
  REQUIRE(next);
  REQUIRE(*next);
  return **next;
}

AnalysisEnd done(const std::string& result = "fine") { return {How::kDone, result, {}, {}}; }

}  // namespace

TEST_CASE(
    "the last slice first: what is possible is checked, explained, and all is predicted from") {
  const Folder place;
  const std::string folder = place.write("x", "") + ".store";
  const auto store = kept_store(folder);
  SeenFinding possible = seen_finding(2, false);
  SeenFinding sets = seen_finding(3);
  sets.property = "atomic-sets";
  REQUIRE(store->add(kPlace, 10, {seen_finding(1), sets}, slice_of(10).get()));
  REQUIRE(store->add(kPlace, 20, {possible}, slice_of(10).get()));
  std::vector<std::string> order;
  for (auto next = store->begin_analysis(1); next && *next; next = store->begin_analysis(1)) {
    const SliceAnalysis& one = **next;
    CHECK(one.tries == 1);
    CHECK(one.place.target == "bank");
    CHECK(one.place.build == "abcd");
    order.push_back(fmt::format("{} {} {}", one.slice, name_of(one.what), one.property));
    AnalysisEnd end = done();
    if (one.what == What::kCheck) {
      SeenFinding raised = possible;
      raised.definite = true;
      raised.json = "{\"better\":1}";
      SeenFinding another = seen_finding(9);
      end.found = {raised, another};
    } else if (one.what == What::kExplain) {
      end.explanation = fmt::format("{{\"of\":{}}}", one.slice);
    } else {
      SeenFinding race = seen_finding(static_cast<uint64_t>(4));
      race.property = "race";
      race.predicted = true;
      end.found = {race};
    }
    const auto is_new = store->end_analysis(one, end, 5);
    REQUIRE(is_new);
    CHECK(is_new->size() == end.found.size());
    if (one.what == What::kCheck) {
      CHECK(*is_new == std::vector<bool>{false, true});
    } else if (one.what == What::kPredict) {
      CHECK(is_new->front() == (one.slice == 2));
    }
  }
  CHECK(order == std::vector<std::string>{"2 check serializability", "2 explain serializability",
                                          "2 predict ", "1 explain serializability", "1 predict "});
  const auto raised = store->find(possible.fingerprint);
  REQUIRE(raised);
  CHECK(raised->front().definite);
  CHECK(raised->front().json == "{\"better\":1}");
  CHECK(raised->front().count == 1);
  CHECK(raised->front().explanation == "{\"of\":2}");
  CHECK(raised->front().analyses.size() == 3);
  CHECK(store->find(seen_finding(1).fingerprint)->front().explanation == "{\"of\":1}");
  CHECK(store->find(sets.fingerprint)->front().explanation.empty());
  const auto race = store->find(seen_finding(4).fingerprint);
  REQUIRE(race);
  CHECK(race->front().predicted);
  CHECK(race->front().slices == 2);
  CHECK(race->front().files.size() == 2);
  CHECK(race->front().first_seen == 10);
  CHECK(race->front().last_seen == 20);
  CHECK(kept_lines(race->front(), {}).find(" predicted race: 2 times") != std::string::npos);
  const auto object = kept_result_json(race->front(), {});
  CHECK(object["races"][0]["verdict"] == "predicted");
  report::Results results;
  REQUIRE(results.add(object, "x"));
  REQUIRE(results.findings().size() == 1);
  CHECK(results.findings().front().verdict == "predicted");
  // What is seen is not what was predicted.
  REQUIRE(store->add(kPlace, 30, {seen_finding(4)}, -1));
  CHECK(store->find(seen_finding(4).fingerprint)->size() == 2);
}

TEST_CASE("an explanation of fewer findings at a time replaces another one") {
  const Folder place;
  const auto store = kept_store(place.write("x", "") + ".store");
  REQUIRE(store->add(kPlace, 10, {seen_finding(1)}, slice_of(10).get()));
  REQUIRE(store->add(kPlace, 20, {seen_finding(1), seen_finding(2)}, slice_of(10).get()));
  std::map<std::string, int> count;
  for (auto next = store->begin_analysis(1); next && *next; next = store->begin_analysis(1)) {
    AnalysisEnd end = done();
    if ((*next)->what == What::kExplain) {
      end.explanation = fmt::format("{{\"of\":{}}}", (*next)->slice);
    }
    REQUIRE(store->end_analysis(**next, end, 5));
  }
  CHECK(store->find(seen_finding(1).fingerprint)->front().explanation == "{\"of\":1}");
  CHECK(store->find(seen_finding(2).fingerprint)->front().explanation == "{\"of\":2}");
}

TEST_CASE("a slice that crashed an analysis twice is left, one whose end nobody saw is, too") {
  const Folder place;
  const auto store = kept_store(place.write("x", "") + ".store");
  REQUIRE(store->add(kPlace, 10, {}, -1));
  std::string problem;
  const Descriptor file = slice_of(10);
  std::vector<IncidentSlice> slices = {{file.get(), 10, 0}, {file.get(), 20, 0}};
  REQUIRE(store->begin_incident(kPlace, 20, "a test", &slices, &problem));
  REQUIRE(slices[1].stored == 2);
  SliceAnalysis one = begun(*store);
  CHECK(one.slice == 2);
  REQUIRE(store->end_analysis(one, {How::kStopped, "", {}, {}}, 5));
  one = begun(*store);
  CHECK(one.tries == 1);  // a stop is none
  REQUIRE(store->end_analysis(one, {How::kCrashed, "signal 11", {}, {}}, 5));
  one = begun(*store);
  CHECK(one.slice == 2);
  CHECK(one.crashes == 1);
  CHECK(one.tries == 2);
  REQUIRE(store->end_analysis(one, {How::kCrashed, "signal 11", {}, {}}, 5));
  for (uint64_t i = 0; i < Store::kMostTries; ++i) {
    one = begun(*store);  // and whoever did it is killed
    CHECK(one.slice == 1);
    CHECK(one.tries == i + 1);
  }
  const auto none = store->begin_analysis(1);
  REQUIRE(none);
  CHECK_FALSE(*none);
  const auto all = store->analyses();
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].state == SliceAnalysis::State::kLeft);
  CHECK((*all)[0].result == "left: its end was not seen 5 times");
  CHECK((*all)[1].state == SliceAnalysis::State::kLeft);
  CHECK((*all)[1].result == "left: signal 11");
  // The slice may go meanwhile.
  REQUIRE(store->add(kPlace, 30, {seen_finding(1)}, slice_of(10).get()));
  one = begun(*store);
  REQUIRE(store->forget(seen_finding(1).fingerprint));
  AnalysisEnd late = done();
  late.found = {seen_finding(5)};
  REQUIRE(store->end_analysis(one, late, 5));
  CHECK(store->findings()->empty());
}

// One process analyses, until it is killed; the next one goes on.
TEST_CASE("each analysis counts once, whenever who does it is killed") {
  const Folder place;
  const std::string folder = place.write("x", "") + ".store";
  constexpr int kSlices = 30;
  {
    const auto store = kept_store(folder);
    for (int i = 0; i < kSlices; ++i) {
      const auto number = static_cast<uint64_t>(i);
      REQUIRE(store->add(kPlace, i, {seen_finding(number)}, slice_of(10).get()));
    }
  }
  const auto work = [&](std::mt19937_64 mine, bool dawdles) {
    auto store = Store::keep(folder, kStoreRoom);
    while (store) {
      auto next = (*store)->begin_analysis(1);
      if (!next || !*next) {
        return next.has_value();
      }
      if (dawdles) {
        std::this_thread::sleep_for(std::chrono::microseconds(mine() % 300));
      }
      AnalysisEnd end = done();
      if ((*next)->what == What::kPredict) {
        SeenFinding race = seen_finding(1000 + static_cast<uint64_t>((*next)->slice));
        race.property = "race";
        race.predicted = true;
        end.found = {race};
      } else {
        end.explanation = "{}";
      }
      if (!(*store)->end_analysis(**next, end, 5)) {
        return false;
      }
    }
    return false;
  };
  std::mt19937_64 random(11);
  const int kRounds = rounds(20, 100);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t seed = random();
    const pid_t worker = ::fork();
    REQUIRE(worker >= 0);
    if (worker == 0) {
      ::_exit(work(std::mt19937_64(seed), true) ? 0 : 1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    ::kill(worker, SIGKILL);
    REQUIRE(::waitpid(worker, nullptr, 0) == worker);
    const auto store = kept_store(folder);
    REQUIRE(store->notes().empty());
    const auto so_far = store->findings();
    REQUIRE(so_far);
    for (const KeptFinding& each : *so_far) {
      REQUIRE(each.count == 1);
    }
  }
  REQUIRE(work(std::mt19937_64(1), false));
  const auto store = kept_store(folder);
  size_t predicted = 0;
  const auto found = store->findings();
  REQUIRE(found);
  for (const KeptFinding& each : *found) {
    CHECK(each.count == 1);
    predicted += each.predicted ? 1 : 0;
  }
  const auto all = store->analyses();
  REQUIRE(all);
  CHECK(all->size() == 2 * kSlices);
  size_t left = 0;
  for (const SliceAnalysis& each : *all) {
    CHECK(each.state != SliceAnalysis::State::kBegun);
    left += each.state == SliceAnalysis::State::kLeft && each.what == What::kPredict ? 1 : 0;
  }
  CHECK(predicted + left == kSlices);
}

TEST_CASE("cause, repair and analyses in words") {
  KeptFinding one;
  one.fingerprint = "1000000000000001";
  one.property = "serializability";
  one.files = {"s/slices/1.tsomon"};
  SliceAnalysis analysis;
  analysis.file = one.files.front();
  analysis.what = What::kPredict;
  analysis.state = SliceAnalysis::State::kDone;
  analysis.result = "2 races \x1b";
  one.analyses = {analysis};
  one.explanation =
      R"({"eliminators":[{"blocks":[{"unit":"pay","locations":["a.cpp:1","a.cpp:5"],"lock":{"name":"l"}}],"fences":[],)"
      R"("verified":true},{"blocks":[],"fences":[{"location":"a.cpp:3"}],"verified":null}]})";
  const std::string report = kept_report(one, {});
  CHECK(report.find("    slice s/slices/1.tsomon\n        predict: 2 races \\x1b\n") !=
        std::string::npos);
  CHECK(report.find("    cause: unit pay is interrupted between a.cpp:1 and a.cpp:5\n"
                    "    repair, verified:\n        make atomic: unit pay, a.cpp:1 to a.cpp:5\n"
                    "        lock: hold l over it\n    repair, not verified:\n"
                    "        fence after a.cpp:3\n") != std::string::npos);
  CHECK(kept_json(one, {})["explanation"]["eliminators"].size() == 2);
  for (const char* const hostile :
       {"[", "{\"eliminators\":7}",
        "{\"eliminators\":[1,{\"blocks\":[{\"unit\":1,\"locations\":[2]}]}]}"}) {
    one.explanation = hostile;
    CHECK(kept_report(one, {}).find('\x1b') == std::string::npos);
  }
}
