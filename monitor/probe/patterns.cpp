// Units from function names: option unit=PATTERN.
//
// At the start the functions of the executable whose name matches one of the patterns are looked up
// in its ELF symbol table: the name as it stands there, or demangled, with or without the
// parameters; endings like .cold or .part.0 do not count. Each call of such a function is a unit.
// Both compilers call __tsan_func_exit also when an exception leaves the function. After longjmp
// the units that were jumped over end when the thread next enters or leaves a function: their
// frames lie below its own. Missed: units nested in more than 4096 calls, functions that were
// inlined (mark them noinline), functions of shared libraries, and programs that run one thread on
// several stacks (alternate signal stacks, fibers).
#include "monitor/probe/patterns.h"

#include <cstdlib>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/probe/handover.h"
#include "monitor/probe/noise.h"

// Absent in a program without the C++ runtime.
extern "C" __attribute__((weak)) char* __cxa_demangle(const char* name, char* buffer, size_t* size,
                                                      int* status);

namespace tsomon::probe {
namespace {

struct Function {
  uint64_t begin;
  uint64_t end;
  uint32_t label;
};
Function* functions = nullptr;  // sorted by begin
size_t function_count = 0;

// The calls of this thread since the first function that is a unit, innermost last.
struct Call {
  uint64_t frame;  // where the stack stood
  bool unit;
};
constexpr int kMaxDepth = 4096;
__thread Call* calls;
__thread int depth;
__thread uint32_t deeper;  // calls that are nested still deeper, which are no units

bool matches(const char* name, char* plain) {
  for (int i = 0; i < options.units; ++i) {
    if (fnmatch(options.unit[i], name, 0) == 0 || fnmatch(options.unit[i], plain, 0) == 0) {
      return true;
    }
  }
  return false;
}

// `plain` becomes the name to show: demangled, without parameters.
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

void read_symbols(const char* image, size_t size, uint64_t bias) {
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
    functions = static_cast<Function*>(take_memory(count * sizeof(Function) + 1));
    if (functions == nullptr) {
      return;
    }
    const auto* const symbols = reinterpret_cast<const ElfW(Sym)*>(image + section.sh_offset);
    for (size_t k = 0; k < count; ++k) {
      const ElfW(Sym)& symbol = symbols[k];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0 ||
          symbol.st_name >= strings.sh_size) {
        continue;
      }
      const char* const name = image + strings.sh_offset + symbol.st_name;
      char plain[1024];
      simplify(name, plain, sizeof plain);
      bool found = matches(name, plain);
      if (char* const parameters = std::strchr(plain, '(');
          parameters != nullptr && parameters != plain) {
        *parameters = '\0';
        found = found || matches(name, plain);
      }
      if (found) {
        functions[function_count++] = {bias + symbol.st_value,
                                       bias + symbol.st_value + symbol.st_size,
                                       label_id(plain, std::strlen(plain))};
      }
    }
    return;
  }
}

int compare(const void* a, const void* b) {
  const auto* const left = static_cast<const Function*>(a);
  const auto* const right = static_cast<const Function*>(b);
  return left->begin < right->begin ? -1 : left->begin > right->begin ? 1 : 0;
}

const Function* find(uint64_t pc) {
  size_t low = 0;
  size_t high = function_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (functions[middle].end < pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  // A return address can be one past the end; it is never the first byte.
  return low < function_count && functions[low].begin < pc ? &functions[low] : nullptr;
}

// The innermost call is over.
void leave(uint64_t pc) {
  --depth;
  if (calls[depth].unit) {
    put_boundary(RecordType::kUnitEnd, 0, pc);
  }
}

void enter(uint64_t frame, const Function* function, uint64_t pc) {
  // Those whose frame is no longer there were left by longjmp.
  while (depth > 0 && calls[depth - 1].frame <= frame) {
    leave(pc);
    deeper = 0;
  }
  if (depth == kMaxDepth) {
    ++deeper;
    return;
  }
  calls[depth++] = {frame, function != nullptr};
  if (function != nullptr) {
    put_boundary(RecordType::kUnitBegin, function->label, pc);
    noise();
  }
}

}  // namespace

bool find_unit_functions() {
  if (options.units == 0) {
    return true;
  }
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd >= 0 && fstat(fd, &status) == 0) {
    const auto size = static_cast<size_t>(status.st_size);
    void* const image = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (image != MAP_FAILED) {
      uint64_t bias = 0;
      dl_iterate_phdr(
          [](dl_phdr_info* info, size_t, void* to) {
            *static_cast<uint64_t*>(to) = info->dlpi_addr;
            return 1;  // the executable is the first
          },
          &bias);
      read_symbols(static_cast<const char*>(image), size, bias);
      munmap(image, size);
    }
  }
  if (fd >= 0) {
    close(fd);
  }
  if (function_count == 0) {
    complain("TSOMON_OPTIONS: unit: no function of the program matches '%s'%s", options.unit[0],
             options.units > 1 ? " or the other patterns" : "");
    return false;
  }
  qsort(functions, function_count, sizeof(Function), compare);
  return true;
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

TSOMON_HOOK void __tsan_func_entry(void*) {
  if (TSOMON_LIKELY(function_count == 0)) {
    return;
  }
  const Function* const function = find(TSOMON_PC());
  if ((function == nullptr && depth == 0) || local.off) {
    return;
  }
  activate();
  if (calls == nullptr) {
    calls = static_cast<Call*>(take_memory(kMaxDepth * sizeof(Call)));
    if (calls == nullptr) {
      return;
    }
  }
  // Where the stack stood at the call of this hook.
  enter(reinterpret_cast<uint64_t>(__builtin_dwarf_cfa()), function, TSOMON_PC());
}

// Often the last call of a function, made by a jump: then it returns to the caller of the function
// that is left, and the return address does not tell which one that is.
TSOMON_HOOK void __tsan_func_exit(void*) {
  if (TSOMON_LIKELY(depth == 0)) {
    return;
  }
  if (deeper > 0) {
    --deeper;
    return;
  }
  // Where even the caller's frame is no longer there, longjmp has left the call.
  const auto frame = reinterpret_cast<uint64_t>(__builtin_dwarf_cfa());
  while (depth > 1 && calls[depth - 2].frame < frame) {
    leave(TSOMON_PC());
  }
  leave(TSOMON_PC());
}
