// Repairs of small traces with known answers.
#include "offline/explain/repairs.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/std/reader.h"
#include "offline/check/orientation_search.h"

namespace tsomon::explain {
namespace {

CodePlace by_number(const std::string& location) {
  return {"", "", static_cast<uint32_t>(std::stoul(location))};
}

Trace read(const std::string& text) {
  auto trace = read_std_text(text, "test");
  REQUIRE(trace);
  return std::move(*trace);
}

Repairs repairs_of(const std::vector<Trace>& violating, const std::vector<Trace>& passing,
                   Property property) {
  RepairOptions options;
  options.analysis.property = property;
  std::vector<ViolatingTrace> with;
  for (const Trace& trace : violating) {
    const auto found = analyse_exactly(trace, options.analysis);
    REQUIRE(found);
    REQUIRE(!found->findings.empty());
    ViolatingTrace one{&trace, {}, by_number};
    for (const Violation& violation : found->findings) {
      one.cycles.push_back(violation.cycle);
    }
    with.push_back(std::move(one));
  }
  std::vector<PassingTrace> without;
  for (const Trace& trace : passing) {
    without.push_back({&trace, by_number});
  }
  return find_repairs(with, without, options);
}

// The stack of Afek et al.: both pops return what was pushed second.
const char* const kStack = R"(T2|begin(push)|1
T2|rmw(range)|2
T2|w(items0)|3
T2|end|4
T1|begin(push)|1
T1|rmw(range)|2
T2|begin(pop)|5
T2|r(range)|6
T2|r(items1)|8
T2|w(items1)|9
T3|begin(pop)|5
T3|r(range)|6
T3|r(items1)|8
T3|w(items1)|9
T2|r(items0)|8
T3|r(items0)|8
T2|w(items0)|9
T3|w(items0)|9
T2|end|10
T3|end|10
T1|w(items1)|3
T1|end|4
)";

// One pop after the other: linearizable, though the first push is interrupted.
const char* const kStackThatPasses = R"(T2|begin(push)|1
T2|rmw(range)|2
T2|w(items0)|3
T2|end|4
T1|begin(push)|1
T1|rmw(range)|2
T2|begin(pop)|5
T2|r(range)|6
T2|r(items1)|8
T2|w(items1)|9
T2|r(items0)|8
T2|w(items0)|9
T2|end|10
T1|w(items1)|3
T1|end|4
T3|begin(pop)|5
T3|r(range)|6
T3|r(items1)|8
T3|w(items1)|9
T3|end|10
)";

void check_block(const Repair& repair, const std::string& method, uint32_t first, uint32_t last) {
  REQUIRE(repair.blocks.size() == 1);
  CHECK(repair.fences.empty());
  CHECK(repair.blocks[0].method == method);
  CHECK(repair.code[0].first == first);
  CHECK(repair.code[0].last == last);
}

TEST_CASE("the stack of Afek et al. has two repairs, its pop is the better one") {
  for (const Property property : {Property::kScSerializability, Property::kSerializability}) {
    const Repairs found = repairs_of({read(kStack)}, {read(kStackThatPasses)}, property);
    CHECK(found.violations == 1);
    REQUIRE(found.repairs.size() == 2);
    check_block(found.repairs[0], "pop", 8, 9);
    CHECK(found.repairs[0].forbids == 0);
    CHECK(found.repairs[0].rank == 1);
    check_block(found.repairs[1], "push", 2, 3);
    CHECK(found.repairs[1].forbids == 1);
    CHECK(found.repairs[1].rank == 2);
    for (const Repair& repair : found.repairs) {
      CHECK(repair.verified == std::optional(true));
    }
    CHECK(found.notes.complete());
  }
}

