#include "monitor/events/address_coverage.h"

#include <doctest/doctest.h>

using namespace tsomon;

TEST_CASE("coverage is a share of accesses, where there are any") {
  AddressCoverage coverage;
  coverage.instructions = 5;
  CHECK(coverage_text(coverage) ==
        "5 instructions; no accesses; 0 on the stack and 0 of the loader left out; 0 gaps");
  coverage.unknown = 1;
  coverage.by_instruction = 2;
  coverage.backward = 1;
  coverage.stack = 7;
  coverage.loader = 4;
  CHECK(coverage_text(coverage) ==
        "5 instructions; addresses of 3 accesses are known, 75.0 % (2 by the instruction, 0 "
        "carried forwards, 1 backwards), 1 are not; 7 on the stack and 4 of the loader "
        "left out; 0 gaps");
}
