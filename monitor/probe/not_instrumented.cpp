#include "monitor/probe/not_instrumented.h"

#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <elf.h>

#include "decoders/capture/writer.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/copy.h"

// The text behind the colon is filled in when the program has been linked.
extern "C" {
__attribute__((used)) char tsomon_not_instrumented[1024] = "TSOMON-NOT-INSTRUMENTED:";
}

namespace tsomon::probe {
namespace {

constexpr uint32_t kMostModules = 32;
const char* modules[kMostModules];
std::atomic<uint32_t> module_count{0};
std::atomic<uint32_t> system_count{0};
// Told so far.
bool linked_told = false;
uint32_t modules_told = 0;
uint32_t system_told = 0;
std::atomic<uint32_t> child_count{0};
uint32_t children_told = 0;
const char* end_of_recording = nullptr;
std::atomic<const char*> shared_memory{nullptr};
bool shared_told = false;

// Asm statements that are not understood: the texts, which may lie in modules that are unloaded.
constexpr uint32_t kMostStatements = 32;
struct Statement {
  std::atomic<const char*> from{nullptr};
  std::atomic<bool> copied{false};
  char text[128];
};
Statement statements[kMostStatements];
bool statement_told[kMostStatements];

bool begins_with(const char* text, const char* with) {
  return std::strncmp(text, with, std::strlen(with)) == 0;
}

bool is_of_system(const char* path) {
  return begins_with(path, "/usr/lib") || begins_with(path, "/lib") || *path != '/';  // the vdso
}

// Whether the module's dynamic symbols name a hook.
bool has_hooks(const dl_phdr_info* info) {
  const char* strings = nullptr;
  size_t size = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) {
      continue;
    }
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_STRTAB) {
        strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
      } else if (entry->d_tag == DT_STRSZ) {
        size = entry->d_un.d_val;
      }
    }
  }
  return strings != nullptr && memmem(strings, size, "\0__tsan_", 8) != nullptr;
}

char* put(char* at, char* end, capture::NotInstrumented what, const char* text) {
  const size_t size = strnlen(text, 1000);
  return capture::put_text(at, end, static_cast<uint32_t>(what), text, static_cast<uint32_t>(size));
}

// A number that replaces the one told before.
char* put_count(char* at, char* end, capture::NotInstrumented what,
                const std::atomic<uint32_t>& current, uint32_t* told) {
  const uint32_t count = current.load(std::memory_order_relaxed);
  if (count == *told) {
    return at;
  }
  char text[16];
  std::snprintf(text, sizeof text, "%u", count);
  char* const next = put(at, end, what, text);
  if (next == nullptr) {
    return at;
  }
  *told = count;
  return next;
}

}  // namespace

// Of more than there is room for nothing is told: that some are not understood is.
void note_not_understood(const char* text) {
  for (Statement& statement : statements) {
    const char* from = statement.from.load(std::memory_order_acquire);
    if (from == nullptr && statement.from.compare_exchange_strong(from, text)) {
      const size_t size = strnlen(text, sizeof statement.text - 1);
      copy(statement.text, text, size);
      statement.text[size] = 0;
      statement.copied.store(true, std::memory_order_release);
      return;
    }
    if (from == text) {
      return;
    }
  }
}

void note_end_of_recording(const char* why) { end_of_recording = why; }

bool is_in_system_library(uint64_t pc) {
  Dl_info there;
  Dl_info here;
  return dladdr(reinterpret_cast<void*>(pc), &there) != 0 && there.dli_fname != nullptr &&
         *there.dli_fname == '/' && is_of_system(there.dli_fname) &&
         dladdr(reinterpret_cast<void*>(&is_in_system_library), &here) != 0 &&
         there.dli_fbase != here.dli_fbase;
}

void note_shared_memory(const char* how) {
  if (!options.own_shared_memory) {
    shared_memory.store(how, std::memory_order_relaxed);
  }
}

void count_child() { child_count.fetch_add(1, std::memory_order_relaxed); }

void look_at_code(const dl_phdr_info* info, const char* path) {
  if (info->dlpi_name == nullptr || *info->dlpi_name == '\0') {
    return;  // the program itself
  }
  if (is_of_system(path)) {
    system_count.fetch_add(*path == '/' ? 1 : 0, std::memory_order_relaxed);
    return;
  }
  const uint32_t count = module_count.load(std::memory_order_relaxed);
  if (count == kMostModules || has_hooks(info)) {
    return;
  }
  const size_t size = std::strlen(path);
  auto* const kept = static_cast<char*>(take_memory(size + 1));
  if (kept != nullptr) {
    std::memcpy(kept, path, size + 1);
    modules[count] = kept;
    module_count.store(count + 1, std::memory_order_release);
  }
}

char* copy_not_understood(char* at, char* end) {
  for (uint32_t i = 0; i < kMostStatements; ++i) {
    if (!statement_told[i] && statements[i].copied.load(std::memory_order_acquire)) {
      char* const next = put(at, end, capture::NotInstrumented::kAssembly, statements[i].text);
      if (next == nullptr) {
        return at;
      }
      statement_told[i] = true;
      at = next;
    }
  }
  return at;
}

char* copy_not_instrumented(char* at, char* end) {
  const volatile char* const linked =
      tsomon_not_instrumented + sizeof "TSOMON-NOT-INSTRUMENTED:" - 1;
  if (!linked_told && *linked != '\0') {
    if (char* const next =
            put(at, end, capture::NotInstrumented::kLinked, const_cast<const char*>(linked))) {
      at = next;
    }
  }
  linked_told = true;
  for (; modules_told < module_count.load(std::memory_order_acquire); ++modules_told) {
    char* const next = put(at, end, capture::NotInstrumented::kModule, modules[modules_told]);
    if (next == nullptr) {
      return at;
    }
    at = next;
  }
  if (end_of_recording != nullptr) {
    char* const next = put(at, end, capture::NotInstrumented::kModule, end_of_recording);
    if (next == nullptr) {
      return at;
    }
    end_of_recording = nullptr;
    at = next;
  }
  if (const char* const how = shared_memory.load(std::memory_order_relaxed);
      how != nullptr && !shared_told) {
    char* const next = put(at, end, capture::NotInstrumented::kShared, how);
    if (next == nullptr) {
      return at;
    }
    shared_told = true;
    at = next;
  }
  at = put_count(at, end, capture::NotInstrumented::kSystemModules, system_count, &system_told);
  at = put_count(at, end, capture::NotInstrumented::kChildren, child_count, &children_told);
  return at;
}

void forget_not_instrumented() {
  linked_told = false;
  shared_told = false;
  modules_told = 0;
  system_told = 0;
  child_count.store(0, std::memory_order_relaxed);
  children_told = 0;
  for (uint32_t i = 0; i < kMostStatements; ++i) {
    statement_told[i] = false;
    statements[i].copied.store(false, std::memory_order_relaxed);
    statements[i].from.store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace tsomon::probe
