#include "monitor/process/module_files.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>

#include "monitor/process/debuginfod.h"
#include "monitor/process/descriptor.h"
#include "monitor/process/packed_files.h"
#include "tso/support/open_file.h"

namespace tsomon {
namespace {

struct Segment {
  uint64_t offset = 0;
  uint64_t size = 0;  // in the file
  uint64_t address = 0;
};

struct CodeFile {
  std::string path;
  std::string build_id;
  std::vector<Segment> segments;
};

std::optional<CodeFile> read_code_file(const std::string& path) {
  elf_version(EV_CURRENT);
  const Descriptor file(open_regular_file(path), true);
  Elf* const elf = file.is_open() ? elf_begin(file.get(), ELF_C_READ_MMAP, nullptr) : nullptr;
  if (elf == nullptr) {
    return std::nullopt;
  }
  CodeFile result;
  result.path = path;
  const void* bits = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf, &bits);
  if (size > 0) {
    result.build_id.assign(static_cast<const char*>(bits), static_cast<size_t>(size));
  }
  size_t count = 0;
  const bool is_elf = elf_kind(elf) == ELF_K_ELF && elf_getphdrnum(elf, &count) == 0;
  for (size_t i = 0; is_elf && i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD) {
      result.segments.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
    }
  }
  elf_end(elf);
  return is_elf ? std::optional(std::move(result)) : std::nullopt;
}

bool names_a_file(const std::string& path) {
  return !path.empty() && path[0] == '/' && path.substr(0, 2) != "//";
}

enum class Kind { kCode, kAny };

// Of the code itself first, separate debugging data (.debug) last.
std::vector<std::string> candidates(const std::string& path, const std::string& build_id,
                                    const FileSearch& search, Kind kind) {
  const std::string& sysroot = search.sysroot;
  std::vector<std::string> all;
  if (search.pack != nullptr) {
    all.push_back(build_id.empty() ? search.pack->code_at(path) : search.pack->code(build_id));
  }
  if (search.opened != nullptr) {
    all.push_back(search.opened->file_at(path));
  }
  all.push_back(sysroot + path);
  const std::string place = build_id_path(build_id);
  if (place.empty()) {
    return all;
  }
  for (const std::string& folder : search.debug_paths) {
    all.push_back(folder + "/" + place);
  }
  const char* const home = std::getenv("HOME");
  if (home != nullptr) {
    all.push_back(home + std::string("/.debug/") + place + "/elf");
  }
  if (!sysroot.empty()) {
    all.push_back(sysroot + "/root/.debug/" + place + "/elf");
  }
  if (kind == Kind::kCode) {
    return all;
  }
  if (search.pack != nullptr) {
    all.push_back(search.pack->debug(build_id));
  }
  for (const std::string& folder : search.debug_paths) {
    all.push_back(folder + "/" + place + ".debug");
  }
  if (!sysroot.empty()) {
    all.push_back(sysroot + "/usr/lib/debug/" + place + ".debug");
  }
  all.push_back("/usr/lib/debug/" + place + ".debug");
  return all;
}

// Files of long build-ids are recorded with the 20 bytes that fit.
bool fits(const CodeFile& file, const std::string& build_id) {
  return build_id.empty() || file.build_id.substr(0, build_id.size()) == build_id;
}

std::optional<CodeFile> first_that_fits(const std::vector<std::string>& paths,
                                        const std::string& build_id) {
  for (const std::string& path : paths) {
    auto file = path.empty() ? std::nullopt : read_code_file(path);
    if (file && fits(*file, build_id)) {
      return file;
    }
  }
  return std::nullopt;
}

std::optional<CodeFile> find_file(const std::string& path, const std::string& build_id,
                                  const FileSearch& search) {
  if (!names_a_file(path)) {
    return std::nullopt;  // [vdso], //anon and their like have no file
  }
  auto file = first_that_fits(candidates(path, build_id, search, Kind::kAny), build_id);
  return file ? file : first_that_fits({fetch_code(build_id, true)}, build_id);
}

// Address in memory minus address as the file counts it.
uint64_t bias_of(const perf::CodeMapping& mapping, const CodeFile* file) {
  constexpr uint64_t kPage = 4096;
  if (file != nullptr) {
    for (const Segment& segment : file->segments) {
      const uint64_t first = segment.offset & ~(kPage - 1);
      if (mapping.file_offset >= first && mapping.file_offset < segment.offset + segment.size) {
        return mapping.begin - mapping.file_offset - (segment.address - segment.offset);
      }
    }
  }
  return mapping.begin - mapping.file_offset;
}

}  // namespace

