// What reports show of a finding, in text and in JSON.
#include "monitor/findings/reported_cycle.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/std/reader.h"
#include "decoders/std/writer.h"
#include "monitor/findings/cycle_text.h"
#include "monitor/findings/result_json.h"
#include "monitor/judge/check.h"
#include "monitor/judge/watch.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// A lost update, with a store of a third thread that is read, and names from `name`.
template <typename Name>
Trace lost_update(Name name) {
  Trace trace;
  Symbols& symbols = trace.symbols;
  std::vector<ThreadId> threads;
  for (int i = 0; i < 2; ++i) {
    threads.push_back(symbols.threads.intern(name() + std::to_string(i)));
  }
  const uint32_t label = symbols.labels.intern(name());
  const uint32_t x = symbols.names.intern(name());
  int64_t time = 0;
  const auto add = [&](EventKind kind, ThreadId thread, uint64_t address) {
    Event event;
    event.set_kind(kind);
    event.thread = thread;
    event.address = address;
    event.location = symbols.intern_location(name());
    trace.add(event, time, time);
    ++time;
  };
  for (const ThreadId thread : threads) {
    add(EventKind::kUnitBegin, thread, label);
    add(EventKind::kRead, thread, x);
  }
  for (const ThreadId thread : threads) {
    add(EventKind::kWrite, thread, x);
    add(EventKind::kFence, thread, 0);
    add(EventKind::kUnitEnd, thread, 0);
  }
  return trace;
}

std::string text_of(const Trace& trace, const std::string& input) {
  const auto report = check_trace(trace, {});
  REQUIRE(report);
  REQUIRE(report->findings.size() == 1);
  return report_text(input, trace.symbols, *report);
}

nlohmann::ordered_json json_of(const std::string& text) {
  const auto trace = read_std_text(text, "test");
  REQUIRE(trace);
  const auto report = check_trace(*trace, {});
  REQUIRE(report);
  return report_json("test", trace->symbols, *report);
}

TEST_CASE("no name forges a line or a control character, whatever its bytes are") {
  std::mt19937 random(11);
  const std::string plain = text_of(lost_update([] { return std::string("n"); }), "input");
  for (int round = 0; round < 300; ++round) {
    const auto bytes = [&] {
      std::string text = "n";
      for (size_t i = random() % 12; i > 0; --i) {
        static constexpr std::string_view kBytes = "\n\r\t\x1b\x07\x7f\xc2\x9b\x85|;#\"\\a]";
        text += kBytes[random() % kBytes.size()];
      }
      return text;
    };
    const Trace trace = lost_update(bytes);
    const std::string text = text_of(trace, bytes());
    REQUIRE(lines_of(text) == lines_of(plain));
    REQUIRE(printable_lines(text) == text);
    REQUIRE(text.find('\t') == std::string::npos);
    // What `script` writes is as safe, and reads as the same events.
    const std::string written = write_std(trace);
    REQUIRE(printable_lines(written) == written);
    const auto again = read_std_text(written, "again");
    REQUIRE(again);
    REQUIRE(again->events.size() == trace.events.size());
    REQUIRE(lines_of(text_of(*again, "input")) == lines_of(plain));
    // JSON has the names as they are, and no such byte either.
    const auto report = check_trace(trace, {});
    const std::string line =
        json_line(report_json(bytes(), trace.symbols, *report), "tsomon check");
    REQUIRE(printable(line) == line);
    REQUIRE(nlohmann::json::parse(line).at("cycle").size() == 2);
  }
}

TEST_CASE("JSON says of every access what text says") {
  const auto json = json_of(
      "A|begin(inc)|\nA|r(x=0)|a.c:1\nB|begin(inc)|\nB|r(x=0)|a.c:1\nA|w(x=1)|a.c:2\nA|fence|\n"
      "A|end|\nB|w(x=2)|a.c:2\n");
  REQUIRE(json.at("cycle").size() == 2);
  const auto& step = json.at("cycle")[0];
  CHECK(step.at("is_unit") == true);
  CHECK(step.at("edge") == "conflict");
  CHECK(step.at("reason").get<std::string>().find("conflict") == 0);
  std::map<uint64_t, nlohmann::ordered_json> access;
  for (const auto& each : json.at("accesses")) {
    access[each.at("event").get<uint64_t>()] = each;
  }
  REQUIRE(access.count(7) == 1);
  CHECK(access[7].at("thread") == "B");
  CHECK(access[7].at("operation") == "store");
  CHECK(access[7].at("name") == "x");
  CHECK(access[7].at("written") == 2);
  CHECK(access[7].at("location") == "a.c:2");
  CHECK(access[1].at("read") == 0);
  bool unfinished = false;
  for (const auto& each : json.at("cycle")) {
    for (const auto& event : each.at("accesses")) {
      CHECK(access.count(event.get<uint64_t>()) == 1);
    }
    unfinished = unfinished || each.at("finished") == false;
  }
  CHECK(unfinished);
}

