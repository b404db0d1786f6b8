#include "monitor/probe/twins.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <linux/membarrier.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/probe/guard.h"
#include "monitor/probe/runtime.h"

namespace tsomon::probe {
namespace {

constexpr uint8_t kPlain = 0xa9;    // test $distance, %eax
constexpr uint8_t kWatched = 0xe9;  // jmp
constexpr uint64_t kPage = 4096;
constexpr size_t kMostModules = 1024;

// Distances of the entries from where they stand, by address. No lock: a fork at any moment leaves nothing held.
struct Module {
  enum State : uint32_t { kFree, kBeingTold, kHere, kBeingWritten };
  std::atomic<uint32_t> state{kFree};
  const int32_t* begin = nullptr;
  const int32_t* end = nullptr;
};
Module modules[kMostModules];
TwinChoice chosen;
std::atomic<uint32_t> choices{0};  // how often one was made; odd: it is being changed

uint64_t entry_of(const int32_t* distance) {
  return reinterpret_cast<uint64_t>(distance) + static_cast<int64_t>(*distance);
}

// The entries from `entry` on that lie in one page. Returns the first one behind them; nullptr: the kernel refused.
const int32_t* write_page(int memory, const Module& module, const int32_t* entry,
                          const TwinChoice& choice) {
  const uint64_t first = entry_of(entry);
  const uint64_t page = first / kPage;
  uint8_t bytes[kPage];
  uint64_t size = 0;
  for (; entry != module.end && entry_of(entry) / kPage == page && entry_of(entry) >= first;
       ++entry) {
    const uint64_t at = entry_of(entry) - first;
    if (at >= size) {
      std::memcpy(bytes + size, reinterpret_cast<const void*>(first + size), at + 1 - size);
      size = at + 1;
    }
    if (bytes[at] == kPlain || bytes[at] == kWatched) {
      bytes[at] = choice.has(first + at) ? kWatched : kPlain;
    }
  }
  const long written = kernel::call(SYS_pwrite64, memory, reinterpret_cast<long>(bytes),
                                    static_cast<long>(size), static_cast<long>(first));
  return written == static_cast<long>(size) ? entry : nullptr;
}

// False: it is not there, or is about to go.
bool hold(Module& module) {
  for (unsigned tries = 0;; ++tries) {
    uint32_t expected = Module::kHere;
    if (module.state.compare_exchange_strong(expected, Module::kBeingWritten)) {
      return true;
    }
    if (expected != Module::kBeingWritten) {
      return false;
    }
    let_others_run(tries);
  }
}

bool write_module(int memory, const Module& module, const TwinChoice& choice) {
  for (const int32_t* entry = module.begin; entry != nullptr && entry != module.end;) {
    entry = write_page(memory, module, entry, choice);
    if (entry == nullptr) {
      return false;
    }
  }
  return true;
}

// All processors go on with what is there now.
void synchronise() {
  if (kernel::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) == 0) {
    kernel::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
  }
}

// `only`: nullptr: all.
bool write_modules(const Module* only, const TwinChoice& choice) {
  const uint64_t signals = block_signals();  // a handler might load a library, and wait
  const int memory = kernel::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  bool written = memory >= 0;
  for (Module& module : modules) {
    if (written && (only == nullptr || only == &module) && hold(module)) {
      written = write_module(memory, module, choice);
      module.state.store(Module::kHere);
    }
  }
  const int error = errno;
  if (memory >= 0) {
    kernel::close(memory);
  }
  synchronise();
  restore_signals(signals);
  if (!written) {
    warn("cannot %s functions: /proc/self/mem: %s",
         choice.kind == TwinChoice::kNone ? "stop watching" : "watch", std::strerror(error));
  }
  return written;
}

// What holds, and its number.
TwinChoice choice_now(uint32_t* number) {
  for (unsigned tries = 0;; ++tries) {
    *number = choices.load();
    const TwinChoice choice = chosen;
    if (*number % 2 == 0 && choices.load() == *number) {
      return choice;
    }
    let_others_run(tries);
  }
}

// Of places in the code the function whose twin they are in, where it begins; 0: in no twin. The check is place ^ entry: what two
// threads have written is no entry of either. Of modules that are there: a new one forgets all.
struct KnownPlace {
  std::atomic<uint64_t> check{0};
  std::atomic<uint64_t> entry{0};
};
constexpr size_t kKnownPlaces = 4096;
constexpr size_t kWays = 4;  // places that one may be known at
KnownPlace known_places[kKnownPlaces];

// Where the place is known, or will be.
KnownPlace& known_place(uint64_t pc, bool* is_known) {
  KnownPlace* const set = &known_places[(pc ^ (pc >> 12)) % (kKnownPlaces / kWays) * kWays];
  KnownPlace* free = &set[(pc >> 4) % kWays];
  for (size_t i = 0; i < kWays; ++i) {
    const uint64_t check = set[i].check.load(std::memory_order_relaxed);
    if ((check ^ set[i].entry.load(std::memory_order_relaxed)) == pc) {
      *is_known = true;
      return set[i];
    }
    free = check == 0 ? &set[i] : free;
  }
  *is_known = false;
  return *free;
}

void forget_places() {
  for (KnownPlace& place : known_places) {
    place.check.store(0, std::memory_order_relaxed);
    place.entry.store(0, std::memory_order_relaxed);
  }
}

// The twin that an entry leads to: behind the five bytes, of which the last four are the distance.
uint64_t twin_of(uint64_t entry) {
  int32_t distance = 0;
  std::memcpy(&distance, reinterpret_cast<const void*>(entry + 1), sizeof distance);
  return entry + 5 + static_cast<int64_t>(distance);
}

bool has_twins() {
  for (const Module& module : modules) {
    if (module.state.load(std::memory_order_acquire) >= Module::kHere) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool TwinChoice::has(uint64_t entry) const {
  if (kind == kNone || kind == kAll) {
    return kind == kAll;
  }
  return std::binary_search(entries, entries + count, entry) == (kind == kOnly);
}

bool watch_twins(const TwinChoice& choice) {
  choices.fetch_add(1);
  chosen = choice;
  choices.fetch_add(1);
  return !has_twins() || write_modules(nullptr, choice);
}

bool is_in_watched_twin(uint64_t pc) {
  bool is_known = false;
  KnownPlace& known = known_place(pc, &is_known);
  uint64_t entry = known.entry.load(std::memory_order_relaxed);
  if (!is_known) {
    // The code belongs to the function or twin that begins last in front of it.
    uint64_t nearest = 0;
    const auto offer = [&](uint64_t begin, uint64_t of) {
      if (begin < pc && begin > nearest) {
        nearest = begin;
        entry = of;
      }
    };
    entry = 0;
    const uint64_t signals = block_signals();  // a handler might ask for a module that is held
    for (Module& module : modules) {
      if (hold(module)) {
        for (const int32_t* each = module.begin; each != module.end; ++each) {
          offer(entry_of(each), 0);
          offer(twin_of(entry_of(each)), entry_of(each));
        }
        module.state.store(Module::kHere);
      }
    }
    restore_signals(signals);
    known.check.store(pc ^ entry, std::memory_order_relaxed);
    known.entry.store(entry, std::memory_order_relaxed);
  }
  uint32_t number = 0;
  return entry != 0 && choice_now(&number).has(entry);
}

void unwatch_twins_after_fork() {
  for (Module& module : modules) {
    uint32_t expected = Module::kBeingWritten;
    module.state.compare_exchange_strong(expected, Module::kHere);
  }
  // The thread that was changing it is not here.
  const bool changing = (choices.fetch_and(~1U) & 1U) != 0;
  if (changing || chosen.kind != TwinChoice::kNone) {
    watch_twins(false);
  }
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

TSOMON_HOOK void tsomon_runtime_twins_here(const int32_t* begin, const int32_t* end) {
  if (begin == end) {
    return;
  }
  for (Module& module : modules) {
    uint32_t expected = Module::kFree;
    if (module.state.compare_exchange_strong(expected, Module::kBeingTold)) {
      module.begin = begin;
      module.end = end;
      forget_places();
      module.state.store(Module::kHere);
      // Plain is how it comes. Another choice may be made meanwhile: the last one counts.
      uint32_t number = 0;
      if (const TwinChoice choice = choice_now(&number); choice.kind != TwinChoice::kNone) {
        write_modules(&module, choice);
      }
      while (choices.load() != number) {
        const TwinChoice choice = choice_now(&number);
        write_modules(&module, choice);
      }
      return;
    }
  }
  if (recording) {
    warn("more than %zu libraries with functions to watch: the others are not seen", kMostModules);
  }
}

TSOMON_HOOK void tsomon_runtime_twins_gone(const int32_t* begin, const int32_t*) {
  for (Module& module : modules) {
    if (module.state.load(std::memory_order_acquire) >= Module::kHere && module.begin == begin &&
        hold(module)) {
      module.state.store(Module::kFree);
      return;
    }
  }
}
