#include "monitor/probe/symbol_table.h"

#include <cstdlib>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/probe/function_name.h"
#include "monitor/probe/messages.h"
#include "monitor/probe/nearest.h"

// Absent in a program without the C++ runtime.
extern "C" __attribute__((weak)) char* __cxa_demangle(const char* name, char* buffer, size_t* size,
                                                      int* status);

namespace tsomon::probe {
namespace {

struct Patterns {
  const char* const* text;
  int count;

  // -1: none.
  int first_match(const char* name, const char* plain) const {
    for (int i = 0; i < count; ++i) {
      if (fnmatch(text[i], name, 0) == 0 || fnmatch(text[i], plain, 0) == 0) {
        return i;
      }
    }
    return -1;
  }
};

// Of the runtime itself, which is part of the executable.
bool is_ours(const char* mangled) {
  return std::strstr(mangled, "6tsomon5probe") != nullptr ||
         std::strstr(mangled, "6tsomon7explore") != nullptr ||
         std::strstr(mangled, "6tsomon7capture") != nullptr ||
         std::strcmp(mangled, "tsomon_not_instrumented") == 0;
}

// `plain` becomes the name to show: demangled, with parameters.
void simplify(const char* mangled, char* plain, size_t size) {
  std::strncpy(plain, mangled, size - 1);
  plain[size - 1] = '\0';
  if (char* const dot = std::strchr(plain + 1, '.')) {
    *dot = '\0';
  }
  if (std::strncmp(plain, "_Z", 2) != 0 || __cxa_demangle == nullptr) {
    return;
  }
  int status = 0;
  char* const demangled = __cxa_demangle(plain, nullptr, nullptr, &status);
  if (demangled != nullptr) {
    std::strncpy(plain, demangled, size - 1);
    std::free(demangled);
  }
}

void read_symbols(const char* image, size_t size, uint64_t bias, int type, const Patterns& patterns,
                  void (*report)(const NamedSymbol& symbol)) {
  const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(image);
  if (size < sizeof *header || std::memcmp(image, ELFMAG, SELFMAG) != 0 ||
      header->e_shoff + header->e_shnum * sizeof(ElfW(Shdr)) > size) {
    return;
  }
  const auto* const sections = reinterpret_cast<const ElfW(Shdr)*>(image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    const ElfW(Shdr)& section = sections[i];
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= header->e_shnum) {
      continue;
    }
    const size_t count = section.sh_size / sizeof(ElfW(Sym));
    const ElfW(Shdr)& strings = sections[section.sh_link];
    if (section.sh_offset + section.sh_size > size || strings.sh_offset + strings.sh_size > size) {
      return;
    }
    const auto* const symbols = reinterpret_cast<const ElfW(Sym)*>(image + section.sh_offset);
    for (size_t k = 0; k < count; ++k) {
      const ElfW(Sym)& symbol = symbols[k];
      if (ELF64_ST_TYPE(symbol.st_info) != type || symbol.st_size == 0 ||
          symbol.st_shndx == SHN_UNDEF || symbol.st_name >= strings.sh_size) {
        continue;
      }
      const char* const name = image + strings.sh_offset + symbol.st_name;
      if (is_ours(name)) {
        continue;
      }
      char plain[1024];
      simplify(name, plain, sizeof plain);
      int match = patterns.first_match(name, plain);
      // Parentheses in the name of an object belong to the function that it lies in.
      if (const size_t length = name_length(plain); type == STT_FUNC && plain[length] != '\0') {
        plain[length] = '\0';
        match = match >= 0 ? match : patterns.first_match(name, plain);
      }
      if (match >= 0) {
        report({name, plain, bias + symbol.st_value, symbol.st_size, match});
      }
    }
    return;
  }
}

}  // namespace

void find_symbols(int type, const char* const* patterns, int count,
                  void (*found)(const NamedSymbol& symbol)) {
  const int fd = kernel::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd >= 0 && kernel::fstat(fd, &status) == 0) {
    const auto size = static_cast<size_t>(status.st_size);
    void* const image = kernel::mmap(size, PROT_READ, MAP_PRIVATE, fd);
    if (image != MAP_FAILED) {
      uint64_t bias = 0;
      dl_iterate_phdr(
          [](dl_phdr_info* info, size_t, void* to) {
            *static_cast<uint64_t*>(to) = info->dlpi_addr;
            return 1;  // the executable is the first
          },
          &bias);
      read_symbols(static_cast<const char*>(image), size, bias, type, {patterns, count}, found);
      kernel::munmap(image, size);
    }
  }
  if (fd >= 0) {
    kernel::close(fd);
  }
}

void warn_of_no_match(const char* option, int type, const char* what, const char* pattern,
                      const char* others) {
  static Nearest* nearest = nullptr;  // the callback has no argument for it
  Nearest words(pattern);
  nearest = &words;
  static const char* const kAll[] = {"*"};
  find_symbols(type, kAll, 1, [](const NamedSymbol& symbol) { nearest->offer(symbol.plain); });
  nearest = nullptr;
  const bool near = *words.best() != '\0';
  warn("TSOMON_OPTIONS: %s: no %s of the program matches '%s'%s%s%s%s", option, what, pattern,
       others, near ? "; did you mean '" : "", words.best(), near ? "'?" : "");
}

}  // namespace tsomon::probe
