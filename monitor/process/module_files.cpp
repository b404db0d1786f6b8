#include "monitor/process/module_files.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include <elfutils/libdwelf.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>

#include "monitor/process/descriptor.h"
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

// "/.build-id/12/34...", "" without a build-id.
std::string build_id_place(const std::string& build_id) {
  std::string hex;
  for (const char byte : build_id) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return hex.empty() ? hex : "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2);
}

bool names_a_file(const std::string& path) {
  return !path.empty() && path[0] == '/' && path.substr(0, 2) != "//";
}

// Of the code itself first, separate debugging data (.debug) last.
std::vector<std::string> candidates(const std::string& path, const std::string& build_id,
                                    const std::string& sysroot) {
  std::vector<std::string> all = {sysroot + path};
  const std::string place = build_id_place(build_id);
  if (place.empty()) {
    return all;
  }
  const char* const home = std::getenv("HOME");
  if (home != nullptr) {
    all.push_back(home + std::string("/.debug") + place + "/elf");
  }
  if (!sysroot.empty()) {
    all.push_back(sysroot + "/root/.debug" + place + "/elf");
    all.push_back(sysroot + "/usr/lib/debug" + place + ".debug");
  }
  all.push_back("/usr/lib/debug" + place + ".debug");
  return all;
}

std::optional<CodeFile> first_that_fits(const std::vector<std::string>& paths,
                                        const std::string& build_id) {
  for (const std::string& path : paths) {
    auto file = read_code_file(path);
    // Files of long build-ids are recorded with the 20 bytes that fit.
    if (file && (build_id.empty() || file->build_id.substr(0, build_id.size()) == build_id)) {
      return file;
    }
  }
  return std::nullopt;
}

std::optional<CodeFile> find_file(const std::string& path, const std::string& build_id,
                                  const std::string& sysroot) {
  if (!names_a_file(path)) {
    return std::nullopt;  // [vdso], //anon and their like have no file
  }
  return first_that_fits(candidates(path, build_id, sysroot), build_id);
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
                                          const std::string& sysroot) {
  std::map<std::pair<std::string, std::string>, std::optional<CodeFile>> files;
  std::vector<capture::Module> modules;
  for (const perf::CodeMapping& mapping : mappings) {
    const auto [entry, is_new] = files.try_emplace({mapping.path, mapping.build_id});
    if (is_new) {
      entry->second = find_file(mapping.path, mapping.build_id, sysroot);
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
    } else if (!sysroot.empty()) {
      module.file = sysroot + mapping.path;
    }
    if (!sysroot.empty()) {
      module.debug_path = fmt::format("+:.debug:{0}/usr/lib/debug:/usr/lib/debug", sysroot);
    }
    modules.push_back(std::move(module));
  }
  return modules;
}

std::string find_code_file(const std::string& path, const std::string& build_id,
                           const std::string& sysroot) {
  std::vector<std::string> paths;
  const std::string place = build_id_place(build_id);
  if (names_a_file(path)) {
    paths = candidates(path, build_id, sysroot);
    paths.erase(std::remove_if(paths.begin(), paths.end(),
                               [&](const std::string& candidate) {
                                 return candidate.find("/usr/lib/debug/.build-id/") !=
                                        std::string::npos;
                               }),
                paths.end());
  } else if (path == "[vdso]" && !place.empty()) {
    const char* const home = std::getenv("HOME");
    if (home != nullptr) {
      paths.push_back(home + std::string("/.debug") + place + "/vdso");
    }
    paths.push_back(sysroot + "/root/.debug" + place + "/vdso");
  }
  if (const auto file = first_that_fits(paths, build_id)) {
    return file->path;
  }
  // Without a build-id an image of the memory is as good.
  struct stat status {};
  const bool image = build_id.empty() && !paths.empty() && ::stat(paths[0].c_str(), &status) == 0 &&
                     S_ISREG(status.st_mode);
  return image ? paths[0] : std::string();
}

}  // namespace tsomon
