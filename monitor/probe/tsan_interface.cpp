// ThreadSanitizer's public interface (sanitizer/tsan_interface.h), for programs that call it.
//
// Locks       __tsan_mutex_post_lock and __tsan_mutex_pre_unlock record an acquisition and a
//             release. An acquisition counts as a drained store buffer, so the runtime drains it
//             (MFENCE). Code between pre and post is the lock's own: loads of atomics in there,
//             failed compare-exchanges, and exchanges that change nothing, are not recorded (of
//             these the fence is): of loads any part may be left out. Stores are.
// Fibers      Each is a thread of the capture. A switch drains the store buffer and is a fence and
//             a stamp of the one that is left, a stamp of the other: the hardware executes both in
//             order, and so do stamps order them. Without __tsan_switch_to_fiber_no_sync the
//             program relies on it, and the switch is a send to the other one (EventKind::kSend).
// Promises    __tsan_release is a send, __tsan_acquire a receive. No store, no fence and no conflict
//             is invented: nothing says which instructions do it.
// Ignoring    leaves nothing out, which could make verdicts wrong: it says what is not to be reported.
//             So do the options that the program gives itself (__tsan_default_options): report_bugs=0
//             is all accesses of all threads. Its other options are ThreadSanitizer's own.
// External    reads and writes of objects that only a library knows are recorded as accesses of one
//             byte at the object's address.
// All are weak: a program that has its own keeps it. docs/guide/record.md has the table.
#include <algorithm>
#include <string_view>

#include "monitor/probe/before_start.h"
#include "monitor/probe/operation.h"
#include "tso/model/channels.h"

using namespace tsomon::probe;

extern "C" __attribute__((weak)) const char* __tsan_default_options();

namespace {

constexpr unsigned kReadLock = 1U << 3;
constexpr unsigned kTryLock = 1U << 4;
constexpr unsigned kTryLockFailed = 1U << 5;

// A fiber that there was no memory for, or of a program that is not recorded.
char no_fiber;

uint64_t id(const volatile void* object) { return reinterpret_cast<uint64_t>(object); }

void enter_lock_code() { ++local.lock_code; }
void leave_lock_code() {
  if (local.lock_code != 0) {
    --local.lock_code;
  }
}

}  // namespace

