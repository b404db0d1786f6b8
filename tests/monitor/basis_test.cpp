// What a clean verdict needs to rest on.
#include "monitor/findings/basis.h"

#include <string>

#include <doctest/doctest.h>

#include "decoders/std/reader.h"
#include "monitor/check/check_input.h"
#include "monitor/judge/watch.h"
#include "monitor/live/monitor.h"
#include "tests/monitor/folder.h"
#include "tso/model/cancelled_units.h"

namespace tsomon {
namespace {

Basis basis_of_text(std::string_view text, BasisSource source, Selection selection = {}) {
  auto trace = read_std_text(text, "test");
  REQUIRE(trace);
  resolve_cancelled_units(*trace, false);
  EventCount count;
  count.add(*trace);
  return basis_of(count, trace->symbols, selection, source);
}

constexpr const char* kSingletons = "A|w(x)|\nB|r(x)|\nA|fence|\n";
constexpr const char* kSmallUnits =
    "A|begin(u)|\nA|w(x)|\nA|end|\nB|begin(v)|\nB|acq(l)|\nB|rel(l)|\nB|end|\n";
constexpr const char* kLarger =
    "A|begin(u)|\nA|r(x)|\nA|begin(v)|\nA|w(x)|\nA|end|\nA|end|\nB|r(x)|\n";

TEST_CASE("units, their labels and their accesses are counted") {
  const Basis small = basis_of_text(kSmallUnits, BasisSource::kProbe);
  CHECK(small.declared_units == 2);
  CHECK(small.labels == 2);
  CHECK(small.larger_units == 0);  // locks are seen in code that is not instrumented, too
  CHECK(small.accesses == 1);
  CHECK(small.matter == 3);
  const Basis larger = basis_of_text(kLarger, BasisSource::kProbe);
  CHECK(larger.declared_units == 1);  // the outermost one
  CHECK(larger.labels == 1);
  CHECK(larger.larger_units == 1);
  CHECK(larger.accesses == 3);
  // A wait splits the unit: neither part has two accesses.
  CHECK(basis_of_text("A|begin(u)|\nA|r(x)|\nA|wait(c)|\nA|w(x)|\nA|end|\n", BasisSource::kProbe)
            .larger_units == 0);
}

TEST_CASE(
    "a recording needs a unit of two accesses, robustness an access, a written trace an event") {
  for (const BasisSource source :
       {BasisSource::kProbe, BasisSource::kAttached, BasisSource::kPerf, BasisSource::kFed}) {
    CHECK(shortfalls(basis_of_text(kSingletons, source), true).size() == 1);
    CHECK(shortfalls(basis_of_text(kSmallUnits, source), true).size() == 1);
    CHECK(shortfalls(basis_of_text(kLarger, source), true).empty());
    CHECK(shortfalls(basis_of_text(kSingletons, source), false).empty());
    CHECK(shortfalls(basis_of_text("A|acq(l)|\nA|rel(l)|\n", source), false).size() == 1);
    Basis nothing;
    nothing.source = source;
    CHECK(shortfalls(nothing, true).size() == 1);
    for (const Shortfall& each : shortfalls(nothing, true)) {
      CHECK_FALSE(each.reason.empty());
      CHECK_FALSE(each.remedy.empty());
    }
  }
  CHECK(shortfalls(basis_of_text(kSingletons, BasisSource::kWritten), true).empty());
  CHECK(shortfalls(basis_of_text("A|begin|\nA|end|\n", BasisSource::kWritten), true).size() == 1);
  CHECK(shortfalls(Basis{}, false).size() == 1);
}

TEST_CASE("accesses=sets needs a set, and an access to one") {
  Selection sets;
  sets.only_sets = true;
  const auto reason = [&](std::string_view text) {
    const auto found = shortfalls(basis_of_text(text, BasisSource::kProbe, sets), true);
    return found.empty() ? std::string() : found.front().reason;
  };
  CHECK(reason("A|begin|\nA|fence|\nA|end|\n").find("no set is declared") != std::string::npos);
  CHECK(reason("-|set(s;x)|\nA|begin|\nA|fence|\nA|end|\n").find("no access to a declared set") !=
        std::string::npos);
  CHECK(reason("-|set(s;x)|\nA|begin|\nA|r(x)|\nA|w(x)|\nA|end|\n").empty());
}

TEST_CASE("cancelled units are none to rest on") {
  const Basis cancelled =
      basis_of_text("A|begin(u)|\nA|r(x)|\nA|r(y)|\nA|cancel|\nB|w(x)|\n", BasisSource::kProbe);
  CHECK(cancelled.declared_units == 0);
  CHECK(cancelled.larger_units == 0);
  CHECK(cancelled.labels == 0);
  CHECK(cancelled.cancelled_units == 1);
  CHECK(cancelled.accesses == 3);
  REQUIRE(shortfalls(cancelled, true).size() == 1);
  CHECK(shortfalls(cancelled, true).front().reason ==
        "every unit was cancelled, or did not end (1 unit)");
  CHECK(shortfalls(cancelled, false).empty());
  // Of a cancelled attempt the accesses are those of the unit around.
  const Basis around = basis_of_text(
      "A|begin(u)|\nA|r(x)|\nA|begin(v)|\nA|r(y)|\nA|cancel|\nA|end|\n", BasisSource::kProbe);
  CHECK(around.declared_units == 1);
  CHECK(around.larger_units == 1);
  CHECK(around.cancelled_units == 1);
  CHECK(basis_text(around).find("; 1 unit cancelled") != std::string::npos);
  CHECK(shortfalls(around, true).empty());
  CHECK(basis_text(basis_of_text(kLarger, BasisSource::kProbe)).find("cancelled") ==
        std::string::npos);
}

TEST_CASE("who knows more of why nothing was seen says it, once") {
  Basis nothing;
  nothing.source = BasisSource::kAttached;
  nothing.no_event = Shortfall{"no probe was hit", "attach for longer"};
  REQUIRE(shortfalls(nothing, true).size() == 1);
  CHECK(shortfalls(nothing, true).front().reason == "no probe was hit");
  nothing.matter = 1;
  nothing.accesses = 1;
  CHECK(shortfalls(nothing, true).front().reason != "no probe was hit");
}

TEST_CASE("a check says so, for every property") {
  const testing::Folder folder;
  const auto judged = [&](const std::string& text, Property property) {
    const std::string path = folder.write("t.std", text);
    CheckOptions options;
    options.property = property;
    const auto checked = check_input(path, InputFormat::kAuto, options);
    REQUIRE(checked);
    const std::string shown = report_text("t", checked->symbols, checked->report);
    CHECK((std::string(checked->report.verdict_name()) == "inconclusive") ==
          (shown.find("  remedy: ") != std::string::npos));
    return std::string(checked->report.verdict_name());
  };
  const std::string recorded = "-|recorded()|\n";
  for (const Property property :
       {Property::kSerializability, Property::kScSerializability, Property::kAtomicSets}) {
    CHECK(judged(recorded + kSingletons, property) == "inconclusive");
    CHECK(judged(recorded + kSmallUnits, property) == "inconclusive");
    CHECK(judged(recorded + kLarger, property) == "serializable");
    CHECK(judged(kSingletons, property) == "serializable");
    const std::string cancelled = "A|begin(u)|\nA|r(x)|\nA|w(x)|\nA|cancel|\nB|r(x)|\n";
    CHECK(judged(recorded + cancelled, property) == "inconclusive");
    CHECK(judged(cancelled, property) == "serializable");
  }
  CHECK(judged(recorded + kSingletons, Property::kRobustness) == "robust");
  CHECK(judged(recorded + "A|acq(l)|\nA|rel(l)|\n", Property::kRobustness) == "inconclusive");
  // A violation is one, whatever it rests on.
  CHECK(judged(recorded + "A|begin|\nA|r(x)|\nB|w(x)|\nB|fence|\nA|w(x)|\nA|end|\n",
               Property::kSerializability) == "definite");
}

TEST_CASE("a watch and an embedded monitor say so") {
  const auto judged = [](std::string_view text, BasisSource source) {
    const auto trace = read_std_text(text, "test");
    REQUIRE(trace);
    WatchOptions options;
    options.source = source;
    Watch watch(trace->symbols, options, [](const ReportedFinding&) {});
    watch.add(*trace);
    watch.finish();
    return watch.summary().verdict();
  };
  CHECK(judged("A|begin|\nA|end|\n", BasisSource::kAttached) == Verdict::kInconclusive);
  CHECK(judged(kSingletons, BasisSource::kProbe) == Verdict::kInconclusive);
  CHECK(judged(kLarger, BasisSource::kProbe) == Verdict::kClean);

  const auto fed = [](bool unit) {
    Monitor monitor({});
    {
      Monitor::Thread thread = monitor.thread("t");
      int x = 0;
      if (unit) {
        thread.begin("u");
      }
      thread.read(&x, sizeof x);
      thread.write(&x, sizeof x);
      if (unit) {
        thread.end();
      }
    }
    return monitor.finish();
  };
  CHECK(fed(true).verdict == Monitor::Verdict::kClean);
  CHECK(fed(true).larger_units == 1);
  CHECK(fed(false).verdict == Monitor::Verdict::kInconclusive);
  CHECK(fed(false).why.find("no unit") != std::string::npos);
  CHECK(fed(false).json.find("\"verdict\":\"inconclusive\"") != std::string::npos);
}

}  // namespace
}  // namespace tsomon
