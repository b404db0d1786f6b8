// The consistency check against the verdicts of the axe checker.
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "decoders/axe/reader.h"
#include "offline/consistency/consistency.h"

using namespace tsomon;

namespace {

const std::string kData = TSOMON_TEST_DATA "/axe/";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

ConsistencyReport judge(const AxeTest& test, ConsistencyModel model) {
  ConsistencyOptions options;
  options.model = model;
  options.final_values = test.final_values;
  const auto report = check_consistency(test.trace, options);
  REQUIRE(report);
  REQUIRE(report->complete);
  return *report;
}

}  // namespace

TEST_CASE("199 axe traces have its verdicts under SC and TSO") {
  auto reader = AxeReader::open(kData + "tests.axe");
  REQUIRE(reader);
  std::istringstream sc(read(kData + "SC.txt"));
  std::istringstream tso(read(kData + "TSO.txt"));
  AxeTest test;
  int tests = 0;
  int allowed = 0;
  while (true) {
    const auto more = reader->next(test);
    REQUIRE(more);
    if (!*more) {
      break;
    }
    std::string verdict_sc;
    std::string verdict_tso;
    std::string name;
    REQUIRE((sc >> verdict_sc >> name));
    REQUIRE((tso >> verdict_tso >> name));
    INFO(name);
    const bool is_sc = verdict_sc == "OK";
    const bool is_tso = verdict_tso == "OK";
    using Verdict = ConsistencyVerdict;
    CHECK(judge(test, ConsistencyModel::kSc).verdict ==
          (is_sc ? Verdict::kSc : Verdict::kInconsistent));
    CHECK(judge(test, ConsistencyModel::kTso).verdict ==
          (is_tso ? Verdict::kTso : Verdict::kInconsistent));
    CHECK(judge(test, ConsistencyModel::kBoth).verdict == (is_sc    ? Verdict::kSc
                                                           : is_tso ? Verdict::kTso
                                                                    : Verdict::kInconsistent));
    ++tests;
    allowed += is_tso ? 1 : 0;
  }
  CHECK(tests == 199);
  CHECK(allowed == 35);
}