namespace tsomon::probe {

void lock_acquired(const volatile void* lock, bool shared, uint64_t pc) {
  if (local.thread != nullptr) {
    __builtin_ia32_mfence();
    put_point_now(shared ? RecordType::kAcquireShared : RecordType::kAcquire, id(lock), pc);
  }
}

bool asks_for_no_reports() {
  const char* const options =
      __tsan_default_options != nullptr ? __tsan_default_options() : nullptr;
  constexpr std::string_view kOption = "report_bugs=";
  bool nothing = false;
  for (std::string_view rest = options != nullptr ? options : ""; !rest.empty();) {
    const size_t end = std::min(rest.find_first_of(" ,:\t\n\r"), rest.size());
    const std::string_view one = rest.substr(0, end);
    if (one.substr(0, kOption.size()) == kOption) {
      const std::string_view value = one.substr(kOption.size());
      nothing = value == "0" || value == "no" || value == "false";
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return nothing;
}

void put_promise(const volatile void* object, uint64_t pc) {
  if (const uint64_t now = put_point_now(RecordType::kSend, id(object), pc); now != 0) {
    leave_stamp(id(object), now, false);
  }
}

static void say(uint64_t channel, uint64_t pc) { put_point_now(RecordType::kSend, channel, pc); }

void put_ignored(uint64_t pc) {
  say(kIgnored | (local.ignored_loads != 0 ? 1U : 0U) | (local.ignored_stores != 0 ? 2U : 0U), pc);
}

void put_benign(uint64_t address, size_t size, uint64_t pc) {
  if (!activated()) {
    return keep_benign(address, size);
  }
  for (size_t done = 0; done < size; done += kMostBenignBytes) {
    const size_t rest = size - done;
    say(benign_bytes(address + done, rest < kMostBenignBytes ? rest : kMostBenignBytes), pc);
  }
}

void put_promised(const volatile void* object, uint64_t pc) { put_receive(id(object), pc); }

void lock_released(const volatile void* lock, bool shared, uint64_t pc) {
  put_point_now(shared ? RecordType::kReleaseShared : RecordType::kRelease, id(lock), pc);
}

}  // namespace tsomon::probe

TSOMON_HOOK void __tsan_acquire(void* object) { put_promised(object, TSOMON_PC()); }
TSOMON_HOOK void __tsan_release(void* object) { put_promise(object, TSOMON_PC()); }

TSOMON_HOOK void __tsan_mutex_create(void*, unsigned) {}
TSOMON_HOOK void __tsan_mutex_destroy(void*, unsigned) {}
TSOMON_HOOK void __tsan_mutex_pre_lock(void*, unsigned) { enter_lock_code(); }
TSOMON_HOOK void __tsan_mutex_post_lock(void* lock, unsigned flags, int) {
  leave_lock_code();
  if ((flags & kTryLockFailed) == 0) {
    if ((flags & kTryLock) != 0 && local.thread != nullptr) {
      put_point_now(RecordType::kTry, id(lock), TSOMON_PC());
    }
    lock_acquired(lock, (flags & kReadLock) != 0, TSOMON_PC());
  }
}
// What it returns comes back as `recursion` of post_lock, which does not need it.
TSOMON_HOOK int __tsan_mutex_pre_unlock(void* lock, unsigned flags) {
  lock_released(lock, (flags & kReadLock) != 0, TSOMON_PC());
  enter_lock_code();
  return 1;
}
TSOMON_HOOK void __tsan_mutex_post_unlock(void*, unsigned) { leave_lock_code(); }
TSOMON_HOOK void __tsan_mutex_pre_signal(void*, unsigned) { enter_lock_code(); }
TSOMON_HOOK void __tsan_mutex_post_signal(void*, unsigned) { leave_lock_code(); }
TSOMON_HOOK void __tsan_mutex_pre_divert(void*, unsigned) { leave_lock_code(); }
TSOMON_HOOK void __tsan_mutex_post_divert(void*, unsigned) { enter_lock_code(); }

TSOMON_HOOK void* __tsan_external_register_tag(const char*) {
  static std::atomic<uintptr_t> tags{0};
  return reinterpret_cast<void*>(tags.fetch_add(1, std::memory_order_relaxed) + 1);
}
TSOMON_HOOK void __tsan_external_register_header(void*, const char*) {}
TSOMON_HOOK void __tsan_external_assign_tag(void*, void*) {}
TSOMON_HOOK void __tsan_external_read(void* object, void* caller, void*) {
  access(RecordType::kRead, object, 1, caller != nullptr ? id(caller) : TSOMON_PC());
}
TSOMON_HOOK void __tsan_external_write(void* object, void* caller, void*) {
  access(RecordType::kWrite, object, 1, caller != nullptr ? id(caller) : TSOMON_PC());
}

TSOMON_HOOK void* __tsan_get_current_fiber() {
  start();
  activate(TSOMON_PC());
  return local.thread != nullptr ? static_cast<void*>(local.thread) : &no_fiber;
}
TSOMON_HOOK void* __tsan_create_fiber(unsigned) {
  start();
  activate(TSOMON_PC());
  if (local.thread == nullptr) {
    return &no_fiber;
  }
  Thread* const fiber = new_thread();
  if (fiber == nullptr) {
    count_lost();
    return &no_fiber;
  }
  fiber->is_fiber = true;
  fiber->began = put_point_now(RecordType::kFork, fiber->number, TSOMON_PC()) + 1;
  return fiber;
}
TSOMON_HOOK void __tsan_destroy_fiber(void* handle) {
  auto* const fiber = static_cast<Thread*>(handle);
  if (handle == &no_fiber || local.thread == nullptr || fiber == local.thread ||
      !is_of_this_process(fiber)) {
    return;
  }
  end_fiber(fiber);
  put_point_after(RecordType::kJoin, fiber->number, TSOMON_PC(), fiber->ended);
}
TSOMON_HOOK void __tsan_switch_to_fiber(void* handle, unsigned flags) {
  auto* const fiber = static_cast<Thread*>(handle);
  if (local.thread == nullptr || fiber == local.thread) {
    return;
  }
  if (handle == &no_fiber || !is_of_this_process(fiber)) {
    count_lost();  // what it does is taken for this one's
    return;
  }
  constexpr unsigned kNoSync = 1;
  if ((flags & kNoSync) != 0) {
    drain_before_sleeping(TSOMON_PC());
    switch_thread(fiber);
    put_stamp_now();
    return;
  }
  put_send(tsomon::kFirstFiber | fiber->number, TSOMON_PC());
  switch_thread(fiber);
  put_receive(tsomon::kFirstFiber | fiber->number, TSOMON_PC());
}
TSOMON_HOOK void __tsan_set_fiber_name(void* handle, const char* name) {
  if (handle != &no_fiber && name != nullptr && recording) {
    name_thread(static_cast<Thread*>(handle), name);
  }
}

TSOMON_HOOK void __tsan_flush_memory() {}

// Of the common interface (sanitizer/common_interface_defs.h): accesses to memory whose alignment
// the compiler does not know, performed here.
#define TSOMON_UNALIGNED(BITS, T)                                              \
  TSOMON_HOOK T __sanitizer_unaligned_load##BITS(const void* address) {        \
    access(RecordType::kRead, address, sizeof(T), TSOMON_PC());                \
    T value;                                                                   \
    __builtin_memcpy(&value, address, sizeof value);                           \
    return value;                                                              \
  }                                                                            \
  TSOMON_HOOK void __sanitizer_unaligned_store##BITS(void* address, T value) { \
    access(RecordType::kWrite, address, sizeof(T), TSOMON_PC());               \
    __builtin_memcpy(address, &value, sizeof value);                           \
  }
TSOMON_UNALIGNED(16, uint16_t)
TSOMON_UNALIGNED(32, uint32_t)
TSOMON_UNALIGNED(64, uint64_t)
// Reports are not made here.
TSOMON_HOOK void __sanitizer_set_death_callback(void (*)()) {}
TSOMON_HOOK void __sanitizer_print_stack_trace() {}
TSOMON_HOOK void __sanitizer_set_report_path(const char*) {}
TSOMON_HOOK void __sanitizer_set_report_fd(void*) {}
TSOMON_HOOK void __sanitizer_report_error_summary(const char*) {}

// All accesses of the thread.
TSOMON_HOOK void __tsan_ignore_thread_begin() {
  ++local.ignored_loads;
  ++local.ignored_stores;
  put_ignored(TSOMON_PC());
}
TSOMON_HOOK void __tsan_ignore_thread_end() {
  local.ignored_loads -= local.ignored_loads != 0 ? 1 : 0;
  local.ignored_stores -= local.ignored_stores != 0 ? 1 : 0;
  put_ignored(TSOMON_PC());
}