TEST_CASE("a slice around a loop becomes the loop with what is before it, or the whole method") {
  // The second turn reads what the first one wrote, and another thread comes between.
  static constexpr const char kLoop[] = R"(T1|begin(count)|1
T1|w(z)|{}
T1|r(x)|3
T1|w(y)|4
T2|begin(other)|10
T2|r(y)|11
T2|w(x)|12
T2|end|13
T1|r(x)|3
T1|w(y)|4
T1|end|5
)";
  for (const bool has_head : {true, false}) {
    const std::string text = fmt::format(kLoop, has_head ? 2 : 3);
    const Repairs found = repairs_of({read(text)}, {}, Property::kScSerializability);
    REQUIRE(!found.repairs.empty());
    const auto loop =
        std::find_if(found.repairs.begin(), found.repairs.end(),
                     [](const Repair& repair) { return repair.blocks.front().method == "count"; });
    REQUIRE(loop != found.repairs.end());
    CHECK(loop->code[0].first == (has_head ? 2 : 3));
    CHECK(loop->code[0].last == 4);
    CHECK(loop->verified == std::optional(true));
  }
}

TEST_CASE("units with one label in two functions have blocks of their own") {
  const char* const kTwo = R"(T1|begin(take)|h1
T1|r(x)|h2
T2|begin(take)|t1
T2|r(x)|t2
T2|r(x)|t3
T1|w(x)|h3
T2|w(x)|t4
T1|end|h4
T2|end|t5
)";
  const Trace trace = read(kTwo);
  RepairOptions options;
  options.analysis.property = Property::kScSerializability;
  const auto found = analyse_exactly(trace, options.analysis);
  REQUIRE(found);
  const auto by_letter = [](const std::string& location) {
    return CodePlace{location.substr(0, 1), "f.cpp",
                     static_cast<uint32_t>(std::stoul(location.substr(1)))};
  };
  const Repairs repairs =
      find_repairs({{&trace, {found->findings[0].cycle}, by_letter}}, {}, options);
  REQUIRE(repairs.repairs.size() == 1);
  check_block(repairs.repairs[0], "take", 3, 4);
  CHECK(repairs.repairs[0].blocks[0].first_location == "t3");
  CHECK(repairs.repairs[0].blocks[0].last_location == "t4");
  CHECK(repairs.repairs[0].verified == std::optional(true));
}

TEST_CASE("units of one label that go through other functions, too, are one method") {
  // Each unit is interrupted at another place; the second one calls a function on the way.
  const char* const kPut = R"(T1|begin(put)|p1
T1|r(x)|p1
T2|w(x)|z1
T1|r(x)|p2
T1|end|p4
T1|begin(put)|p1
T1|r(a)|p1
T1|r(c)|q7
T1|r(b)|p2
T2|w(b)|z2
T1|r(b)|p3
T1|end|p4
)";
  const Trace trace = read(kPut);
  RepairOptions options;
  options.analysis.property = Property::kScSerializability;
  const auto found = analyse_exactly(trace, options.analysis);
  REQUIRE(found);
  REQUIRE(found->findings.size() == 2);
  const auto by_letter = [](const std::string& location) {
    return CodePlace{location.substr(0, 1), "f.cpp",
                     static_cast<uint32_t>(std::stoul(location.substr(1)))};
  };
  const Repairs repairs = find_repairs(
      {{&trace, {found->findings[0].cycle, found->findings[1].cycle}, by_letter}}, {}, options);
  REQUIRE(repairs.repairs.size() == 1);
  REQUIRE(repairs.repairs[0].blocks.size() == 1);
  CHECK(repairs.repairs[0].blocks[0].first_location == "p1");
  CHECK(repairs.repairs[0].blocks[0].last_location == "p3");
  CHECK(repairs.repairs[0].verified == std::optional(true));
}

TEST_CASE("blocks that single orders ask for are joined where every order has to be ruled out") {
  const char* const kLoads = R"(T2|begin(a)|1|0..5
T2|r(v)|2|-3..5
T1|begin(b)|11|1..12
T1|r(v)|12|7..14
T2|r(v)|3|14..21
T1|rmw(v)|13|12..27
T1|r(v)|14|18..30
T2|w(v)|4|21..37
T0|fence|21|24..33
T0|begin(c)|22|36..40
T0|w(v)|23|38..42
T2|w(v)|5|43..48
)";
  const Repairs found = repairs_of({read(kLoads)}, {}, Property::kSerializability);
  REQUIRE(found.repairs.size() == 3);
  check_block(found.repairs[0], "a", 2, 5);
  CHECK(found.repairs[0].verified == std::optional(true));
  CHECK(found.repairs[1].verified == std::optional(false));
  CHECK(found.repairs[2].verified == std::optional(false));
}

