#include "monitor/process/symbols.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "monitor/process/call_paths.h"
#include "monitor/process/debug_session.h"
#include "monitor/process/debuginfod.h"
#include "monitor/process/elf_image.h"
#include "monitor/process/module_files.h"
#include "monitor/process/packed_files.h"
#include "monitor/process/source_lines.h"
#include "monitor/process/waiting_loops.h"
#include "tso/support/open_file.h"

namespace tsomon {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string demangle(const char* name) {
  // Anything else is taken for the encoding of a type: "d" would become "double".
  if (std::strncmp(name, "_Z", 2) != 0) {
    return name;
  }
  int status = 0;
  char* demangled = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string text = status == 0 ? demangled : name;
  std::free(demangled);
  // Not written in the source, so not read there either.
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t at = 0; (at = text.find(kAnonymous, at)) != std::string::npos;) {
    text.erase(at, kAnonymous.size());
  }
  return text;
}

// "ns::f(int, g<(A)1>) const" is "ns::f"; "A::operator()(int)" is "A::operator()".
std::string without_parameters(std::string name) {
  const size_t last = name.rfind(')');
  if (last == std::string::npos) {
    return name;
  }
  int depth = 0;
  for (size_t at = last + 1; at-- > 0;) {
    depth += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
    if (depth == 0) {
      constexpr std::string_view kOperator = "operator";
      const std::string_view before = std::string_view(name).substr(0, at);
      const bool is_call_operator = before.size() >= kOperator.size() &&
                                    before.substr(before.size() - kOperator.size()) == kOperator;
      if (at != 0 && !is_call_operator) {
        name.resize(at);
      }
      return name;
    }
  }
  return name;
}

std::string function_name(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  for (const unsigned int kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (const char* name = dwarf_formstring(dwarf_attr_integrate(&die, kind, &attribute))) {
      return readable_name(name);
    }
  }
  const char* name = dwarf_diename(&die);
  return name == nullptr ? std::string() : std::string(name);
}

void add_folder(Dwarf_Die& unit, SourceFrame& frame) {
  Dwarf_Attribute attribute;
  const char* const folder = frame.file.empty() || frame.file[0] == '/'
                                 ? nullptr
                                 : dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
  frame.folder = folder == nullptr ? "" : folder;
}

// Where an inlined function was called.
void read_call_site(Dwarf_Die& inlined, Dwarf_Die& unit, SourceFrame& caller) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  Dwarf_Files* files = nullptr;
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_file, &attribute), &number) == 0 &&
      dwarf_getsrcfiles(&unit, &files, nullptr) == 0) {
    if (const char* file = dwarf_filesrc(files, number, nullptr, nullptr)) {
      caller.file = file;
    }
  }
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_line, &attribute), &number) == 0) {
    caller.line = static_cast<int>(number);
  }
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_column, &attribute), &number) == 0) {
    caller.column = static_cast<int>(number);
  }
}

// Without columns each instruction is a place of its own.
std::string within_line(const SourceFrame* chosen, const SourceFrame* end, uint64_t pc) {
  std::string within =
      chosen->column == 0 ? fmt::format("0x{:x}", pc) : fmt::format("{}", chosen->column);
  for (const SourceFrame* caller = chosen + 1; caller != end; ++caller) {
    within += fmt::format("/{}:{}", caller->line, caller->column);
  }
  return within;
}

bool is_system_header(const std::string& file) {
  return file.rfind("/usr/include/", 0) == 0 || file.rfind("/usr/lib/", 0) == 0 ||
         file.find("/include/c++/") != std::string::npos;
}

constexpr std::string_view kReferenceCount = "reference count in ";
constexpr std::string_view kWait = "look before waiting in ";

