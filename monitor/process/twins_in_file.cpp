#include "monitor/process/twins_in_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include <cxxabi.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gelf.h>

#include "monitor/process/descriptor.h"
#include "monitor/process/module_files.h"
#include "tso/support/open_file.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

std::string readable(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return text == nullptr ? name : std::string(text.get());
}

// The linker joins those of all objects.
void read_without(std::string_view text, std::vector<WithoutTwin>* without) {
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find('\0'));
    if (const size_t tab = entry.find('\t'); tab != std::string_view::npos) {
      without->push_back(
          {readable(std::string(entry.substr(0, tab))), std::string(entry.substr(tab + 1))});
    }
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
  }
}

// The 32 bits that a file has for an address.
std::optional<int32_t> word_at(Elf* elf, uint64_t address) {
  size_t count = 0;
  size_t size = 0;
  const char* const bytes = elf_rawfile(elf, &size);
  if (bytes == nullptr || elf_getphdrnum(elf, &count) != 0) {
    return std::nullopt;
  }
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD ||
        address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) {
      continue;
    }
    const uint64_t within = address - segment.p_vaddr;
    int32_t word = 0;
    if (segment.p_filesz - within < sizeof word || segment.p_offset > size ||
        size - segment.p_offset < within + sizeof word) {
      return std::nullopt;
    }
    std::memcpy(&word, bytes + segment.p_offset + within, sizeof word);
    return word;
  }
  return std::nullopt;
}

// monitor/probe/assembler/twins.h says what the section has, and what an entry looks like.
void read_functions(Elf* elf, Elf_Scn* section, uint64_t address,
                    std::vector<TwinFunction>* functions) {
  constexpr uint64_t kEntry = 5;  // bytes; the last four are the distance from behind them
  const Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) {
    return;
  }
  for (size_t at = 0; at + sizeof(int32_t) <= data->d_size; at += sizeof(int32_t)) {
    int32_t distance = 0;
    std::memcpy(&distance, static_cast<const char*>(data->d_buf) + at, sizeof distance);
    const uint64_t entry = address + at + static_cast<uint64_t>(static_cast<int64_t>(distance));
    if (const auto twin = word_at(elf, entry + 1)) {
      functions->push_back({entry, entry + kEntry + static_cast<uint64_t>(int64_t{*twin})});
    }
  }
}

// Empty: it has none.
std::string without_text(const capture::Module& module, const FileSearch& search) {
  constexpr size_t kShown = 8;
  const std::string file = find_code_file(module.path, module.build_id, search);
  const auto twins = file.empty() ? Result<TwinsInFile>(TwinsInFile{}) : twins_in_file(file);
  std::vector<std::string> functions;
  for (const WithoutTwin& each : twins ? twins->without : std::vector<WithoutTwin>()) {
    if (!each.why.ends_with("excluded from instrumentation")) {
      functions.push_back(printable(each.function.substr(0, each.function.find('('))));
    }
  }
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  if (functions.empty()) {
    return {};
  }
  const size_t shown = std::min(functions.size(), kShown);
  return fmt::format(
      "functions of {} without a twin, what they do was not seen: {}{}", printable(module.path),
      fmt::join(functions.begin(), functions.begin() + static_cast<long>(shown), ", "),
      functions.size() > shown ? fmt::format(" and {} more", functions.size() - shown) : "");
}

}  // namespace

std::vector<std::string> libraries_without_twins(const std::vector<capture::Module>& modules,
                                                 const FileSearch& search) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::string> known;
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string> texts;
  for (size_t i = 1; i < modules.size(); ++i) {  // the first is the program
    const capture::Module& module = modules[i];
    const auto [at, is_new] = known.try_emplace({module.path, module.build_id});
    if (is_new) {
      at->second = without_text(module, search);
    }
    if (!at->second.empty() && std::find(texts.begin(), texts.end(), at->second) == texts.end()) {
      texts.push_back(at->second);
    }
  }
  return texts;
}

Result<TwinsInFile> twins_in_file(const std::string& path) {
  elf_version(EV_CURRENT);
  const Descriptor file(open_regular_file(path), true);
  if (!file.is_open()) {
    return fail(ErrorKind::kUnreadable, fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  const std::unique_ptr<Elf, decltype(&elf_end)> elf(
      elf_begin(file.get(), ELF_C_READ_MMAP, nullptr), &elf_end);
  size_t names = 0;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      elf_getshdrstrndx(elf.get(), &names) != 0) {
    return fail(ErrorKind::kMalformed, "expected a program or a library (ELF)");
  }
  TwinsInFile result;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header;
    const char* const name = gelf_getshdr(section, &header) == nullptr
                                 ? nullptr
                                 : elf_strptr(elf.get(), names, header.sh_name);
    if (name == nullptr) {
      continue;
    }
    if (std::strcmp(name, "tsomon_twins") == 0) {
      result.twins += header.sh_size / sizeof(int32_t);
      if (header.sh_addr != 0) {
        read_functions(elf.get(), section, header.sh_addr, &result.functions);
      }
    } else if (std::strcmp(name, ".tsomon.no_twin") == 0) {
      if (const Elf_Data* const data = elf_getdata(section, nullptr);
          data != nullptr && data->d_buf != nullptr) {
        read_without({static_cast<const char*>(data->d_buf), data->d_size}, &result.without);
      }
    }
  }
  return result;
}

}  // namespace tsomon
