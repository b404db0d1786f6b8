// Code that another tool recorded, found on this machine by path, build-id and sysroot.

#include "monitor/process/module_files.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "decoders/pack/archive.h"
#include "monitor/process/packed_files.h"
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
  FileSearch there;
  there.sysroot = sysroot;
  CHECK(find_modules({code}, there)[0].file == sysroot + code.path);
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

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A pack with such members beside the two that every pack has.
std::string pack_with(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string bytes;
  pack::ArchiveWriter writer([&](std::string_view piece) {
    bytes += piece;
    return Result<void>();
  });
  REQUIRE(writer.add(kPackManifest,
                     R"({"schema":1,"sources":[{"path":"/a.cpp","member":"sources/0"},)"
                     R"({"path":"/b.cpp","member":"manifest.json"},7,{"path":8}]})",
                     0));
  REQUIRE(writer.add(kPackRecording, "recorded", 0));
  for (const auto& [name, text] : members) {
    REQUIRE(writer.add(name, text, 0));
  }
  REQUIRE(writer.finish());
  return bytes;
}

std::shared_ptr<const PackedFiles> files_of(const std::string& pack) {
  auto unpacked = unpack(pack);
  REQUIRE(unpacked);
  return unpacked->files;
}

}  // namespace

TEST_CASE("module files: those of a pack, with the build-id that was recorded") {
  perf::CodeMapping code = own_code();
  const std::string own = contents(code.path);
  const std::string build_id = find_modules({code}, {})[0].build_id;
  REQUIRE(build_id.size() == 20);
  code.path = "/nowhere/test_monitor";
  code.build_id = build_id;
  CHECK(find_modules({code}, {})[0].file.empty());
  FileSearch search;
  search.pack = files_of(pack_with({{build_id_path(build_id), own}}));
  const auto modules = find_modules({code}, search);
  CHECK(modules[0].file == search.pack->code(build_id));
  CHECK(find_code_file(code.path, build_id, search) == modules[0].file);
  capture::Module recorded = modules[0];
  recorded.file.clear();
  CHECK(find_module_files(recorded, search).file == modules[0].file);
  CHECK(find_module_files(recorded, search).name == code.path);
  Symboliser symboliser({recorded}, search);
  const SourcePlace& place = symboliser.place(reinterpret_cast<uint64_t>(&function_to_find) + 1);
  CHECK(place.text.find("function_to_find") != std::string::npos);
  REQUIRE(place.source != nullptr);
  CHECK(place.source->empty());  // the pack has none, and the file that is here is not quoted
  CHECK(symboliser.warnings().empty());

  // What is filed under another build-id than its own.
  const std::string other(20, 'x');
  search.pack =
      files_of(pack_with({{build_id_path(other), own}, {build_id_path(other) + ".debug", own}}));
  code.build_id = recorded.build_id = other;
  CHECK(find_modules({code}, search)[0].file.empty());
  CHECK(find_code_file(code.path, other, search).empty());
  const ModuleFiles refused = find_module_files(recorded, search);
  CHECK(refused.file == code.path);
  CHECK(refused.debug.file.empty());
  REQUIRE(refused.warnings.size() == 1);
  CHECK(refused.warnings[0].find("has another build-id") != std::string::npos);
}

TEST_CASE("module files: folders with files by build-id") {
  const testing::Folder folder;
  const std::string mark = folder.write("mark", "");
  FileSearch search;
  search.debug_paths = {"/nonexistent", mark.substr(0, mark.rfind('/'))};
  perf::CodeMapping code = own_code();
  const std::string build_id = find_modules({code}, {})[0].build_id;
  const std::string file = search.debug_paths[1] + "/" + build_id_path(build_id);
  std::filesystem::create_directories(file.substr(0, file.rfind('/')));
  std::filesystem::copy_file(code.path, file);
  code.path = "/nowhere/test_monitor";
  code.build_id = build_id;
  CHECK(find_modules({code}, search)[0].file == file);
  CHECK(find_code_file(code.path, build_id, search) == file);
  std::filesystem::rename(file, file + ".debug");
  CHECK(find_modules({code}, search)[0].file == file + ".debug");
  CHECK(find_code_file(code.path, build_id, search).empty());
  CHECK(find_module_files(find_modules({code}, {})[0], search).debug.file == file + ".debug");
}

TEST_CASE("packs: what they hold, and texts of source files") {
  auto unpacked = unpack(pack_with({{"sources/0", "int a;\n"}, {"later/version", "?"}}));
  REQUIRE(unpacked);
  char text[16] = {};
  CHECK(::pread(unpacked->recording.get(), text, sizeof text, 0) == 8);
  CHECK(std::string(text) == "recorded");
  CHECK(*unpacked->files->source("/a.cpp") == "int a;\n");
  CHECK(unpacked->files->source("/b.cpp")->empty());
  CHECK(unpacked->files->source("/etc/passwd")->empty());
  CHECK(unpacked->files->code("").empty());
  CHECK(unpacked->files->debug(std::string(20, 'x')).empty());
  CHECK(build_id_path("\x12\x34\xab") == ".build-id/12/34ab");
  CHECK(build_id_path("\x12").empty());
}
