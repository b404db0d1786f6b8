// The line about a repair that stands under a finding, and the inputs of `tsomon explain`.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/explain/explain.h"
#include "monitor/explain/explain_line.h"
#include "tests/monitor/folder.h"

using namespace tsomon;

namespace {

// Store buffering of two units.
const std::string kBuffered =
    "T0|begin(f)|1\nT1|begin(g)|2\nT0|w(x)|3\nT1|w(y)|4\nT0|r(y)|5\nT1|r(x)|6\nT0|end|7\nT1|end|8\n"
    "T0|fence|9\nT1|fence|10\n";

std::string padded(const std::string& trace, size_t events) {
  std::string text;
  for (size_t i = 0; i < events; ++i) {
    text += "T9|r(z)|99\n";
  }
  return text + trace;
}

}  // namespace

TEST_CASE(
    "repair line: fences behind both stores, blocks without a store buffer, nothing where nothing "
    "is wrong") {
  const std::string line = repair_line(kBuffered, Property::kRobustness);
  CHECK(line.find("a fence after #") == 0);
  CHECK(line.find("store x") != std::string::npos);
  CHECK(line.find("store y") != std::string::npos);
  CHECK(line.find(" and after #") != std::string::npos);
  // A lost update: no fence helps.
  const std::string lost =
      "T0|begin(add)|1\nT0|r(x)|2\nT1|begin(add)|3\nT1|r(x)|4\nT1|w(x)|5\nT1|end|6\nT1|fence|7\nT0|"
      "w(x)|8\nT0|end|9\n"
      "T0|fence|10\n";
  CHECK(repair_line(lost, Property::kSerializability).find("atomic from") != std::string::npos);
  CHECK(repair_line(lost, Property::kRobustness).empty());
  CHECK(repair_line("T0|w(x)|1\nT1|r(x)|2\n", Property::kSerializability).empty());
}

TEST_CASE("repair line: no statement about what is too large, unreadable or another property") {
  CHECK_FALSE(repair_line(padded(kBuffered, 50), Property::kRobustness).empty());
  CHECK(repair_line(padded(kBuffered, kMostEventsExplained), Property::kRobustness).empty());
  CHECK(repair_line("no trace at all", Property::kRobustness).empty());
  CHECK(repair_line(kBuffered, Property::kAtomicSets).empty());
}

TEST_CASE(
    "explain: passing inputs are told from violating ones, and what cannot be read is an error") {
  const testing::Folder folder;
  ExplainOptions options;
  options.check.property = Property::kRobustness;
  const auto bad = read_for_explaining(folder.write("bad.std", kBuffered), options);
  const auto good =
      read_for_explaining(folder.write("good.std", "T0|w(x)|1\nT1|r(x)|2\n"), options);
  REQUIRE(bad);
  REQUIRE(good);
  CHECK(bad->trace.events.size() == 10);
  const auto explanation = explain_inputs({*bad}, {*good}, options);
  REQUIRE(explanation);
  CHECK(explanation->violations() == 1);
  CHECK(explanation->complete());
  REQUIRE_FALSE(explanation->repairs.repairs.empty());
  CHECK(explanation->repairs.repairs[0].fences.size() == 2);
  CHECK(explanation->repairs.repairs[0].verified == std::optional(true));
  const std::string text = explanation_text(*explanation);
  CHECK(text.find("fence") != std::string::npos);
  const auto json = explanation_json(*explanation);
  CHECK(json.dump().find("\"verified\":true") != std::string::npos);
  CHECK_FALSE(read_for_explaining("/nothing/there", options));
}
