// Units of work: the calls of tsomon.h, and the labels of all units.
#include <cstring>

#include "decoders/capture/writer.h"
#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/noise.h"
#include "monitor/probe/record_stamps.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/slices.h"

extern "C" __attribute__((weak, visibility("default"))) const char tsomon_units_may_be_cancelled;

namespace tsomon::probe {
namespace {

struct Label {
  uint32_t size;
  const char* text;
};

constexpr uint32_t kMaxLabels = 4096;
constexpr size_t kMaxText = 255;

// An entry is complete when label_count is above its index. slots: open addressing by hash of the
// text, an index plus 1.
Label labels[kMaxLabels];
std::atomic<uint32_t> label_count{0};
std::atomic<uint32_t> slots[2 * kMaxLabels];
std::atomic<uint32_t> labels_lock{0};

uint32_t hash(const char* text, size_t size) {
  uint32_t value = 2166136261U;
  for (size_t i = 0; i < size; ++i) {
    value = (value ^ static_cast<unsigned char>(text[i])) * 16777619U;
  }
  return value;
}

// The index of the label, or that of the free slot in `free_slot` and kMaxLabels.
uint32_t find(const char* name, size_t size, uint32_t* free_slot) {
  for (uint32_t at = hash(name, size);; ++at) {
    const uint32_t slot = at % (2 * kMaxLabels);
    const uint32_t index = slots[slot].load(std::memory_order_acquire);
    if (index == 0) {
      *free_slot = slot;
      return kMaxLabels;
    }
    const Label& label = labels[index - 1];
    if (label.size == size && std::memcmp(label.text, name, size) == 0) {
      return index - 1;
    }
  }
}

// The label that the thread found last under this address, if the text there is still the same.
struct Recent {
  const char* name;
  uint32_t id;
};
constexpr size_t kRecent = 16;
__thread Recent recent[kRecent];

inline Recent& recent_entry(const char* name) {
  return recent[reinterpret_cast<uint64_t>(name) / 8 % kRecent];
}

// Without a call, and without a store of the probe's own. kMaxLabels: the thread has to look it up.
inline __attribute__((always_inline)) uint32_t recent_label_id(const char* name) {
  const Recent& entry = recent_entry(name);
  if (entry.name != name) {
    return kMaxLabels;
  }
  const char* text = labels[entry.id].text;
  for (size_t i = 0; name[i] == text[i]; ++i) {
    if (name[i] == '\0') {
      return entry.id;
    }
  }
  return kMaxLabels;
}

uint32_t label_id_of(const char* name) {
  if (const uint32_t known = recent_label_id(name); known != kMaxLabels) {
    return known;
  }
  const uint32_t id = label_id(name, std::strlen(name));
  // Not the label that stands for others, and none that could not be kept.
  const bool is_it =
      id < label_count.load(std::memory_order_acquire) && std::strcmp(labels[id].text, name) == 0;
  recent_entry(name) = is_it ? Recent{name, id} : Recent{nullptr, 0};
  return id;
}

__attribute__((noinline)) uint32_t stamp_unit(Context* context) {
  put_stamp(*context);
  return local.units;
}
// What was not expected, or is the first of its thread.
__attribute__((noinline)) uint32_t enter_slowly(const char* name, uint64_t pc) {
  activate(pc);
  if (name == nullptr) {
    return 0;
  }
  if (local.thread == nullptr) {
    return controlled ? ++local.units : 0;
  }
  const uint32_t unit = begin_unit(label_id_of(name), pc);
  noise();
  return unit;
}

// A unit often begins between a store and the load that may overtake it: as atomic_hooks.cpp says of accesses, what is
// expected is recorded in few stores and without a call.
inline __attribute__((always_inline)) uint32_t enter(const char* name, uint64_t pc) {
  Context& context = *local.context;
  if (TSOMON_LIKELY(quick_units && name != nullptr && capture::has_room(context.encoder))) {
    const uint32_t label = recent_label_id(name);
    const bool stamped = is_last(context, context.stamped);
    const bool owed = owes_stamp(context);
    if (TSOMON_LIKELY(
            label != kMaxLabels &&
            capture::put_bare_cached(context.encoder, RecordType::kUnitBegin, label, pc))) {
      ++local.units;
      context.stamped = stamped ? context.encoder.end : kNowhere;
      if (owed) {
        context.owed = context.encoder.end;
      }
      if (!capture::expects_access(context.encoder)) {
        context.begun = context.encoder.end;
      } else if (TSOMON_UNLIKELY(owed || !stamped_within(context, options.stamp_max_age))) {
        return stamp_unit(&context);
      }
      return local.units;
    }
  }
  return enter_slowly(name, pc);
}

}  // namespace

uint32_t label_id(const char* name, size_t size) {
  size = size < kMaxText ? size : kMaxText;
  uint32_t free_slot = 0;
  uint32_t index = find(name, size, &free_slot);
  if (index != kMaxLabels) {
    return index;
  }
  const Guard guard(&labels_lock);
  index = find(name, size, &free_slot);
  if (index != kMaxLabels) {
    return index;
  }
  const uint32_t count = label_count.load(std::memory_order_relaxed);
  // The last one stands for all that do not fit.
  if (count == kMaxLabels - 1) {
    name = "(too many labels)";
    size = std::strlen(name);
    index = find(name, size, &free_slot);
    if (index != kMaxLabels) {
      return index;
    }
  }
  auto* const text = count < kMaxLabels ? static_cast<char*>(take_memory(size + 1)) : nullptr;
  if (text == nullptr) {
    return 0;
  }
  std::memcpy(text, name, size);
  labels[count] = {static_cast<uint32_t>(size), text};
  slots[free_slot].store(count + 1, std::memory_order_release);
  label_count.store(count + 1, std::memory_order_release);
  return count;
}

uint32_t begin_unit(uint32_t label, uint64_t pc) {
  put_boundary(RecordType::kUnitBegin, label, pc);
  return local.units;
}

// Units nest: as many as there were with it are open while it is.
void end_unit(uint32_t unit, uint64_t pc) {
  if (local.units >= unit) {
    put_boundary(RecordType::kUnitEnd, 0, pc);
  }
}

// Whether the program has code that cancels units (tsomon.h), as far as it was there at the start.
bool may_cancel_units() {
  const volatile char* const mark = &tsomon_units_may_be_cancelled;
  return options.cancels || mark != nullptr;
}

void lock_labels() {
  for (unsigned tries = 0; labels_lock.exchange(1, std::memory_order_acquire) != 0; ++tries) {
    let_others_run(tries);
  }
}
void unlock_labels() { labels_lock.store(0, std::memory_order_release); }

char* copy_labels(uint32_t* from, char* at, char* end) {
  const uint32_t count = label_count.load(std::memory_order_acquire);
  for (; *from < count; ++*from) {
    char* const next = capture::put_text(at, end, *from, labels[*from].text, labels[*from].size);
    if (next == nullptr) {
      break;
    }
    at = next;
  }
  return at;
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

namespace explore = tsomon::explore;

// Under control (monitor/explore/runtime).
static bool explored_unit(explore::MarkKind kind, const char* name) {
  if (TSOMON_LIKELY(!explore::active)) {
    return false;
  }
  explore::mark(kind, name != nullptr ? explore::label(name, std::strlen(name)) : 0);
  return true;
}

TSOMON_HOOK void tsomon_runtime_outcome(const char* text) {
  if (explore::active) {
    explore::say_outcome(text);
  }
}

TSOMON_HOOK void tsomon_runtime_call(const char* text, const void* caller) {
  if (explore::active) {
    explore::say_call(text, reinterpret_cast<uint64_t>(caller));
  }
}
TSOMON_HOOK void tsomon_runtime_return(const char* text) {
  if (explore::active) {
    explore::say_return(text);
  }
}

TSOMON_HOOK void tsomon_runtime_unit_begin(const char* name) {
  if (explored_unit(explore::MarkKind::kUnitBegin, name)) {
    return;
  }
  activate(TSOMON_PC());
  if (name == nullptr) {
    return;
  }
  if (local.thread == nullptr) {
    local.units += controlled ? 1 : 0;
    return;
  }
  put_boundary(RecordType::kUnitBegin, label_id_of(name), TSOMON_PC());
  noise();
}

TSOMON_HOOK void tsomon_runtime_unit_end() {
  if (explored_unit(explore::MarkKind::kUnitEnd, nullptr)) {
    return;
  }
  noise();
  put_boundary(RecordType::kUnitEnd, 0, TSOMON_PC());
}

TSOMON_HOOK void tsomon_runtime_unit_cancel() {
  if (explored_unit(explore::MarkKind::kUnitCancel, nullptr)) {
    return;
  }
  noise();
  put_boundary(RecordType::kUnitCancel, 0, TSOMON_PC());
}

// Of scopes: which unit it is. 0: none was begun.
TSOMON_HOOK unsigned tsomon_runtime_unit_enter(const char* name) {
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::enter_unit(name);
  }
  return enter(name, TSOMON_PC());
}

TSOMON_HOOK void tsomon_runtime_unit_leave(unsigned unit) {
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::leave_unit(unit);
  }
  noise();
  if (unit != 0) {
    end_unit(unit, TSOMON_PC());
  }
}
