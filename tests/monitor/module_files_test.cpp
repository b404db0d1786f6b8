// Code that another tool recorded, found on this machine by path, build-id and sysroot.

#include "monitor/process/module_files.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/process/symbols.h"
#include "tests/monitor/folder.h"

using namespace tsomon;

namespace {

[[gnu::noinline]] int function_to_find(int value) {
  asm volatile("" : "+r"(value));
  return value + 1;
}

// The code of this program, as /proc/self/maps has it.
perf::CodeMapping own_code() {
  const auto pc = reinterpret_cast<uint64_t>(&function_to_find);
  std::ifstream maps("/proc/self/maps");
  perf::CodeMapping mapping;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uint64_t end = 0;
    char dash = 0;
    std::string word;
    fields >> std::hex >> mapping.begin >> dash >> end >> word >> mapping.file_offset;
    fields >> word >> word >> mapping.path;
    mapping.size = end - mapping.begin;
    if (mapping.begin <= pc && pc < end) {
      break;
    }
  }
  return mapping;
}

}  // namespace

TEST_CASE("module files: addresses are as the file counts them") {
  CHECK(function_to_find(1) == 2);
  const auto modules = find_modules({own_code()}, {});
  REQUIRE(modules.size() == 1);
  CHECK_FALSE(modules[0].build_id.empty());
  Symboliser symboliser(modules);
  const std::string text = symboliser.text(reinterpret_cast<uint64_t>(&function_to_find) + 1);
  CHECK(text.find("function_to_find") != std::string::npos);
}

TEST_CASE("module files: a sysroot, a file that was replaced, and no file") {
  const testing::Folder folder;
  const std::string mark = folder.write("mark", "");
  const std::string sysroot = mark.substr(0, mark.rfind('/'));
  perf::CodeMapping code = own_code();
  std::filesystem::create_directories(sysroot + code.path.substr(0, code.path.rfind('/')));
  std::filesystem::create_symlink(code.path, sysroot + code.path);
  CHECK(find_modules({code}, {.sysroot = sysroot})[0].file == sysroot + code.path);
  CHECK(find_modules({code}, {})[0].file == code.path);
  code.build_id = std::string(20, 'x');
  const capture::Module replaced = find_modules({code}, {})[0];
  CHECK(replaced.file.empty());
  CHECK(replaced.build_id == code.build_id);
  Symboliser symboliser({replaced});
  CHECK(symboliser.text(code.begin + 17).find("+0x") != std::string::npos);
  CHECK(symboliser.warnings().size() == 1);
  code.path = "[vdso]";
  CHECK(find_modules({code}, {})[0].file.empty());
}
