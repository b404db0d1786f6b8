// The line about a repair that stands under a finding, and the inputs of `tsomon explain`.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "monitor/check/check_input.h"
#include "monitor/explain/explain.h"
#include "monitor/explain/explain_line.h"
#include "tests/monitor/folder.h"

using namespace tsomon;

namespace {

// Store buffering of two units.
const std::string kBuffered =
    "T0|begin(f)|1\nT1|begin(g)|2\nT0|w(x)|3\nT1|w(y)|4\nT0|r(y)|5\nT1|r(x)|6\nT0|end|7\nT1|end|8\n"
    "T0|fence|9\nT1|fence|10\n";

// The best of a trace's first violation.
std::string best_line(const std::string& trace, Property property) {
  const std::vector<RepairLine> lines = repair_lines(trace, property);
  return lines.empty() ? std::string() : lines.front().text;
}

// What the report of an input has under its findings.
std::vector<std::string> lines_of(const std::string& text, Property property) {
  const testing::Folder folder;
  CheckOptions options;
  options.property = property;
  options.analysis.told = Told::kEachKind;
  const auto checked = check_input(folder.write("input.std", text), InputFormat::kAuto, options);
  REQUIRE(checked);
  std::vector<const Finding*> findings;
  for (const Finding& finding : checked->report.findings) {
    findings.push_back(&finding);
  }
  return repair_lines(checked->report, findings, false, checked->symbols, checked->names);
}

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
  const std::string line = best_line(kBuffered, Property::kRobustness);
  CHECK(line.find("a fence after #") == 0);
  CHECK(line.find("store x") != std::string::npos);
  CHECK(line.find("store y") != std::string::npos);
  CHECK(line.find(" and after #") != std::string::npos);
  // A lost update: no fence helps.
  const std::string lost =
      "T0|begin(add)|1\nT0|r(x)|2\nT1|begin(add)|3\nT1|r(x)|4\nT1|w(x)|5\nT1|end|6\nT1|fence|7\nT0|"
      "w(x)|8\nT0|end|9\n"
      "T0|fence|10\n";
  CHECK(best_line(lost, Property::kSerializability).find("atomic from") != std::string::npos);
  CHECK(best_line(lost, Property::kRobustness).empty());
  CHECK(best_line("T0|w(x)|1\nT1|r(x)|2\n", Property::kSerializability).empty());
}

TEST_CASE("repair line: no statement about what is too large, unreadable or another property") {
  CHECK_FALSE(best_line(padded(kBuffered, 50), Property::kRobustness).empty());
  CHECK(best_line(padded(kBuffered, kMostEventsExplained), Property::kRobustness).empty());
  CHECK(best_line("no trace at all", Property::kRobustness).empty());
  CHECK(best_line(kBuffered, Property::kAtomicSets).empty());
}

TEST_CASE(
    "repair line: fences of a finding are said if they leave no violation of the whole input") {
  const std::vector<std::string> alone = lines_of(kBuffered, Property::kRobustness);
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].find("a fence after #2 store x") == 0);
  CHECK(alone[0].find("left then") == std::string::npos);
  // Two of them: the fences of both are needed, and are enough.
  const std::string twice =
      kBuffered + "T0|w(p)|13\nT1|w(q)|14\nT0|r(q)|15\nT1|r(p)|16\nT0|fence|17\nT1|fence|18\n";
  const std::vector<std::string> both = lines_of(twice, Property::kRobustness);
  REQUIRE(both.size() == 2);
  for (const std::string& line : both) {
    for (const char* const store :
         {"store x", "store y", "store p", "store q", "(no violation of the input is left then)"}) {
      CHECK(line.find(store) != std::string::npos);
    }
  }
  // A second violation of units that no fence takes away: nothing is said of either by fences.
  const std::string lost =
      "T2|begin(add)|21\nT2|r(z)|22\nT3|begin(add)|21\nT3|r(z)|22\nT3|w(z)|23\nT3|end|24\nT3|fence|"
      "25\nT2|w(z)|23\nT2|end|24\n";
  for (const std::string& line : lines_of(kBuffered + lost, Property::kSerializability)) {
    CHECK(line.find("fence") == std::string::npos);
  }
}

TEST_CASE("repair line: without an input that can be asked, the line says so") {
  const auto read = read_std_text(kBuffered, "input");
  REQUIRE(read);
  CheckOptions options;
  options.property = Property::kRobustness;
  const auto report = check_trace(*read, options);
  REQUIRE(report);
  REQUIRE(report->findings.size() == 1);
  const Finding& finding = report->findings.front();
  CHECK(repair_line(finding, read->symbols, {}, Property::kRobustness)
            .find("(asked of these events alone)") != std::string::npos);
  CHECK(repair_lines(*report, {&finding}, false, read->symbols, {})[0].empty());  // it was not kept
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