TEST_CASE("where nothing is found that helps, the search was not complete") {
  // The second unit comes before the load that follows it by its fence alone, which is in no block.
  const char* const kFence = R"(T0|begin(a)|1
T0|rmw(v2)|2
T1|begin(b)|11
T1|fence|12
T1|w(v2)|13
T1|end|14
T1|r(v1)|15
T0|w(v1)|3
)";
  const Repairs found = repairs_of({read(kFence)}, {}, Property::kSerializability);
  CHECK(found.violations == 1);
  CHECK(found.repairs.empty());
  CHECK(!found.notes.complete());
}

TEST_CASE("the smallest trace of a violation loses it with any event less") {
  const Trace trace = read(kStack);
  RepairOptions options;
  options.analysis.property = Property::kScSerializability;
  options.minimize = true;
  const auto found = analyse_exactly(trace, options.analysis);
  REQUIRE(found);
  REQUIRE(found->findings.size() == 1);
  const Repairs repairs =
      find_repairs({{&trace, {found->findings[0].cycle}, by_number}}, {}, options);
  REQUIRE(repairs.smallest.size() == 1);
  const std::vector<uint32_t>& events = repairs.smallest[0].events;
  CHECK(repairs.smallest[0].complete);
  CHECK(events.size() >= 3);
  CHECK(events.size() <= 4);
  for (size_t without = 0; without <= events.size(); ++without) {
    Trace smaller;
    smaller.symbols = trace.symbols;
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      const auto at = std::find(events.begin(), events.end(), e);
      const bool stays =
          trace.events[e].kind() == EventKind::kUnitBegin ||
          trace.events[e].kind() == EventKind::kUnitEnd ||
          (at != events.end() && static_cast<size_t>(at - events.begin()) != without);
      if (stays) {
        smaller.append(trace, e, e + 1);
      }
    }
    const auto left = analyse_exactly(smaller, options.analysis);
    REQUIRE(left);
    CHECK(left->findings.empty() == (without < events.size()));
  }
}

TEST_CASE("several violations have a common repair") {
  // The first trace is ruled out by a block of either thread, the second by one of them alone.
  const char* const kFirst = R"(T1|begin(a)|1
T1|w(x)|2
T2|begin(b)|11
T2|r(x)|12
T2|w(y)|13
T1|r(y)|3
T1|w(z)|4
T2|r(z)|14
T1|end|5
T2|end|15
)";
  const char* const kSecond = R"(T1|begin(a)|1
T1|r(x)|2
T2|w(x)|21
T1|r(x)|3
T1|end|4
)";
  const Repairs first = repairs_of({read(kFirst)}, {}, Property::kScSerializability);
  REQUIRE(first.repairs.size() == 2);
  check_block(first.repairs[0], "a", 2, 3);
  check_block(first.repairs[1], "b", 13, 14);
  const Repairs both = repairs_of({read(kFirst), read(kSecond)}, {}, Property::kScSerializability);
  CHECK(both.violations == 2);
  REQUIRE(both.repairs.size() == 1);
  check_block(both.repairs[0], "a", 2, 3);
  CHECK(both.repairs[0].verified == std::optional(true));
}

TEST_CASE("fences for one violation stand together with blocks for another") {
  // Both may be late: a fence of either thread rules it out, and no block does.
  const char* const kLate = R"(T0|begin(a)|1
T0|w(x)|2
T0|r(y)|3
T0|end|4
T1|begin(b)|11
T1|w(y)|12
T1|r(x)|13
T1|end|14
)";
  const char* const kLost = R"(T0|begin(c)|21
