#include <string>

#include "tests/probe/recorded_program.h"
#include "tso/model/cancelled_units.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

// Units as (w), cancelled ones as [w!.
std::string shape(const Trace& trace) {
  std::string text;
  for (const Event& event : trace.events) {
    text += event.kind() == EventKind::kUnitBegin ? "(" : "";
    text += event.kind() == kCancelledBegin ? "[" : "";
    text += event.kind() == EventKind::kUnitEnd ? ")" : "";
    text += event.kind() == kUnitCancel ? "!" : "";
    text += event.kind() == EventKind::kWrite ? "w" : "";
  }
  return text;
}

}  // namespace

TEST_CASE("a cancelled unit is none, and the end of its scope ends no other") {
  const std::string scopes = "[w!w(w)([w!ww)[![w!(w)";
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run plain = run(compiler, "cancels", "");
    REQUIRE(plain.status == 0);
    const capture::Capture capture = read(plain.path);
    CHECK(capture.trace.complete);
    CHECK(capture.may_cancel);
    CHECK(shape(capture.trace) == scopes + "[w!w");

    const Run function = run(compiler, "cancels", ":unit=in_function");
    REQUIRE(function.status == 0);
    CHECK(shape(read(function.path).trace) == scopes + "([w!w)");
  }
}

TEST_CASE("the capture says whether the program can cancel units") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    CHECK(!read(run(compiler, "sets", "").path).may_cancel);
    CHECK(read(run(compiler, "sets", ":cancels=1").path).may_cancel);
  }
}
