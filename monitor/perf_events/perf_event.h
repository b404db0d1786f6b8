// What the users of perf_event_open(2) share.
//
// Thread-safety: none needed; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <linux/perf_event.h>
#include <sys/types.h>

namespace tsomon {

// Before the data of a ring lies one page, and what is mapped is counted in such.
inline constexpr size_t kPage = 4096;

// The body of PERF_RECORD_LOST.
struct LostRecord {
  uint64_t event;
  uint64_t lost;
};

// The descriptor, closed by exec, or -1 with errno. `processor` -1: all.
int open_event(perf_event_attr attributes, pid_t thread, int processor);

// By the names of libpfm4; nullopt: this processor and kernel have none of this name. Thread-safety: one at a time, the first
// time.
std::optional<perf_event_attr> event_named(const char* name, bool also_kernel);

}  // namespace tsomon
