// Candidates that are handed out to several processes: whoever puts their searches together says what one process says.
#include "monitor/judge/group_share.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "monitor/judge/check.h"
#include "monitor/judge/searched_groups.h"
#include "monitor/judge/stream_check.h"
#include "tests/rounds.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(300, 5'000);

CheckReport judged(const Trace& trace, const CheckOptions& options, size_t block_events) {
  StreamCheck check(trace.symbols, options);
  EventBlock block;
  for (size_t first = 0; first < trace.events.size(); first += block_events) {
    block.clear();
    block.append(trace, first, std::min(first + block_events, trace.events.size()));
    check.add(block);
  }
  auto report = check.finish(trace.complete, trace.lost_events);
  REQUIRE_MESSAGE(report.has_value(), report.error().to_string());
  return *report;
}

std::string said(const Trace& trace, const CheckReport& report) {
  return report_json("trace", trace.symbols, report).dump();
}

struct Asked {
  RandomTraceOptions made;
  CheckOptions check;
  size_t block_events = 1;
};

Asked random_question(std::mt19937_64& random) {
  Asked asked;
  RandomTraceOptions& made = asked.made;
  made.threads = 2 + static_cast<uint32_t>(random() % 3);
  made.locations = 1 + static_cast<uint32_t>(random() % 4);
  made.steps = 6 + static_cast<uint32_t>(random() % 60);
  made.units = 20 + static_cast<uint32_t>(random() % 3) * 10;
  made.locked = static_cast<uint32_t>(random() % 2) * 15;
  made.fences = static_cast<uint32_t>(random() % 3) * 10;
  made.locks = random() % 3 == 0 ? 30 : 0;
  made.nesting = random() % 2 == 0;
  made.intervals = random() % 2 == 0;
  made.values = random() % 2 == 0;
  constexpr Property kProperties[] = {Property::kSerializability, Property::kScSerializability,
                                      Property::kAtomicSets, Property::kRobustness};
  asked.check.property = kProperties[random() % 4];
  asked.check.history_events = 2 + random() % 63;
  // Bounds that are met leave groups open, which are told of, too.
  if (random() % 3 == 0) {
    asked.check.analysis.bounds.max_steps = 1 + random() % 4;
    asked.check.analysis.max_total_steps = 10 * asked.check.analysis.bounds.max_steps;
  }
  asked.check.analysis.told = random() % 2 == 0 ? Told::kEachKind : Told::kAll;
  asked.block_events = 1 + random() % 7;
  return asked;
}

// What the parts have found, as they write it.
std::shared_ptr<SearchedGroups> searched_by_parts(const Trace& trace, const Asked& asked,
                                                  uint64_t of) {
  auto all = std::make_shared<SearchedGroups>();
  for (uint64_t number = 1; number <= of; ++number) {
    CheckOptions options = asked.check;
    options.part = {number, of};
    options.found = std::make_shared<SearchedGroups>();
    judged(trace, options, asked.block_events);
    const std::string text = options.found->json().dump();
    const auto added = all->add(nlohmann::ordered_json::parse(text));
    REQUIRE_MESSAGE(added.has_value(), added.error().to_string());
  }
  return all;
}

}  // namespace

TEST_CASE("parts put together say what one process says") {
  constexpr uint64_t kSeed = 4401;
  std::mt19937_64 random(kSeed);
  size_t groups = 0;
  size_t undecided = 0;
  int with_findings = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Asked asked = random_question(random);
    const Trace trace = in_stream_order(random_trace(random, asked.made).trace);
    const uint64_t of = 1 + random() % 4;
    INFO("seed " << kSeed << " round " << round);
    const CheckReport alone = judged(trace, asked.check, asked.block_events);
    const auto parts = searched_by_parts(trace, asked, of);
    CheckOptions options = asked.check;
    options.searched = parts;
    const CheckReport together = judged(trace, options, asked.block_events);
    REQUIRE(said(trace, together) == said(trace, alone));
    groups += parts->size();
    undecided += parts->size() > 0 && !alone.complete() ? 1 : 0;
    with_findings += parts->size() > 0 && alone.violations() > 0 ? 1 : 0;
  }
  MESSAGE(kRounds << " traces, " << groups << " groups were handed out; " << with_findings
                  << " traces with them have findings, " << undecided << " are not complete");
  CHECK(groups > static_cast<size_t>(kRounds) / 10);
  CHECK(with_findings > kRounds / 50);
  CHECK(undecided > static_cast<size_t>(kRounds) / 100);
}

TEST_CASE(
    "what a part has searched is not searched again, and of another input or question it is not "
    "used") {
  constexpr uint64_t kSeed = 17;
  std::mt19937_64 random(kSeed);
  int used = 0;
  for (int round = 0; round < 400; ++round) {
    Asked asked = random_question(random);
    asked.check.property = Property::kSerializability;
    const Trace trace = in_stream_order(random_trace(random, asked.made).trace);
    const auto parts = searched_by_parts(trace, asked, 2);
    if (parts->size() == 0) {
      continue;
    }
    // Each says of a thousand groups more than there are.
    auto marked = std::make_shared<SearchedGroups>();
    auto list = parts->json();
    for (auto& each : list) {
      each["components"] = each["components"].get<uint64_t>() + 1000;
    }
    REQUIRE(marked->add(list));
    CheckOptions options = asked.check;
    options.searched = marked;
    used += judged(trace, options, asked.block_events).components >= 1000 ? 1 : 0;

    Trace other = trace;
    other.events.front().location = 12345;
    CHECK(judged(other, options, asked.block_events).components < 1000);
    options.analysis.bounds.max_work += 1;
    CHECK(judged(trace, options, asked.block_events).components < 1000);
  }
  CHECK(used > 10);
}

TEST_CASE("what is no list of searched groups is refused") {
  using Json = nlohmann::ordered_json;
  SearchedGroups one;
  SearchedGroup group;
  group.analysis.unfenced = {{1, 2, 0}};
  group.analysis.unfenced_groups = {{0, 1}};
  group.analysis.missing("a bound");
  one.add(0x1234, group);
  const Json good = one.json();
  SearchedGroups read;
  REQUIRE(read.add(good));
  CHECK(read.json() == good);
  REQUIRE(read.find(0x1234) != nullptr);
  CHECK_FALSE(read.find(0x1234)->analysis.complete());
  CHECK(read.find(0x1235) == nullptr);

  CHECK_FALSE(read.add(Json::object()));
  CHECK_FALSE(read.add(Json::array({1})));
  for (const auto& [name, value] : good.front().items()) {
    Json wrong = good;
    wrong.front().erase(name);
    CHECK_FALSE(read.add(wrong));
    wrong.front()[name] = "x";
    CHECK_FALSE(read.add(wrong));
    wrong.front()[name] = -1;
    CHECK_FALSE(read.add(wrong));
  }
  Json wrong = good;
  wrong.front()["unfenced"][0][2] = 1;  // a group that there is not
  CHECK_FALSE(read.add(wrong));
  CHECK(read.size() == 1);
}
