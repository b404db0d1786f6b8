// Accesses that a compiler does without a hook of its instrumentation, or hands to the C library.
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

struct Bytes {
  std::set<uint64_t> loads;
  std::set<uint64_t> stores;
  bool operator==(const Bytes&) const = default;
};

void add(std::set<uint64_t>* bytes, uint64_t begin, uint64_t size) {
  for (uint64_t at = begin; at < begin + size; ++at) {
    bytes->insert(at);
  }
}

std::string ranges_text(const std::set<uint64_t>& bytes) {
  std::string text;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const uint64_t begin = *at;
    uint64_t end = begin;
    for (; at != bytes.end() && *at == end; ++at) {
      ++end;
    }
    text.append(" ").append(std::to_string(begin)).append("+").append(std::to_string(end - begin));
  }
  return text;
}

struct Expected {
  uint64_t arena = 0;
  uint64_t size = 0;
  std::map<std::string, Bytes> cases;
};

Expected expected_of(const Run& run) {
  Expected expected;
  std::istringstream lines(text_of(run.path + ".out"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "arena") {
      words >> expected.arena >> expected.size;
      continue;
    }
    Bytes& bytes = expected.cases[name];
    for (std::string kind; words >> kind;) {
      uint64_t begin = 0;
      uint64_t size = 0;
      words >> begin >> size;
      add(kind == "r" ? &bytes.loads : &bytes.stores, begin, size);
    }
  }
  return expected;
}

std::map<std::string, Bytes> recorded(const Trace& trace, const Expected& expected) {
  std::map<std::string, Bytes> found;
  std::map<uint32_t, std::string> open;
  for (const Event& event : trace.events) {
    if (event.kind() == EventKind::kUnitBegin) {
      open[event.thread] = trace.symbols.labels.text(static_cast<uint32_t>(event.address));
    } else if (event.kind() == EventKind::kUnitEnd) {
      open.erase(event.thread);
    } else if (is(event, kinds::kAccesses) && open.count(event.thread) != 0 &&
               event.address - expected.arena < expected.size) {
      Bytes& bytes = found[open[event.thread]];
      add(event.kind() == EventKind::kWrite ? &bytes.stores : &bytes.loads,
          event.address - expected.arena, event.size);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("accesses that compilers expand, make of loops and hand to the C library are recorded") {
  for (const std::string& compiler : compilers()) {
    for (const std::string program : {"hidden-O0", "hidden-O1", "hidden-O2", "hidden-O3",
                                      "hidden_c-O0", "hidden_c-O2", "hidden-checked"}) {
      CAPTURE(compiler);
      CAPTURE(program);
      const Run result = run(compiler, program, "");
      CHECK(result.status == 0);
      const Expected expected = expected_of(result);
      CHECK(expected.cases.size() > 60);
      const capture::Capture capture = read(result.path);
      std::map<std::string, Bytes> found = recorded(capture.trace, expected);
      for (const auto& [name, bytes] : expected.cases) {
        CAPTURE(name);
        // A pointer to a table of virtual functions that is stored over itself is a load.
        const std::string loads = ranges_text(found[name].loads);
        CHECK_MESSAGE(
            (loads == ranges_text(bytes.loads) || (name == "construct_virtual" && loads == " 0+8")),
            "loads");
        CHECK_MESSAGE(ranges_text(found[name].stores) == ranges_text(bytes.stores), "stores");
      }
    }
  }
}

TEST_CASE("a program's own functions that have names of the C library's are its own") {
  for (const std::string& compiler : compilers()) {
    CAPTURE(compiler);
    const Run result = run(compiler, "own_strings", "");
    CHECK(result.status == 0);
    const capture::Capture capture = read(result.path);
    std::set<uint64_t> stored;
    for (const Event& event : capture.trace.events) {
      if (event.kind() == EventKind::kWrite && event.address - result.said.at("room") < 8) {
        add(&stored, event.address - result.said.at("room"), event.size);
      }
    }
    CHECK(ranges_text(stored) == " 0+8");
  }
}
