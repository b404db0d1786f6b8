// Results read back, and what each format makes of them.
#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "monitor/report/protobuf.h"
#include "monitor/report/render.h"
#include "monitor/report/results.h"

using namespace tsomon::report;
using Json = nlohmann::json;

namespace {

// A violation of two units, as `check` has it, with a name that every format has to escape.
std::string violation(const std::string& file, const std::string& verdict = "definite") {
  return R"({"file":")" + file +
         R"(","events":9,"threads":2,"units":2,"property":"serializability","verdict":")" +
         verdict +
         R"(","complete":true,"violations":1,"cycle":[)"
         R"({"thread":"T1","label":"<inc> \"a\"","first":0,"last":4,"from":1,"to":6,"reason":"conflict","is_unit":true},)"
         R"({"thread":"T2","label":"inc","first":5,"last":8,"from":6,"to":3,"reason":"conflict & more","is_unit":true}],)"
         R"("witness":[{"issue":1},{"issue":6},{"commit":6},{"issue":3},{"commit":3}],"accesses":[)"
         R"({"event":1,"thread":"T1","operation":"load","variable":"counter","read":0,"location":"f a b.c:2","function":"f","file":"/src/a b.c","line":2},)"
         R"({"event":3,"thread":"T1","operation":"store","variable":"counter","written":1,"location":"a.c:3"},)"
         R"({"event":6,"thread":"T2","operation":"locked","name":"x|y","read":0,"written":1}],)"
         R"("fingerprint":"00ff","repair":"unit inc atomic","schema":1,"tool":"tsomon check"})"
         "\n";
}

Results read(const std::string& text) {
  std::istringstream lines(text);
  Results results;
  results.read(lines, "results.json");
  results.finish();
  return results;
}

template <typename Write>
std::string written(const Write& write, const Results& results) {
  std::ostringstream out;
  write(results, out);
  return out.str();
}

std::string sarif_of(const Results& results, const char* version) {
  std::ostringstream out;
  write_sarif(results, version, out);
  return out.str();
}

}  // namespace

TEST_CASE("a violation is read with its cycle, accesses and witness") {
  const Results results = read(violation("a.std"));
  REQUIRE(results.problems().empty());
  REQUIRE(results.findings().size() == 1);
  const Finding& finding = results.findings()[0];
  CHECK(finding.rule == "atomicity-violation");
  CHECK(finding.verdict == "definite");
  CHECK(finding.certain());
  CHECK(finding.cycle.size() == 2);
  REQUIRE(finding.accesses.size() == 3);
  CHECK(finding.accesses[0].what == "load counter = 0");
  CHECK(finding.accesses[1].place.file == "a.c");  // from the text alone
  CHECK(finding.accesses[1].place.line == 3);
  CHECK(finding.accesses[2].what == "locked x|y: 0, then 1");
  CHECK(finding.witness.size() == 5);
  CHECK(finding.witness[2].commit);
  REQUIRE(finding.place() != nullptr);
  CHECK(finding.place()->line == 2);
  CHECK(finding.inputs == std::vector<std::string>{"a.std"});
  REQUIRE(results.judged().size() == 1);
  CHECK(results.judged()[0].findings == 1);
}

TEST_CASE("one fingerprint is one finding, and certain ones come first") {
  std::string possible = violation("p.std", "possible");
  possible.replace(possible.find("00ff"), 4, "0101");
  const Results results =
      read(possible + violation("a.std") + violation("b.std") + violation("b.std"));
  REQUIRE(results.findings().size() == 2);
  CHECK(results.findings()[0].times == 3);
  CHECK(results.findings()[0].inputs == std::vector<std::string>{"a.std", "b.std"});
  CHECK(results.findings()[1].verdict == "possible");
  CHECK(results.judged().size() == 4);
}

