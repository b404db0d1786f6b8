#include "monitor/process/symbols.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include "monitor/process/location_texts.h"
#include "tests/monitor/symbols_sample.h"

namespace tsomon {
namespace {

std::string build_id(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_NOTE) {
      continue;
    }
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    const char* end = at + info.dlpi_phdr[i].p_memsz;
    while (at < end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* text = name + (note.n_namesz + 3) / 4 * 4;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        return {text, note.n_descsz};
      }
      at = text + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return {};
}

// The modules of this process as the probe records them.
std::vector<capture::Module> own_modules() {
  std::vector<capture::Module> modules;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& list = *static_cast<std::vector<capture::Module>*>(data);
        capture::Module module;
        module.path = list.empty() ? std::filesystem::read_symlink("/proc/self/exe").string()
                                   : std::string(info->dlpi_name);
        module.build_id = build_id(*info);
        module.bias = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
            module.begin = info->dlpi_addr + segment.p_vaddr;
            module.end = module.begin + segment.p_memsz;
            list.push_back(module);
          }
        }
        return 0;
      },
      &modules);
  return modules;
}

TEST_CASE("a return address gives the function and line of the call") {
  sample::Pool pool;
  Symboliser symboliser(own_modules());
  CHECK(symboliser.text(pool.take(1)) == "sample::Pool::take symbols_sample.cpp:22");
  const uint64_t pc = sample::call_inlined(pool);
  CHECK(symboliser.text(pc) == "sample::inlined symbols_sample.cpp:15");
  const std::vector<SourceFrame> frames = symboliser.frames(pc);
  REQUIRE(frames.size() == 2);
  CHECK(frames[1].function == "sample::call_inlined");
  CHECK(frames[1].line == 28);
  CHECK(frames[1].file.find("tests/monitor/symbols_sample.cpp") != std::string::npos);
  CHECK(symboliser.warnings().empty());
}

// Any address in a function: its first byte and one.
template <typename Function>
uint64_t pc_in(Function function) {
  uint64_t address = 0;
  static_assert(sizeof function >= sizeof address);
  std::memcpy(&address, &function, sizeof address);
  return address + 1;
}

TEST_CASE("calls that may lead from one function to another one are found in the code") {
  Symboliser symboliser(own_modules());
  const uint64_t from = pc_in(&sample::call_take);
  const uint64_t to = pc_in(&sample::Pool::take);
  const auto lines = [](const std::vector<SourceFrame>& sites) {
    std::string text;
    for (const SourceFrame& site : sites) {
      text += fmt::format("{}:{} ", site.function, site.line);
    }
    return text;
  };
  const SourceCalls calls = symboliser.calls(from, to);
  REQUIRE(calls.size() == 2);
  CHECK(lines(calls[0]) == "sample::take_twice:51 sample::take_twice:52 ");
  CHECK(lines(calls[1]) == "sample::call_take:64 ");
  CHECK(symboliser.calls(to, from).empty());                  // no way
  CHECK(symboliser.calls(from, from + 2).empty());            // one function
  CHECK(symboliser.calls(from, pc_in(&std::abort)).empty());  // another file
  CHECK(symboliser.calls(from, 0x1000).empty());              // no code
  // Not through what is only called from there, in a loop.
  CHECK(symboliser.calls(pc_in(&sample::call_inlined), to).empty());
}

TEST_CASE("data of a file is named by its symbol, other memory is not") {
  Symboliser symboliser(own_modules());
  const auto address = [](const volatile void* at) { return reinterpret_cast<uint64_t>(at); };
  CHECK(symboliser.variable(address(&sample::counters)) == "sample::counters");
  CHECK(symboliser.variable(address(&sample::counters[3])) == "sample::counters+0xc");
  CHECK(symboliser.variable(address(&sample::counters[4])) != "sample::counters+0x10");
  CHECK(symboliser.variable(address(&sample::limit)) == "sample::limit");
  const auto heap = std::make_unique<int>(0);
  const int stack = 0;
  CHECK(symboliser.variable(address(heap.get())).empty());
  CHECK(symboliser.variable(address(&stack)).empty());
  CHECK(symboliser.variable(0x10).empty());

  auto replaced = own_modules();
  replaced[0].build_id[0] ^= 1;
  CHECK(Symboliser(replaced).variable(address(&sample::counters)).empty());
}

TEST_CASE("only what a C++ compiler encoded is decoded") {
  // Alone these letters are the encodings of types.
  for (const char* const name : {"d", "m", "i", "a", "x", "v", "main", "Pv", "_start"}) {
    CHECK(readable_name(name) == name);
  }
  CHECK(readable_name("_ZN4Pool4takeEv") == "Pool::take");
}

TEST_CASE("places have what is the same on every machine") {
  sample::Pool pool;
  const auto modules = own_modules();
  Symboliser symboliser(modules);
  const SourcePlace& place = symboliser.place(pool.take(1));
  CHECK(place.text == "sample::Pool::take symbols_sample.cpp:22");
  CHECK(place.function == "sample::Pool::take");
  CHECK(place.line == 22);
  CHECK(place.build_id.size() == 2 * modules[0].build_id.size());
  CHECK(place.module == modules[0].path);
}