TEST_CASE("an access has the calls that its code was inlined for") {
  ReportedAccess access;
  access.operand = "x";
  access.place.text = "add bank.cpp:51";
  CHECK_FALSE(access_json(access).contains("called_from"));
  access.place.callers = {{"move", "src/bank.cpp", 60}, {"transfer\n", "", 0}};
  CHECK(access_line(access) ==
        "#0      load x                             add bank.cpp:51 < move bank.cpp:60 < "
        "transfer\\x0a");
  const auto calls = access_json(access)["called_from"];
  REQUIRE(calls.size() == 2);
  CHECK(calls[0]["location"] == "move bank.cpp:60");
  CHECK(calls[0]["function"] == "move");
  CHECK(calls[0]["file"] == "src/bank.cpp");
  CHECK(calls[0]["line"] == 60);
  CHECK_FALSE(calls[1].contains("file"));
  access.calls = {{{"step", "s.cpp", 4}, {"step", "s.cpp", 5}, {"other", "s.cpp", 9}},
                  {{"main", "main.cpp", 1}}};
  CHECK(access_line(access).substr(80) ==
        "transfer\\x0a <- step s.cpp:4 or :5 or other s.cpp:9 <- main main.cpp:1");
  const auto ways = access_json(access)["calls"];
  REQUIRE(ways.size() == 2);
  CHECK(ways[0].size() == 3);
  CHECK(ways[0][2]["location"] == "other s.cpp:9");
  access.calls = {};
  access.place.callers.resize(9, {"main", "main.cpp", 1});
  const std::string line = access_line(access);
  CHECK(line.substr(line.size() - 24) == " < main main.cpp:1 < ...");
}

TEST_CASE("a fingerprint is of the places, not of events, threads, values or addresses") {
  const auto print = [](const std::string& text) {
    return json_of(text).at("fingerprint").get<std::string>();
  };
  const auto update = [](const std::string& a, const std::string& b, const std::string& where,
                         const std::string& line) {
    return fmt::format(
        "{0}|begin(inc)|\n{0}|r({2})|{3}\n{1}|begin(inc)|\n{1}|r({2})|{3}\n{0}|w({2})|b.c:2\n"
        "{0}|fence|\n{0}|end|\n{1}|w({2})|b.c:2\n{1}|end|\n",
        a, b, where, line);
  };
  const std::string one = print(update("A", "B", "x", "a.c:1"));
  CHECK(one.size() == 16);
  CHECK(print(update("P", "Q", "x", "a.c:1")) == one);
  CHECK(print("C|r(z)|\n" + update("B", "A", "x", "a.c:1")) == one);
  CHECK(print(update("A", "B", "y", "a.c:1")) != one);
  CHECK(print(update("A", "B", "x", "a.c:7")) != one);
  CHECK(print(update("A", "B", "0x10+4", "a.c:1")) == print(update("A", "B", "0x50+4", "a.c:1")));
}

TEST_CASE("a fingerprint does not depend on where the cycle begins") {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    ReportedCycle cycle;
    const size_t size = 1 + random() % 9;
    for (size_t i = 0; i < size; ++i) {
      ReportedAccess access;
      access.place.text = std::string(1, static_cast<char>('a' + random() % 2));
      cycle.accesses.push_back(access);
      ReportedStep step;
      step.from = i;
      step.to = (i + 1) % size;
      cycle.steps.push_back(step);
    }
    const std::string print = fingerprint(cycle);
    for (size_t turn = 0; turn < size; ++turn) {
      std::rotate(cycle.steps.begin(), cycle.steps.begin() + 1, cycle.steps.end());
      REQUIRE(fingerprint(cycle) == print);
    }
  }
}