TEST_CASE("what runs beside is passed over, findings of a run get the program's name") {
  std::string finding = violation("x");
  finding.replace(finding.find(R"("file":"x")"), 10, R"("violation":1)");
  const Results results =
      read("hello from the program\n" + finding +
           R"({"file":"./prog","property":"serializability","verdict":"definite","complete":false,)"
           R"("notes":["events were lost"],"schema":1,"tool":"tsomon run"})");
  CHECK(results.problems().empty());
  REQUIRE(results.findings().size() == 1);
  CHECK(results.findings()[0].inputs == std::vector<std::string>{"./prog"});
  REQUIRE(results.judged().size() == 1);
  CHECK(results.judged()[0].findings == 1);
  CHECK_FALSE(results.judged()[0].complete);
  CHECK(results.judged()[0].notes == std::vector<std::string>{"events were lost"});
}

TEST_CASE("lines that are no results are problems, with their number; the rest is read") {
  const Results results = read("{\"a\":\n" + violation("a.std") +
                               "{\"schema\":1,\"tool\":\"tsomon doctor\",\"findings\":[]}\n{}\n");
  CHECK(results.findings().size() == 1);
  REQUIRE(results.problems().size() == 3);
  CHECK(results.problems()[0].find("results.json: line 1: ") == 0);
  CHECK(results.problems()[1].find("line 3: ") != std::string::npos);
  CHECK(results.problems()[1].find("tsomon doctor") != std::string::npos);
  CHECK(results.problems()[2].find("line 4: ") != std::string::npos);
  // Fields of another type are as if they were not there.
  CHECK(
      read(
          R"({"tool":"tsomon check","verdict":7,"cycle":{},"accesses":[1,{"event":"x","thread":3}],"witness":"w"})")
          .findings()
          .size() == 1);
}

TEST_CASE("predictions, explorations and histories are findings of their own rules") {
  const Results results = read(
      R"({"file":"t","kinds":["races"],"model":"sc","verdict":"predicted","complete":true,"races":[{"events":[1,2],"accesses":[{"event":1,"thread":"A","operation":"load","name":"x","location":"a:1"},{"event":2,"thread":"B","operation":"store","name":"x","location":"b:2"}],"fingerprint":"r","witness":[0,1,2]}],"deadlocks":[{"events":[],"accesses":[],"fingerprint":"d","witness":null,"kind":"lost-notification"}],"atomicity_violations":[],"tool":"tsomon predict"})"
      "\n"
      R"({"program":"p","model":"tso","executions":3,"complete":true,"findings":[{"kind":"assertion","schedule":"0,1","locations":["read e.cpp:33"],"text":"aborted","fingerprint":"e"}],"tool":"tsomon explore"})"
      "\n"
      R"({"file":"h.hist","property":"linearizability","verdict":"violation","complete":true,"object":"queue","minimal":[2,5],"minimal_operations":[{"process":"1","operation":"deq() -> 3"}],"fingerprint":"l","tool":"tsomon check"})"
      "\n");
  std::set<std::string> rules;
  for (const Finding& finding : results.findings()) {
    rules.insert(finding.rule);
    if (finding.rule == "data-race") {
      CHECK(finding.witness.size() == 2);  // of what is described
      CHECK(finding.verdict == "predicted");
    }
    if (finding.rule == "assertion") {
      CHECK(finding.replay == "0,1");
      REQUIRE(finding.place() != nullptr);
      CHECK(finding.place()->file == "e.cpp");
    }
    if (finding.rule == "not-linearizable") {
      REQUIRE(finding.places.size() == 2);
      CHECK(finding.places[1].line == 5);
    }
  }
  CHECK(rules == std::set<std::string>{"assertion", "data-race", "deadlock", "not-linearizable"});
  CHECK(results.judged()[1].verdict == "violation");
}

