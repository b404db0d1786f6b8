// Repairs of small traces with known answers.
#include "offline/explain/repairs.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "offline/orientation_search.h"

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

}  // namespace
}  // namespace tsomon::explain