// What the C++ library accesses there for its own ends, by the frames, innermost first; empty: nothing.
std::string_view library_purpose(const std::vector<SourceFrame>& chain) {
  const SourceFrame& innermost = chain.front();
  const std::string_view file = innermost.file;
  if (file.find("/include/c++/") == std::string_view::npos) {
    return {};
  }
  if (file.ends_with("/ext/atomicity.h") ||
      (file.ends_with("/bits/shared_ptr_base.h") &&
       innermost.function.find("_Sp_counted_base") != std::string::npos)) {
    return kReferenceCount;
  }
  // Of a future the state that is looked at is atomic; what it stands for lies beside it.
  const auto user = std::find_if(chain.begin(), chain.end(), [](const SourceFrame& frame) {
    return !frame.file.ends_with("/bits/atomic_base.h") && !frame.file.ends_with("/atomic");
  });
  const bool waits = file.ends_with("/bits/atomic_wait.h") ||
                     file.ends_with("/bits/atomic_timed_wait.h") ||
                     (user != chain.end() && user->file.ends_with("/bits/atomic_futex.h") &&
                      user->function.find("_M_store_notify") == std::string::npos);
  return waits ? kWait : std::string_view();
}

// The text stands in fields that end at '|' and in lines.
std::string one_field(std::string text) {
  for (char& c : text) {
    if (c == '|' || static_cast<unsigned char>(c) < ' ') {
      c = '_';
    }
  }
  return text;
}

}  // namespace

bool says_library_own(std::string_view text) {
  return text.starts_with(kReferenceCount) || text.starts_with(kWait);
}

std::string readable_name(const char* linker_name) {
  return without_parameters(demangle(linker_name));
}

struct Symboliser::OpenModule {
  OpenModule(const capture::Module& module, const FileSearch& search,
             std::vector<std::string>& warnings)
      : name(base_name(module.path)),
        files(find_module_files(module, search)),
        session(files.debug) {
    warnings.insert(warnings.end(), files.warnings.begin(), files.warnings.end());
    if (files.file.empty() || files.file[0] != '/') {
      return;  // [vdso] and its like have no file
    }
    const int fd = open_regular_file(files.file);
    if (fd < 0) {
      warnings.push_back(fmt::format("{}: no symbols: {}", module.path, std::strerror(errno)));
      return;
    }
    file = session.open(files.name, fd);
    if (file == nullptr) {
      warnings.push_back(fmt::format("{}: no symbols: {}", module.path, dwfl_errmsg(-1)));
      return;
    }
    const unsigned char* bits = nullptr;
    GElf_Addr address = 0;
    const int size = dwfl_module_build_id(file, &bits, &address);
    const std::string on_disk(reinterpret_cast<const char*>(bits),
                              size > 0 ? static_cast<size_t>(size) : 0);
    build_id = on_disk.empty() ? std::string() : build_id_text(on_disk);
    if (!module.build_id.empty() && on_disk != module.build_id) {
      const std::string what = files.file == module.path
                                   ? module.path + ": has been replaced since it was recorded"
                                   : fmt::format("{}: {} is another file", module.path, files.file);
      warnings.push_back(
          fmt::format("{} (build-id {}, recorded {}): its source lines are not shown", what,
                      build_id_text(on_disk), build_id_text(module.build_id)));
      file = nullptr;
    }
  }
  OpenModule(const OpenModule&) = delete;
  OpenModule& operator=(const OpenModule&) = delete;

  // The compilation units by address. Not left to dwfl_module_addrdie: it needs .debug_aranges,
  // which clang does not write.
  struct UnitRange {
    uint64_t begin = 0;
    uint64_t end = 0;
    Dwarf_Die* unit = nullptr;
  };
  void index_units() {
    if (units_indexed) {
      return;
    }
    units_indexed = true;
    Dwarf_Die* unit = nullptr;
    while ((unit = dwfl_module_nextcu(file, unit, &bias)) != nullptr) {
      Dwarf_Addr base = 0;
      UnitRange range;
      range.unit = unit;
      ptrdiff_t at = 0;
      while ((at = dwarf_ranges(unit, at, &base, &range.begin, &range.end)) > 0) {
        units.push_back(range);
      }
    }
    std::sort(units.begin(), units.end(), [](const UnitRange& left, const UnitRange& right) {
      return left.begin < right.begin;
    });
  }

  Dwarf_Die* unit_at(uint64_t address) const {
    auto after = std::upper_bound(
        units.begin(), units.end(), address,
        [](uint64_t wanted, const UnitRange& range) { return wanted < range.begin; });
    return after == units.begin() || address >= (--after)->end ? nullptr : after->unit;
  }

