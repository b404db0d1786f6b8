#include "monitor/probe/modules.h"

#include <cstring>

#include <elf.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decoders/capture/format.h"
#include "decoders/capture/kernel_calls.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/copy.h"
#include "monitor/probe/not_instrumented.h"
#include "monitor/probe/real.h"

TSOMON_REAL(dl_iterate_phdr)
TSOMON_REAL(dlclose)

namespace tsomon::probe {

namespace {

// Of all that is ever noted; a page is used when something stands there.
constexpr size_t kSpace = size_t{4} << 20;

// Entries, as in the capture. Only with the loader's lock, but for what lies before `noted`.
char* space = nullptr;
char* at = nullptr;  // the end
uint64_t seen = 0;   // how many modules had been loaded in all
std::atomic<size_t> noted{0};

// Threads within dl_iterate_phdr, and whether the writer thread takes the lock.
std::atomic<uint32_t> iterating{0};
std::atomic<bool> looking{false};

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

// Whether the same was noted, and nothing later that overlaps it.
bool is_noted(const capture::ModuleEntry& entry, const char* path, const char* id) {
  bool same = false;
  capture::ModuleEntry other;
  for (const char* next = space; next != at; next += other.path_size + other.build_id_size) {
    copy(&other, next, sizeof other);
    next += sizeof other;
    if (other.begin < entry.end && entry.begin < other.end) {
      same = std::memcmp(&entry, &other, sizeof entry) == 0 &&
             std::memcmp(next, path, entry.path_size) == 0 &&
             std::memcmp(next + entry.path_size, id, entry.build_id_size) == 0;
    }
  }
  return same;
}

int add(dl_phdr_info* info, size_t, void* now) {
  if (info->dlpi_adds == seen) {
    return 1;
  }
  *static_cast<uint64_t*>(now) = info->dlpi_adds;
  char self[4096];
  const char* path = info->dlpi_name;
  if (path == nullptr || *path == '\0') {
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    path = self;
  } else if (*path != '/' && std::strchr(path, '/') != nullptr) {
    // As the loader was given it, when the program was where it is now, or before.
    const long size = kernel::call(SYS_getcwd, reinterpret_cast<long>(self), sizeof self);
    if (size > 0 && static_cast<size_t>(size) + 1 + std::strlen(path) < sizeof self) {
      self[size - 1] = '/';
      std::memcpy(self + size, path, std::strlen(path) + 1);
      path = self;
    }
  }
  bool is_new = false;
  capture::ModuleEntry entry;
  const char* id = "";
  find_build_id(info, &id, &entry.build_id_size);
  entry.bias = info->dlpi_addr;
  entry.path_size = static_cast<uint32_t>(std::strlen(path));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
      entry.begin = info->dlpi_addr + header.p_vaddr;
      entry.end = entry.begin + header.p_memsz;
      const size_t size = sizeof entry + entry.path_size + entry.build_id_size;
      if (static_cast<size_t>(space + kSpace - at) >= size && !is_noted(entry, path, id)) {
        at = copy(copy(copy(at, &entry, sizeof entry), path, entry.path_size), id,
                  entry.build_id_size);
        noted.store(static_cast<size_t>(at - space), std::memory_order_release);
        is_new = true;
      }
    }
  }
  if (is_new) {
    look_at_code(info, path);
  }
  return 0;
}

// With the loader's lock, which dl_iterate_phdr takes again: `seen` and the list belong together.
int add_all(dl_phdr_info*, size_t, void*) {
  uint64_t now = seen;
  real_dl_iterate_phdr(add, static_cast<void*>(&now));
  seen = now;
  return 1;
}

void scan_modules() {
  if (space == nullptr) {
    void* const memory = kernel::mmap(kSpace, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (memory == MAP_FAILED) {
      return;
    }
    space = at = static_cast<char*>(memory);
  }
  real_dl_iterate_phdr(add_all, nullptr);
}

}  // namespace

void note_modules() {
  looking.store(true, std::memory_order_seq_cst);
  if (iterating.load(std::memory_order_seq_cst) == 0) {
    scan_modules();
  }
  looking.store(false, std::memory_order_seq_cst);
}

const char* noted_modules(size_t* from, size_t* size) {
  const size_t before = *from;
  *from = noted.load(std::memory_order_acquire);
  *size = *from - before;
  return *size != 0 ? space + before : nullptr;
}

void reset_modules_after_fork() {
  iterating.store(0, std::memory_order_relaxed);
  looking.store(false, std::memory_order_relaxed);
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

using Callback = int (*)(dl_phdr_info*, size_t, void*);
TSOMON_HOOK int dl_iterate_phdr(Callback callback, void* data) {
  iterating.fetch_add(1, std::memory_order_seq_cst);
  // Not for ever: a signal handler may have interrupted the loader, whose lock is waited for.
  for (unsigned tries = 0; looking.load(std::memory_order_seq_cst) && tries < 10'000; ++tries) {
    let_others_run(tries);
  }
  const int result = real_dl_iterate_phdr(callback, data);
  iterating.fetch_sub(1, std::memory_order_seq_cst);
  return result;
}

TSOMON_HOOK int dlclose(void* handle) noexcept {
  if (recording && !finishing()) {
    scan_modules();
  }
  return real_dlclose(handle);
}
