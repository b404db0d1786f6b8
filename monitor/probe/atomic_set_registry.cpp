// Atomic sets: the ranges that the program has declared part of one, and its global variables that
// the option set=PATTERN names.
#include <cstring>

#include <elf.h>

#include "decoders/capture/writer.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/symbol_table.h"
#include "monitor/probe/watched_memory.h"

namespace tsomon::probe {
namespace {

constexpr uint32_t kMaxRanges = 4096;
constexpr size_t kMaxName = 255;

struct Range {
  capture::SetEntry entry;
  const char* name = nullptr;
};

// A range is complete when range_count is above its index. Ranges are declared before the
// constructors of this file would run: there is none.
constinit Range ranges[kMaxRanges];
std::atomic<uint32_t> range_count{0};
std::atomic<uint32_t> sets_lock{0};
bool one_is_missing = false;  // under sets_lock: a range says so

bool same(const Range& range, const capture::SetEntry& entry, const char* name) {
  return range.entry.address == entry.address && range.entry.size == entry.size &&
         range.entry.name_size == entry.name_size &&
         std::memcmp(range.name, name, entry.name_size) == 0;
}

// True: it is new.
bool declare(const char* name, uint64_t address, uint64_t size) {
  capture::SetEntry entry;
  entry.address = address;
  entry.size = size;
  const size_t length = std::strlen(name);
  entry.name_size = static_cast<uint32_t>(length < kMaxName ? length : kMaxName);
  const Guard guard(&sets_lock);
  const uint32_t count = range_count.load(std::memory_order_relaxed);
  const char* kept = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    if (same(ranges[i], entry, name)) {
      return false;
    }
    if (ranges[i].entry.name_size == entry.name_size &&
        std::memcmp(ranges[i].name, name, entry.name_size) == 0) {
      kept = ranges[i].name;
    }
  }
  if (count == kMaxRanges) {
    return false;
  }
  if (kept == nullptr && count < kMaxRanges - 1) {
    auto* const text = static_cast<char*>(take_memory(entry.name_size));
    if (text != nullptr) {
      std::memcpy(text, name, entry.name_size);
    }
    kept = text;
  }
  bool missing = count == kMaxRanges - 1 || kept == nullptr;
  if (!missing && options.only_sets && !watch_range(address, size)) {
    warn("accesses=sets: cannot watch all of the set '%s'", name);
    missing = true;
  }
  // One range, at the latest the last one, says that there were more.
  if (missing && one_is_missing) {
    return false;
  }
  one_is_missing |= missing;
  ranges[count] = missing ? Range{{}, ""} : Range{entry, kept};
  range_count.store(count + 1, std::memory_order_release);
  return true;
}

bool pattern_found[Options::kMaxPatterns];

}  // namespace

bool declare_named_sets(bool required) {
  if (options.sets == 0) {
    return true;  // a look at all symbols takes long
  }
  find_symbols(STT_OBJECT, options.set, options.sets, [](const NamedSymbol& symbol) {
    pattern_found[symbol.pattern] = true;
    declare(options.set[symbol.pattern], symbol.address, symbol.size);
  });
  for (int i = 0; i < options.sets; ++i) {
    if (!pattern_found[i]) {
      warn_of_no_match("set", STT_OBJECT, "global variable", options.set[i],
                       i != 0 ? " and none of the patterns before it" : "");
      return !required;
    }
  }
  return true;
}

void lock_sets() {
  for (unsigned tries = 0; sets_lock.exchange(1, std::memory_order_acquire) != 0; ++tries) {
    let_others_run(tries);
  }
}
void unlock_sets() { sets_lock.store(0, std::memory_order_release); }

char* copy_sets(uint32_t* from, char* at, char* end) {
  const char* const begin = at;
  const uint32_t count = range_count.load(std::memory_order_acquire);
  for (; *from < count; ++*from) {
    char* const next = capture::put_set(at, end, ranges[*from].entry, ranges[*from].name);
    if (next == nullptr) {
      break;
    }
    at = next;
  }
  return at == begin ? nullptr : at;
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

// Also before the first thread or unit: the declaration is no event.
TSOMON_HOOK void tsomon_runtime_atomic_set(const char* name, const volatile void* address,
                                           unsigned long size) {
  if (!recording || name == nullptr || *name == '\0' || size == 0) {
    return;
  }
  if (declare(name, reinterpret_cast<uint64_t>(address), size) && options.only_sets &&
      local.thread != nullptr) {
    // No store to the range that was not recorded may be in the buffer when the first load is.
    drain_before_sleeping(TSOMON_PC());
  }
}