  // The function whose code is at `address` and what is inlined there, outermost first. (The
  // scopes of dwarf_getscopes go on with where an inlined function is defined.) With `local_types`
  // also below functions without code there: a lambda belongs to the function that it is written
  // in, and that may have been inlined everywhere.
  static bool functions_at(Dwarf_Die parent, uint64_t address, bool local_types,
                           std::vector<Dwarf_Die>& functions) {
    Dwarf_Die die;
    for (int more = dwarf_child(&parent, &die); more == 0; more = dwarf_siblingof(&die, &die)) {
      switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
          if (dwarf_haspc(&die, address) > 0) {
            functions.push_back(die);
            functions_at(die, address, local_types, functions);
            return true;
          }
          if (local_types && functions_at(die, address, true, functions)) {
            return true;
          }
          break;
        case DW_TAG_lexical_block:
          if (dwarf_haspc(&die, address) > 0) {
            return functions_at(die, address, local_types, functions);
          }
          break;
        case DW_TAG_namespace:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
          if (functions_at(die, address, local_types, functions)) {
            return true;
          }
          break;
        default:
          break;
      }
    }
    return false;
  }

  // `address` as the file counts it.
  std::vector<SourceFrame> frames(uint64_t address) {
    index_units();
    address -= bias;
    Dwarf_Die* unit = unit_at(address);
    if (unit == nullptr) {
      return {};
    }
    SourceFrame frame;
    if (Dwarf_Line* line = dwarf_getsrc_die(unit, address)) {
      const char* path = dwarf_linesrc(line, nullptr, nullptr);
      if (path != nullptr && dwarf_lineno(line, &frame.line) == 0) {
        frame.file = path;
        dwarf_linecol(line, &frame.column);
      }
    }
    std::vector<SourceFrame> frames;
    std::vector<Dwarf_Die> functions;
    if (!functions_at(*unit, address, false, functions)) {
      functions_at(*unit, address, true, functions);
    }
    while (!functions.empty()) {
      Dwarf_Die function = functions.back();
      functions.pop_back();
      frame.function = function_name(function);
      add_folder(*unit, frame);
      frames.push_back(frame);
      frame = SourceFrame{};
      read_call_site(function, *unit, frame);
    }
    if (frames.empty() && !frame.file.empty()) {
      add_folder(*unit, frame);
      frames.push_back(frame);
    }
    return frames;
  }

  // "function+0x1a module" from the symbol table.
  std::string symbol(uint64_t address) const {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char* symbol_name =
        dwfl_module_addrinfo(file, address, &offset, &symbol, nullptr, nullptr, nullptr);
    return symbol_name == nullptr
               ? std::string()
               : fmt::format("{}+0x{:x} {}", readable_name(symbol_name), offset, name);
  }

  // Memory of the file that holds data.
  bool has_data_at(uint64_t address) const {
    GElf_Addr unused = 0;
    Elf* elf = file == nullptr ? nullptr : dwfl_module_getelf(file, &unused);
    size_t count = 0;
    if (elf == nullptr || elf_getphdrnum(elf, &count) != 0) {
      return false;
    }
    for (size_t i = 0; i < count; ++i) {
      GElf_Phdr segment;
      if (gelf_getphdr(elf, static_cast<int>(i), &segment) != nullptr &&
          segment.p_type == PT_LOAD && (segment.p_flags & PF_X) == 0 &&
          segment.p_vaddr <= address && address - segment.p_vaddr < segment.p_memsz) {
        return true;
      }
    }
    return false;
  }

  struct Variable {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::string_view linker_name;  // in the file
  };
  void index_variables() {
    variables_indexed = true;
    const int count = dwfl_module_getsymtab(file);
    for (int i = 1; i < count; ++i) {
      GElf_Sym symbol;
      GElf_Addr address = 0;
      const char* text =
          dwfl_module_getsym_info(file, i, &symbol, &address, nullptr, nullptr, nullptr);
      if (text != nullptr && *text != '\0' && symbol.st_size != 0 && symbol.st_shndx != SHN_UNDEF &&
          GELF_ST_TYPE(symbol.st_info) == STT_OBJECT) {
        variables.push_back({address, address + symbol.st_size, text});
      }
    }
    // Of several names the first; of what lies inside something else the inner one.
    std::sort(variables.begin(), variables.end(), [](const Variable& left, const Variable& right) {
      return std::tie(left.begin, right.end, right.linker_name) <
             std::tie(right.begin, left.end, left.linker_name);
    });
  }

  std::string variable(uint64_t address) {
    if (!variables_indexed) {
      index_variables();
    }
    const auto after = std::upper_bound(
        variables.begin(), variables.end(), address,
        [](uint64_t wanted, const Variable& variable) { return wanted < variable.begin; });
    const bool known = after != variables.begin() && address < (after - 1)->end;
    const std::string what = known ? readable_name((after - 1)->linker_name.data()) : name;
    const uint64_t offset = known ? address - (after - 1)->begin : address;
    return offset == 0 ? what : fmt::format("{}+0x{:x}", what, offset);
  }

  // nullptr: the file's code cannot be read.
  const attach::ElfImage* code() {
    if (!image_opened) {
      image_opened = true;
      if (auto opened = file == nullptr
                            ? fail(ErrorKind::kMalformed, "")
                            : attach::ElfImage::open(files.file, files.file, files.debug)) {
        image = std::move(*opened);
      }
    }
    return image.get();
  }
  CallPaths* code_calls() {
    if (call_paths == nullptr && code() != nullptr) {
      call_paths = std::make_unique<CallPaths>(*image);
    }
    return call_paths.get();
  }

  std::string name;
  std::string build_id;  // of the file that is here, in hexadecimal
  ModuleFiles files;
  DebugSession session;
  Dwarf_Addr bias = 0;  // of the DWARF data's addresses
  bool units_indexed = false;
  std::vector<UnitRange> units;
  bool variables_indexed = false;
  std::vector<Variable> variables;  // by begin
  bool image_opened = false;
  std::unique_ptr<attach::ElfImage> image;
  std::unique_ptr<CallPaths> call_paths;
  Dwfl_Module* file = nullptr;  // absent when there are no symbols to be had
};

