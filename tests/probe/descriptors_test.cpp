// Whatever the program does with descriptors, nothing of the capture gets into its files.
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

namespace {

constexpr uint64_t kUnits = 4 * 200'000;

uint64_t units_of(const Trace& trace) {
  return static_cast<uint64_t>(count_kinds(trace).at(EventKind::kUnitBegin));
}

}  // namespace

TEST_CASE("a program that closes or replaces all descriptors keeps its files and its recording") {
  const std::string database = kPrograms + "/descriptors.database";
  for (const std::string& compiler : compilers()) {
    for (const std::string before : {"", "apart_refused "}) {
      for (const std::string way : {"none", "closefrom", "close_range", "close", "dup2"}) {
        CAPTURE(compiler);
        CAPTURE(before);
        CAPTURE(way);
        std::filesystem::remove(database);
        const Run result = run(compiler, "descriptors " + before + way + " " + database, "");
        // It also says whether it got the descriptor that it gets without a recorder.
        CHECK(result.status == 0);
        CHECK(text_of(database) == "precious\n");
        CHECK(units_of(read(result.path).trace) == kUnits);
        if (compiler != "g++") {
          break;
        }
      }
    }
  }
}

TEST_CASE("a capture that was renamed is written on, or its loss is said") {
  const std::string database = kPrograms + "/descriptors.database";
  const std::string path = kPrograms + "/g++/descriptors.capture";
  for (const bool apart : {true, false}) {
    CAPTURE(apart);
    const Run result = run("g++",
                           std::string("descriptors ") + (apart ? "" : "apart_refused ") +
                               "close " + database + " " + path,
                           "");
    CHECK(result.status == 0);
    CHECK(text_of(database) == "precious\n");
    CHECK_FALSE(std::filesystem::exists(path));
    const capture::Capture capture = read_any(path + ".moved");
    CHECK(capture.trace.complete == apart);
    if (!apart) {
      CHECK(units_of(capture.trace) < kUnits);
    }
    std::filesystem::remove(path + ".moved");
  }
}