TEST_CASE("places of code are build-id, function and line") {
  ReportedCycle cycle;
  ReportedAccess access;
  access.place = {"f a.cpp:3", "/bin/a", "", "beef", "f", "/src/a.cpp", 3, 0x1004, {}, {}};
  access.operand = "0x10+4";
  access.address = 0x10;
  cycle.accesses = {access};
  ReportedStep step;
  step.label = "put";
  cycle.steps = {step};
  const std::string print = fingerprint(cycle);
  cycle.steps[0].label = "get";
  cycle.accesses[0].place.module = "/opt/a";
  cycle.accesses[0].place.file = "/home/a.cpp";
  cycle.accesses[0].place.text = "f b.cpp:3";
  cycle.accesses[0].kind = EventKind::kWrite;
  CHECK(fingerprint(cycle) == print);
  cycle.accesses[0].place.line = 4;
  CHECK(fingerprint(cycle) != print);
  cycle.accesses[0].place.line = 3;
  cycle.accesses[0].place.build_id = "dead";
  CHECK(fingerprint(cycle) != print);
}

// Each unit reads what the one before stores: one cycle through all of them.
std::string ring(int units) {
  std::string text;
  for (int i = 0; i < units; ++i) {
    text += fmt::format("T{0}|begin(u)|\nT{0}|r(x{0})|\n", i);
  }
  for (int i = 0; i < units; ++i) {
    text += fmt::format("T{0}|w(x{1})|\nT{0}|fence|\nT{0}|end|\n", i, (i + 1) % units);
  }
  return text;
}

TEST_CASE("text folds a cycle of hundreds of units, JSON has all of it") {
  const auto trace = read_std_text(ring(400), "test");
  REQUIRE(trace);
  const auto report = check_trace(*trace, {});
  REQUIRE(report);
  REQUIRE(report->findings.size() == 1);
  const std::string text = report_text("test", trace->symbols, *report);
  CHECK(lines_of(text) < 250);
  CHECK(text.find("  cycle of 400 units:\n") != std::string::npos);
  CHECK(text.find("  ... 390 more units (--verbose and --output json have all)\n") !=
        std::string::npos);
  CHECK(text.find("  [400] ") != std::string::npos);
  const auto json = report_json("test", trace->symbols, *report);
  CHECK(json.at("cycle").size() == 400);

  std::vector<ReportedFinding> found;
  Watch watch(trace->symbols, {}, [&](const ReportedFinding& each) { found.push_back(each); });
  watch.add(*trace);
  watch.finish();
  REQUIRE(found.size() == 1);
  CHECK(lines_of(found[0].text()) < 140);  // 80 of them of the witness
  CHECK(found[0].json().at("fingerprint") == json.at("fingerprint"));
}

TEST_CASE("errors say in fields what was expected and found, and where") {
  const auto json =
      error_json({ErrorKind::kMalformed, "a.std", "line 12", "expected a value, found 'x'"});
  CHECK(json.at("line") == 12);
  CHECK(json.at("expected") == "a value");
  CHECK(json.at("found") == "'x'");
  CHECK(json.at("message") == "expected a value, found 'x'");
  CHECK(error_json({ErrorKind::kMalformed, "", "byte 4096", "no"}).at("offset") == 4096);
  CHECK(error_json({ErrorKind::kMalformed, "", "bytes 0..9", "no"}).at("where") == "bytes 0..9");
}

TEST_CASE("an access to the heap is named by where its object was allocated") {
  HeapObjects objects;
  Event event;
  const auto change = [&](EventKind kind, uint64_t address, uint32_t size, uint32_t location,
                          uint64_t number) {
    event.set_kind(kind);
    event.address = address;
    event.size = size & Event::kMaxSize;
    event.location = location;
    objects.add(event, number);
  };
  change(EventKind::kAllocate, 0x1000, 64, 1, 10);
  change(EventKind::kFree, 0x1000, 0, 0, 20);
  change(EventKind::kAllocate, 0x1020, 16, 2, 30);
  REQUIRE(objects.find(0x1028, 15));
  CHECK(objects.find(0x1028, 15)->location == 1);
  CHECK(objects.find(0x1028, 15)->offset == 0x28);
  CHECK_FALSE(objects.find(0x1028, 25));
  REQUIRE(objects.find(0x1028, 35));
  CHECK(objects.find(0x1028, 35)->location == 2);
  CHECK(objects.find(0x1028, 35)->offset == 8);
  CHECK_FALSE(objects.find(0x1030, 35));
  CHECK(object_name("make a.cpp:3", 8) == "object(make a.cpp:3)+0x8");
}

}  // namespace
}  // namespace tsomon
