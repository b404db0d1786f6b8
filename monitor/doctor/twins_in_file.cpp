#include "monitor/doctor/twins_in_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include <cxxabi.h>
#include <fmt/format.h>
#include <gelf.h>

#include "monitor/process/descriptor.h"
#include "tso/support/open_file.h"

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

}  // namespace

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