std::vector<capture::Module> find_modules(const std::vector<perf::CodeMapping>& mappings,
                                          const FileSearch& search) {
  std::map<std::pair<std::string, std::string>, std::optional<CodeFile>> files;
  std::vector<capture::Module> modules;
  for (const perf::CodeMapping& mapping : mappings) {
    const auto [entry, is_new] = files.try_emplace({mapping.path, mapping.build_id});
    if (is_new) {
      entry->second = find_file(mapping.path, mapping.build_id, search);
    }
    const CodeFile* const file = entry->second ? &*entry->second : nullptr;
    capture::Module module;
    module.path = mapping.path;
    module.build_id = file != nullptr ? file->build_id : mapping.build_id;
    module.bias = bias_of(mapping, file);
    module.begin = mapping.begin;
    module.end = mapping.begin + mapping.size;
    if (file != nullptr) {
      module.file = file->path;
    } else if (!search.sysroot.empty()) {
      module.file = search.sysroot + mapping.path;
    }
    modules.push_back(std::move(module));
  }
  return modules;
}

std::string find_code_file(const std::string& path, const std::string& build_id,
                           const FileSearch& search) {
  std::vector<std::string> paths;
  const std::string place = build_id_path(build_id);
  const bool named = names_a_file(path);
  if (named) {
    paths = candidates(path, build_id, search, Kind::kCode);
  } else if (path == "[vdso]" && !place.empty()) {
    if (search.pack != nullptr) {
      paths.push_back(search.pack->code(build_id));
    }
    for (const std::string& folder : search.debug_paths) {
      paths.push_back(folder + "/" + place);
    }
    const char* const home = std::getenv("HOME");
    if (home != nullptr) {
      paths.push_back(home + std::string("/.debug/") + place + "/vdso");
    }
    paths.push_back(search.sysroot + "/root/.debug/" + place + "/vdso");
  }
  if (const auto file = first_that_fits(paths, build_id)) {
    return file->path;
  }
  if (named && !build_id.empty()) {
    const auto fetched = first_that_fits({fetch_code(build_id, false)}, build_id);
    return fetched ? fetched->path : std::string();
  }
  // Without a build-id an image of the memory is as good.
  struct stat status {};
  const bool image = named && ::stat(paths.back().c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return image ? paths.back() : std::string();
}

namespace {

constexpr std::string_view kDescriptors = "/proc/self/fd/";  // files of a pack

// What a message calls a file that was looked at.
std::string shown(const std::string& path) {
  return path.starts_with(kDescriptors) ? "what the pack has for it" : path;
}

// Separate debugging information in the pack and the folders, by build-id.
std::string find_debug_file(const capture::Module& module, const FileSearch& search,
                            std::vector<std::string>* warnings) {
  const std::string place = build_id_path(module.build_id);
  if (place.empty()) {
    return {};
  }
  std::vector<std::string> paths;
  if (search.pack != nullptr) {
    paths.push_back(search.pack->debug(module.build_id));
  }
  for (const std::string& folder : search.debug_paths) {
    paths.push_back(folder + "/" + place + ".debug");
  }
  for (const std::string& path : paths) {
    const auto file = path.empty() ? std::nullopt : read_code_file(path);
    if (file && fits(*file, module.build_id)) {
      return path;
    }
    if (file) {
      warnings->push_back(fmt::format(
          "{}: {} has another build-id (build-id {}, recorded {}): it is not used", module.path,
          shown(path), build_id_text(file->build_id), build_id_text(module.build_id)));
    }
  }
  return {};
}

}  // namespace

ModuleFiles find_module_files(const capture::Module& module, const FileSearch& search) {
  ModuleFiles files;
  if (module.file.empty() && names_a_file(module.path)) {
    const auto found = find_file(module.path, module.build_id, search);
    files.file = found ? found->path : search.sysroot + module.path;
  } else {
    files.file = module.file;
  }
  files.name = files.file.starts_with(kDescriptors) ? module.path : files.file;
  files.debug.file = find_debug_file(module, search, &files.warnings);
  if (!search.sysroot.empty() || !search.debug_paths.empty()) {
    files.debug.folders = "+:.debug";
    for (const std::string& folder : search.debug_paths) {
      files.debug.folders += ":" + folder;
    }
    files.debug.folders += search.sysroot.empty()
                               ? ":/usr/lib/debug"
                               : fmt::format(":{}/usr/lib/debug:/usr/lib/debug", search.sysroot);
  }
  return files;
}

std::string build_id_of_file(const std::string& file) {
  const auto read = read_code_file(file);
  return read ? read->build_id : std::string();
}

std::string build_id_text(std::string_view build_id) {
  std::string text;
  for (const char byte : build_id) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text.empty() ? "none" : text;
}

}  // namespace tsomon
