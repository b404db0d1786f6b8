// Times and shares as people write them.
#include "tso/support/quantity.h"

#include <chrono>
#include <string>

#include <doctest/doctest.h>

using namespace tsomon;
using std::chrono::microseconds;

TEST_CASE("times") {
  CHECK(parse_duration("50ms") == microseconds(50'000));
  CHECK(parse_duration("0.5s") == microseconds(500'000));
  CHECK(parse_duration("2") == microseconds(2'000'000));
  CHECK(parse_duration("1m") == microseconds(60'000'000));
  CHECK(parse_duration("1h") == microseconds(3'600'000'000));
  CHECK(parse_duration("365d") == microseconds(365 * 86'400'000'000));
  CHECK(parse_duration("1us") == microseconds(1));
  for (const char* const wrong : {"", "ms", "0", "0.1us", "-1s", "+1s", "1e3s", "1 s", " 1s", "1s ",
                                  "1.2.3s", "1w", "0x1s", "nan", "inf", ".", "99999999h"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_duration(wrong));
  }
}

TEST_CASE("shares") {
  CHECK(*parse_share("1%") == doctest::Approx(0.01));
  CHECK(*parse_share("100%") == doctest::Approx(1));
  CHECK(*parse_share("0.25") == doctest::Approx(0.25));
  CHECK(*parse_share("1") == doctest::Approx(1));
  for (const char* const wrong :
       {"", "%", "0", "0%", "2", "101%", "-1%", "1%%", "1 %", "1e-2", "nan", "half"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_share(wrong));
  }
}
