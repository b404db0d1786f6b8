#include "monitor/probe/modules.h"

#include <cstring>

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decoders/capture/writer.h"

namespace tsomon::probe {

namespace {

constexpr size_t kSpace = size_t{4} << 20;

struct Walk {
  char* at;
  char* end;
  uint64_t seen;
  uint64_t now;
};

void find_build_id(const dl_phdr_info* info, const char** id, uint32_t* size) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) {
      continue;
    }
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* const name = at + sizeof note;
      const char* const data = name + ((note.n_namesz + 3U) & ~3U);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && data + note.n_descsz <= end &&
          std::memcmp(name, "GNU", 4) == 0) {
        *id = data;
        *size = note.n_descsz;
        return;
      }
      at = data + ((note.n_descsz + 3U) & ~3U);
    }
  }
}

int add(dl_phdr_info* info, size_t, void* data) {
  auto* const walk = static_cast<Walk*>(data);
  walk->now = info->dlpi_adds;
  if (walk->now == walk->seen) {
    return 1;
  }
  char self[4096];
  const char* path = info->dlpi_name;
  if (path == nullptr || *path == '\0') {
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    path = self;
  }
  capture::ModuleEntry entry;
  const char* id = nullptr;
  find_build_id(info, &id, &entry.build_id_size);
  entry.bias = info->dlpi_addr;
  entry.path_size = static_cast<uint32_t>(std::strlen(path));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
      entry.begin = info->dlpi_addr + header.p_vaddr;
      entry.end = entry.begin + header.p_memsz;
      char* const next = capture::put_module(walk->at, walk->end, entry, path, id);
      if (next != nullptr) {
        walk->at = next;
      }
    }
  }
  return 0;
}

}  // namespace

const char* describe_modules(uint64_t* seen, size_t* size) {
  static char* space = nullptr;
  if (space == nullptr) {
    void* const memory = mmap(nullptr, kSpace, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      return nullptr;
    }
    space = static_cast<char*>(memory);
  }
  Walk walk{space, space + kSpace, *seen, 0};
  dl_iterate_phdr(add, &walk);
  *seen = walk.now;
  *size = static_cast<size_t>(walk.at - space);
  return *size != 0 ? space : nullptr;
}

}  // namespace tsomon::probe