TEST_CASE("SARIF: every result has its rule, its place and an order of steps") {
  const Json log = Json::parse(sarif_of(read(violation("a.std")), "1.2"));
  CHECK(log["version"] == "2.1.0");
  const Json& run = log["runs"][0];
  CHECK(run["tool"]["driver"]["version"] == "1.2");
  CHECK(run["tool"]["driver"]["rules"][0]["id"] == "atomicity-violation");
  CHECK(run["invocations"][0]["executionSuccessful"] == true);
  const Json& result = run["results"][0];
  CHECK(result["ruleId"] == "atomicity-violation");
  CHECK(result["level"] == "error");
  CHECK(result["partialFingerprints"]["tsomon/v1"] == "00ff");
  const Json& where = result["locations"][0]["physicalLocation"];
  CHECK(where["artifactLocation"]["uri"] == "file:///src/a%20b.c");
  CHECK(where["region"]["startLine"] == 2);
  CHECK(result["relatedLocations"].size() == 3);
  std::set<int> order;
  for (const Json& thread : result["codeFlows"][0]["threadFlows"]) {
    for (const Json& step : thread["locations"]) {
      order.insert(step["executionOrder"].get<int>());
    }
  }
  CHECK(order == std::set<int>{1, 2, 3, 4, 5});
  CHECK(Json::parse(sarif_of(read(violation("a", "possible")),
                             "1"))["runs"][0]["results"][0]["level"] == "warning");
  CHECK(Json::parse(sarif_of(read("{\n"),
                             "1"))["runs"][0]["invocations"][0]["executionSuccessful"] == false);
}

TEST_CASE(
    "Perfetto: a process for each finding, a thread for each of its threads, arrows along the "
    "cycle") {
  const Json events = Json::parse(written(write_perfetto, read(violation("a.std"))))["traceEvents"];
  const auto count = [&](const char* phase) {
    return std::count_if(events.begin(), events.end(),
                         [&](const Json& event) { return event["ph"] == phase; });
  };
  CHECK(count("X") == 5 + 2);  // steps and units
  CHECK(count("s") == 2);
  CHECK(count("f") == 2);
  std::set<std::string> threads;
  for (const Json& event : events) {
    if (event["name"] == "thread_name") {
      threads.insert(event["args"]["name"].get<std::string>());
    }
    // A step lies in its unit.
    if (event["ph"] == "X" && event["name"] == "inc") {
      CHECK(event["ts"].get<int>() <= 12);
      CHECK(event["ts"].get<int>() + event["dur"].get<int>() >= 30);
    }
  }
  CHECK(threads == std::set<std::string>{"T1", "T2"});
}

// What comes of a whole trace: tests/reports/check_perfetto.
TEST_CASE(
    "protobuf: keys, varints, eight bytes, texts and messages, as the format's documents have "
    "them") {
  ProtobufMessage inner;
  inner.add_number(1, 150);
  CHECK(inner.bytes() == "\x08\x96\x01");
  ProtobufMessage message;
  message.add_message(3, inner);
  message.add_text(2, "testing");
  message.add_fixed(47, 1);
  message.add_number(16, 0);
  message.add_number(1, UINT64_MAX);
  CHECK(message.bytes() == std::string("\x1a\x03\x08\x96\x01"
                                       "\x12\x07testing"
                                       "\xf9\x02\x01\0\0\0\0\0\0\0"
                                       "\x80\x01\0"
                                       "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                       5 + 9 + 10 + 3 + 11));
}

TEST_CASE("HTML and DOT: names from outside stay names") {
  const Results results = read(violation("<script>alert(1)</script>"));
  const std::string html =
      written([](const Results& found, std::ostream& out) { write_html(found, {}, out); }, results);
  CHECK(html.find("<script>alert") == std::string::npos);
  CHECK(html.find("&lt;inc&gt; &quot;a&quot;") != std::string::npos);
  CHECK(html.find("#3 store counter = 1") != std::string::npos);
  CHECK(html.find("unit inc atomic") != std::string::npos);
  const std::string dot = written(write_dot, results);
  CHECK(dot.find("<inc> \\\"a\\\" of T1\\l") != std::string::npos);
  CHECK(dot.find("f1u0 -> f1u1") != std::string::npos);
  CHECK(dot.find("f1u1 -> f1u0") != std::string::npos);
  CHECK(written(write_text, results)
            .find("1. definite: Atomicity violation: <inc> \"a\" of T1, inc of T2\n") == 0);
}
