// Perf events of a process's threads: watch points, and when threads go to sleep.
//
// Purpose     A ring for each processor, and on it, for each thread, a watch point for each
//             location and an event that tells when the thread gives its processor up by itself,
//             when it maps memory and when it starts threads and processes. Threads that are
//             started later inherit the events of the one that starts them.
// Watch       Hardware breakpoints: the trap comes after the instruction; the kernel's own
//             accesses are not told. Four at most, fewer when a debugger has some.
// Uprobes     Not here: an inherited uprobe event makes the kernel read the name of the file again,
//             from the memory of the thread that is being started, and starting it fails.
// Order       Within a ring by time; the reader sorts. Time is CLOCK_MONOTONIC (hit.h).
// Loss        Records that found no room are counted: lost().
// Cost        A descriptor for each event, thread and processor.
// Errors      kEnvironment with the remedy.
// Thread-safety: none. The kernel takes everything out when this process ends, however it does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "monitor/attach/hit.h"
#include "monitor/attach/plan.h"
#include "monitor/perf_events/rings.h"
#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

namespace tsomon::attach {

class PerfRings {
 public:
  static Result<std::unique_ptr<PerfRings>> create();
  ~PerfRings();
  PerfRings(const PerfRings&) = delete;
  PerfRings& operator=(const PerfRings&) = delete;

  // For all threads of process `pid`, which `threads` lists, and those that they start.
  Result<bool> attach(pid_t pid, const std::function<std::vector<pid_t>()>& threads,
                      const std::vector<WatchPoint>& watch);
  void detach();
  // The watch points alone; sleep is told as before.
  void stop_watching();
  // Appends what has come; Hit::source is the place in `watch`.
  void read(std::vector<Hit>& hits);
  uint64_t lost() const { return lost_; }
  // When code was last mapped, as far as it was read; 0: never.
  int64_t code_mapped() const { return code_mapped_; }
  // Up to then no thread or process was started and no memory shared with others was mapped, as far
  // as it was read.
  int64_t alone_until() const { return alone_until_; }
  size_t events() const { return events_.size(); }

 private:
  struct Ring {
    int processor = 0;
    Descriptor owner;
    std::optional<MappedRing> records;
  };
  PerfRings() = default;
  Result<bool> attach_thread(pid_t thread, const std::vector<WatchPoint>& watch);
  void not_alone_from(int64_t time);
  void record(const perf_event_header& header, std::string_view body, std::vector<Hit>& hits);

  std::vector<Ring> rings_;
  std::vector<Descriptor> events_;
  std::unordered_map<uint64_t, uint32_t> watch_of_event_;  // by the kernel's number of the event
  uint32_t pid_ = 0;
  std::set<uint32_t> started_;  // threads that inherited their events
  uint64_t lost_ = 0;
  int64_t code_mapped_ = 0;
  int64_t alone_until_ = INT64_MAX;
  int64_t last_read_ = 0;
};

}  // namespace tsomon::attach