TEST_CASE("a place has the calls that it was inlined for, as far as all code of its text agrees") {
  sample::Pool pool;
  Symboliser symboliser(own_modules());
  const SourcePlace inlined = symboliser.place(sample::call_inlined(pool));
  REQUIRE(inlined.callers.size() == 1);
  CHECK(frame_text(inlined.callers[0]) == "sample::call_inlined symbols_sample.cpp:28");
  CHECK(symboliser.place(pool.take(1)).callers.empty());
  const SourcePlace elsewhere = symboliser.place(sample::call_lambda(pool));
  REQUIRE(elsewhere.text == inlined.text);
  REQUIRE(elsewhere.callers.size() == 1);
  SourcePlaces places;
  add_place(inlined, &places);
  add_place(inlined, &places);
  CHECK(places.at(inlined.text).callers.size() == 1);
  add_place(elsewhere, &places);
  const SourcePlace& both = places.at(inlined.text);
  CHECK(both.callers.empty());
  REQUIRE(both.more_callers.size() == 1);
  CHECK(both.more_callers[0] == std::vector{inlined.callers[0], elsewhere.callers[0]});
  add_place(inlined, &places);
  CHECK(both.more_callers[0].size() == 2);
}

TEST_CASE("a lambda is found although the function around it was inlined") {
  sample::Pool pool;
  Symboliser symboliser(own_modules());
  const std::vector<SourceFrame> frames = symboliser.frames(sample::call_lambda(pool));
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].function == "sample::inlined");
  CHECK(frames[0].line == 15);
  CHECK(frames[1].line == 38);
}

TEST_CASE("code without debug information is named by symbol or offset") {
  sample::Pool pool;
  const uint64_t pc = pool.take(1);
  auto modules = own_modules();
  const auto copy = std::filesystem::temp_directory_path() / fmt::format("stripped-{}", getpid());
  for (const bool keep_symbols : {true, false}) {
    const std::string command = fmt::format("strip {} -o '{}' '{}'", keep_symbols ? "-g" : "-s",
                                            copy.string(), modules[0].path);
    REQUIRE(std::system(command.c_str()) == 0);
    auto stripped = modules;
    stripped[0].path = copy.string();
    Symboliser symboliser(stripped);
    const std::string expected =
        keep_symbols ? "sample::Pool::take+0x"
                     : fmt::format("{}+0x{:x}", copy.filename().string(), pc - modules[0].bias);
    CAPTURE(symboliser.text(pc));
    CHECK(symboliser.text(pc).rfind(expected, 0) == 0);
    CHECK(symboliser.warnings().empty());
    std::filesystem::remove(copy);
  }
  Symboliser symboliser(modules);
  CHECK(symboliser.text(0x10) == "0x10");
  CHECK(symboliser.frames(0x10).empty());
}

TEST_CASE("a file that was replaced after the recording is not believed") {
  sample::Pool pool;
  const uint64_t pc = pool.take(1);
  auto modules = own_modules();
  REQUIRE(modules[0].build_id.size() == 20);
  modules[0].build_id[0] ^= 1;
  Symboliser symboliser(modules);
  const std::string& text = symboliser.text(pc);
  CHECK(text.find("symbols_sample") == std::string::npos);
  CHECK(text.rfind("test_monitor+0x", 0) == 0);
  REQUIRE(symboliser.warnings().size() == 1);
  CHECK(symboliser.warnings()[0].find("has been replaced") != std::string::npos);

  modules[0].path = "/nonexistent/test_monitor";
  Symboliser missing(modules);
  CHECK(missing.text(pc).rfind("test_monitor+0x", 0) == 0);
  REQUIRE(missing.warnings().size() == 1);
  CHECK(missing.warnings()[0].find("No such file") != std::string::npos);
}

TEST_CASE("pcs of a trace become text, other locations stay") {
  sample::Pool pool;
  Trace trace;
  const std::string pc = fmt::format("0x{:x}", pool.take(1));
  for (const std::string& text : {std::string("12"), pc, std::string("0xno"), pc}) {
    Event event;
    event.location = trace.symbols.intern_location(text);
    trace.events.push_back(event);
  }
  trace.events.emplace_back();
  CHECK(symbolise(trace, own_modules()).empty());
  std::vector<std::string> texts;
  for (const Event& event : trace.events) {
    texts.push_back(trace.symbols.location_text(event.location));
  }
  const std::string take = "sample::Pool::take symbols_sample.cpp:22";
  CHECK(texts == std::vector<std::string>{"12", take, "0xno", take, ""});
}

}  // namespace
TEST_CASE("what was read of a program's files is kept for the next input of the same code") {
  FileSearch search;
  search.known = std::make_shared<KnownSymbolisers>();
  std::vector<capture::Module> others = own_modules();
  others.pop_back();
  const Symboliser* kept = nullptr;
  { const LocationTexts texts(own_modules(), search); }
  {
    auto one = search.known->take(own_modules());
    REQUIRE(one != nullptr);
    CHECK(search.known->take(own_modules()) == nullptr);  // somebody has it
    kept = one.get();
    search.known->give(std::move(one));
  }
  CHECK(search.known->take(others) == nullptr);
  { const LocationTexts texts(own_modules(), search); }
  for (size_t i = 1; i < KnownSymbolisers::kMost; ++i) {
    search.known->give(std::make_unique<Symboliser>(others));
  }
  auto again = search.known->take(own_modules());
  CHECK(again.get() == kept);
  search.known->give(std::move(again));
  for (size_t i = 0; i < KnownSymbolisers::kMost; ++i) {
    search.known->give(std::make_unique<Symboliser>(others));
  }
  CHECK(search.known->take(own_modules()) == nullptr);  // others came since
}

}  // namespace tsomon