Symboliser::Symboliser(std::vector<capture::Module> modules, FileSearch search)
    : modules_(std::move(modules)), search_(std::move(search)) {}
Symboliser::~Symboliser() = default;

const capture::Module* Symboliser::find(uint64_t address) const {
  for (size_t i = modules_.size(); i-- > 0;) {
    if (modules_[i].begin <= address && address < modules_[i].end) {
      return &modules_[i];
    }
  }
  return nullptr;
}

Symboliser::OpenModule& Symboliser::open(const capture::Module& module) {
  std::unique_ptr<OpenModule>& opened = open_[module.path + '\0' + module.build_id];
  if (opened == nullptr) {
    opened = std::make_unique<OpenModule>(module, search_, warnings_);
  }
  return *opened;
}

std::vector<SourceFrame> Symboliser::frames(uint64_t pc) {
  const capture::Module* module = find(pc - 1);
  if (module == nullptr) {
    return {};
  }
  OpenModule& opened = open(*module);
  return opened.file == nullptr ? std::vector<SourceFrame>{} : opened.frames(pc - 1 - module->bias);
}

SourcePlace Symboliser::make_place(uint64_t pc) {
  SourcePlace place;
  place.pc = pc;
  const capture::Module* module = find(pc - 1);
  if (module == nullptr) {
    place.text = fmt::format("0x{:x}", pc);
    return place;
  }
  place.module = module->path;
  const std::vector<SourceFrame> chain = frames(pc);
  const OpenModule& opened = open(*module);
  place.build_id = module->build_id.empty() ? opened.build_id : build_id_text(module->build_id);
  const SourceFrame* chosen = chain.empty() ? nullptr : &chain.front();
  for (const SourceFrame& frame : chain) {
    if (!frame.file.empty() && !is_system_header(frame.file)) {
      chosen = &frame;
      break;
    }
  }
  if (chosen != nullptr && !chosen->file.empty()) {
    place.function = chosen->function;
    place.file = chosen->file;
    place.folder = chosen->folder;
    place.code = opened.files.file;
    place.source = search_.pack == nullptr ? nullptr : search_.pack->source(source_path(place));
    place.line = chosen->line;
    place.text = frame_text(*chosen);
    place.text = std::string(library_purpose(chain)) + place.text;
    place.within = within_line(chosen, chain.data() + chain.size(), pc);
    std::copy_if(chain.begin() + (chosen - chain.data()) + 1, chain.end(),
                 std::back_inserter(place.callers),
                 [](const SourceFrame& frame) { return !is_system_header(frame.file); });
    return place;
  }
  const std::string symbol =
      opened.file == nullptr ? std::string() : opened.symbol(pc - 1 - module->bias);
  place.text = symbol.empty() ? fmt::format("{}+0x{:x}", opened.name, pc - module->bias) : symbol;
  return place;
}