T0|r(z)|22
T1|begin(d)|31
T1|r(z)|32
T1|w(z)|33
T1|end|34
T0|w(z)|23
T0|end|24
)";
  const Repairs late = repairs_of({read(kLate)}, {}, Property::kSerializability);
  REQUIRE(!late.repairs.empty());
  CHECK(late.repairs[0].blocks.empty());
  const Repairs both = repairs_of({read(kLate), read(kLost)}, {}, Property::kSerializability);
  CHECK(both.violations == 2);
  REQUIRE(!both.repairs.empty());
  const Repair& best = both.repairs[0];
  CHECK(best.verified == std::optional(true));
  CHECK(best.fences.size() == late.repairs[0].fences.size());
  REQUIRE(!best.blocks.empty());
  for (const BlockPlace& block : best.blocks) {
    CHECK((block.method == "c" || block.method == "d"));
  }
  for (size_t i = 1; i < both.repairs.size(); ++i) {
    CHECK(both.repairs[i].verified != std::optional(true));
  }
}

TEST_CASE("a lock that protects some of a block's locations is named, with what is not covered") {
  const char* const kLocked = R"(T1|begin(a)|1
T1|acq(m)|2
T1|r(x)|3
T1|rel(m)|4
T2|w(x)|21
T1|acq(m)|5
T1|w(x)|6
T1|rel(m)|7
T1|end|8
T3|acq(m)|31
T3|r(x)|32
T3|rel(m)|33
)";
  const Trace trace = read(kLocked);
  const Repairs found = repairs_of({trace}, {}, Property::kScSerializability);
  REQUIRE(found.repairs.size() == 1);
  check_block(found.repairs[0], "a", 3, 6);
  const auto& lock = found.repairs[0].blocks[0].lock;
  REQUIRE(lock);
  CHECK(trace.symbols.access_text(trace.events[lock->acquisition]) == "m");
  CHECK(lock->with == 3);
  CHECK(lock->without == 1);
  CHECK(lock->uncovered == std::vector<std::string>{"21"});
}

TEST_CASE(
    "units that only a lock makes a circle of have repairs beside those of a circle of data") {
  const char* const kBoth = R"(T1|begin(a)|1
T1|rmw(x)|2
T2|rmw(x)|50
T1|rmw(x)|3
T1|end|4
T3|begin(b)|11
T3|acq(m)|12
T3|rel(m)|13
T4|begin(c)|21
T4|acq(m)|22
T4|rel(m)|23
T4|end|24
T3|acq(m)|14
T3|rel(m)|15
T3|end|16
)";
  const Repairs found = repairs_of({read(kBoth)}, {}, Property::kSerializability);
  CHECK(found.violations == 2);
  REQUIRE(!found.repairs.empty());
  CHECK(found.repairs[0].verified == std::optional(true));
  REQUIRE(found.repairs[0].blocks.size() == 2);
  CHECK(found.repairs[0].blocks[0].method == "a");
  CHECK(found.repairs[0].blocks[1].method == "b");
}

TEST_CASE("a repair holds in every order that a store buffer allows, or is refuted") {
  // Either store may commit first: one of the two blocks alone is not enough.
  const char* const kStores = R"(T1|w(x=1)|1
T1|begin(a)|2
T1|r(y=0)|3
T1|w(z)|4
T1|end|5
T2|w(y=1)|21
T2|begin(b)|22
T2|r(x=0)|23
T2|w(z)|24
T2|end|25
)";
  const Repairs found = repairs_of({read(kStores)}, {}, Property::kSerializability);
  REQUIRE(found.repairs.size() == 2);
  REQUIRE(found.repairs[0].fences.size() == 2);
  CHECK(found.repairs[0].fences[0].location == "1");
  CHECK(found.repairs[0].fences[1].location == "21");
  CHECK(!found.repairs[0].assumes_times);
  CHECK(found.repairs[1].blocks.size() == 2);
  CHECK(found.repairs[1].verified == std::optional(true));
}

}  // namespace
}  // namespace tsomon::explain
