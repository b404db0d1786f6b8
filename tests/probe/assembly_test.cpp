// Asm statements of instrumented programs: they do what they did, and what they access is recorded.
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

struct Said {
  std::map<std::string, std::string> results;
  std::map<std::string, std::string> events;
};

Said said_by(const std::string& path) {
  Said said;
  std::istringstream lines(text_of(path));
  for (std::string line; std::getline(lines, line);) {
    const bool events = line.rfind("events ", 0) == 0;
    const std::string text = events ? line.substr(7) : line;
    const std::string name = text.substr(0, text.find(' '));
    (events ? said.events : said.results)[name] =
        text.size() == name.size() ? "" : text.substr(name.size() + 1);
  }
  return said;
}

std::string value_text(const std::optional<uint64_t>& value, uint64_t arena) {
  return !value ? "-" : *value - arena < 256 ? "*" : fmt::format("{:x}", *value);
}

// As the program has it, of one unit.
std::string event_text(const Trace& trace, Event event, uint64_t arena) {
  EventBlock::drop_digests(event);
  if (event.kind() == EventKind::kFence) {
    return "m";
  }
  const bool locked = event.kind() == EventKind::kReadModifyWrite;
  return fmt::format("{} {} {} {} {}",
                     locked                              ? "x"
                     : event.kind() == EventKind::kWrite ? "w"
                                                         : "r",
                     event.address - arena, uint32_t{event.size},
                     value_text(trace.read_value(event), arena),
                     value_text(trace.write_value(event), arena));
}

std::map<std::string, std::string> recorded(const Trace& trace, uint64_t arena) {
  std::map<std::string, std::string> found;
  std::string unit;
  for (const Event& event : trace.events) {
    if (event.kind() == EventKind::kUnitBegin) {
      unit = trace.symbols.labels.text(static_cast<uint32_t>(event.address));
    } else if (event.kind() == EventKind::kUnitEnd) {
      unit.clear();
    } else if (!unit.empty() && (event.kind() == EventKind::kFence ||
                                 (is(event, kinds::kAccesses) && event.address - arena < 256))) {
      std::string& text = found[unit];
      text += (text.empty() ? "" : ", ") + event_text(trace, event, arena);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("asm statements do what they do without hooks, and are recorded") {
  for (const std::string& compiler : compilers()) {
    const Said plain = said_by([&] {
      const Run result = run(compiler, "assembly-plain", "");
      return result.path + ".out";
    }());
    CHECK(plain.results.size() > 50);
    for (const std::string program : {"assembly", "assembly-O0", "assembly-O3"}) {
      for (const std::string options : {"", ":stamp_max_age=0", ":accesses=sets"}) {
        CAPTURE(compiler);
        CAPTURE(program);
        CAPTURE(options);
        const Run result = run(compiler, program, options);
        REQUIRE(result.status == 0);
        const Said said = said_by(result.path + ".out");
        const capture::Capture capture = read(result.path);
        auto found =
            recorded(capture.trace, std::strtoull(said.results.at("arena").c_str(), nullptr, 16));
        for (const auto& [name, text] : plain.results) {
          CAPTURE(name);
          CHECK((name == "arena" || said.results.at(name) == text));
          if (name != "arena" && options != ":accesses=sets") {
            CHECK(found[name] == said.events.at(name));
          }
        }
      }
    }
  }
}
