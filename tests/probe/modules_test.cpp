// Libraries that are loaded while the program runs: their code has names in the capture.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/probe/recorded_program.h"

using namespace tsomon;
using namespace tsomon::probe_tests;

TEST_CASE("a library that is loaded late is in the capture, also when it was unloaded") {
  for (const std::string& compiler : compilers()) {
    const std::string plugin = fmt::format("{}/{}/plugin", kPrograms, compiler);
    for (const std::string how : {"stays", "goes", "crashes", "iterates"}) {
      CAPTURE(compiler);
      CAPTURE(how);
      const Run result =
          run(compiler, fmt::format("loads_plugin {} {}", plugin, how), ":buffer=64K");
      CHECK(result.status == (how == "crashes" ? 134 : 0));
      CHECK(result.said.at("calls") == 1);
      const capture::Capture capture = read(result.path);
      const uint64_t function = result.said.at("function");
      CHECK(std::count_if(capture.modules.begin(), capture.modules.end(), [&](const auto& module) {
              return module.path == plugin && module.begin <= function && function < module.end;
            }) == 1);
      // What was there at the start is not written again.
      CHECK(std::count_if(capture.modules.begin(), capture.modules.end(), [](const auto& module) {
              return module.path.find("loads_plugin") != std::string::npos;
            }) == 1);
    }
  }
}