const SourcePlace& Symboliser::place(uint64_t pc) {
  const auto [entry, is_new] = places_.try_emplace(pc);
  if (is_new) {
    entry->second = make_place(pc);
    entry->second.text = one_field(std::move(entry->second.text));
  }
  return entry->second;
}

std::string Symboliser::variable(uint64_t address) {
  for (size_t i = modules_.size(); i-- > 0;) {
    const capture::Module& module = modules_[i];
    OpenModule& opened = open(module);
    if (opened.has_data_at(address - module.bias)) {
      return opened.variable(address - module.bias);
    }
  }
  return {};
}

SourceCalls Symboliser::calls(uint64_t from, uint64_t to) {
  const capture::Module* const module = find(from - 1);
  if (module == nullptr || module != find(to - 1)) {
    return {};
  }
  CallPaths* const paths = open(*module).code_calls();
  if (paths == nullptr) {
    return {};
  }
  SourceCalls calls;
  for (const std::vector<uint64_t>& sites :
       paths->find(from - 1 - module->bias, to - 1 - module->bias)) {
    std::vector<SourceFrame> frames;
    for (const uint64_t site : sites) {
      const SourcePlace& at = place(site + module->bias);
      SourceFrame frame{at.function.empty() ? at.text : at.function, at.file, at.line};
      if (std::find(frames.begin(), frames.end(), frame) == frames.end()) {
        frames.push_back(std::move(frame));
      }
    }
    calls.push_back(std::move(frames));
  }
  return calls;
}

bool Symboliser::waits(uint64_t pc) {
  const capture::Module* const module = find(pc - 1);
  const attach::ElfImage* const image = module == nullptr ? nullptr : open(*module).code();
  return image != nullptr && WaitingLoops(*image).waits(pc - module->bias);
}

std::string frame_text(const SourceFrame& frame) {
  if (frame.file.empty()) {
    return frame.function;
  }
  return fmt::format("{}{}{}:{}", frame.function, frame.function.empty() ? "" : " ",
                     base_name(frame.file), frame.line);
}

SourcePlace place_in(const SourcePlaces& places, const std::string& text) {
  if (const auto known = places.find(text); known != places.end()) {
    return known->second;
  }
  SourcePlace place;
  place.text = text;
  return place;
}

void add_place(const SourcePlace& place, SourcePlaces* places) {
  const auto [entry, is_new] = places->try_emplace(place.text, place);
  SourcePlace& known = entry->second;
  if (is_new) {
    return;
  }
  const auto [own, other] = std::mismatch(known.callers.begin(), known.callers.end(),
                                          place.callers.begin(), place.callers.end());
  std::vector<SourceFrame> common(known.callers.begin(), own);
  SourceCalls more;
  for (auto caller = own; caller != known.callers.end(); ++caller) {
    more.push_back({*caller});
  }
  more.insert(more.end(), known.more_callers.begin(), known.more_callers.end());
  more.resize(std::min(more.size(), static_cast<size_t>(place.callers.end() - other)));
  for (size_t i = 0; i < more.size(); ++i) {
    const SourceFrame& caller = other[static_cast<ptrdiff_t>(i)];
    if (std::find(more[i].begin(), more[i].end(), caller) == more[i].end()) {
      more[i].push_back(caller);
    }
  }
  if (place.build_id < known.build_id) {
    known = place;
  }
  known.callers = std::move(common);
  known.more_callers = std::move(more);
}

std::vector<std::string> Symboliser::warnings() const {
  std::vector<std::string> all = warnings_;
  if (std::string problem = take_debuginfod_problem(); !problem.empty()) {
    all.push_back(std::move(problem));
  }
  return all;
}

}  // namespace tsomon
