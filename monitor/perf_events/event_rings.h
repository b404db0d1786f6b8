// Perf events of threads or processors with their rings, written to a perf.data as they fill.
//
// Events      The first of `events` owns the rings, and the trace area where it has one; the others
//             write into the same. One set for each processor; on it, one for each thread, which
//             the threads that it starts inherit. Without inheritance a set for each thread.
// Loss        The kernel says what found no room, in the records themselves.
// Errors      kEnvironment with the remedy.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "decoders/perf/record.h"
#include "monitor/perf_events/perf_file.h"
#include "monitor/perf_events/rings.h"
#include "tso/support/result.h"

namespace tsomon::pt_live {

struct RingRequest {
  std::vector<perf_event_attr> events;
  std::vector<pid_t> threads;  // {-1}: whatever runs on the processors
  bool per_thread = false;     // a ring for each thread; what it starts is not recorded
  size_t record_pages = 128;   // powers of two
  size_t trace_pages = 0;      // 0: the first event has no trace data
  bool snapshot = false;
};

class EventRings {
 public:
  static Result<std::unique_ptr<EventRings>> open(const RingRequest& request);
  ~EventRings();
  EventRings(const EventRings&) = delete;
  EventRings& operator=(const EventRings&) = delete;

  // What the file says of them: as `events` of the request, with their ids.
  std::vector<perf::WrittenAttribute> attributes() const;
  std::optional<perf::TimeConversion> clock() const;

  // Of the threads; kEnvironment: the kernel does not take it.
  Result<bool> set_filter(const std::string& filter);
  void enable() { control_all(PERF_EVENT_IOC_ENABLE, false); }
  void disable() { control_all(PERF_EVENT_IOC_DISABLE, false); }
  // Until there is something to write, or some time has passed.
  void wait(int milliseconds) const;
  // Appends the records that have come, and the end of a round.
  void read(std::string& records);
  // The trace data that has come; `end`: everything. Not of snapshots.
  Result<bool> write_trace(PerfFile& file, bool end);
  // The trace areas as they are, for snapshots alone; the trace stands still meanwhile.
  void pause() { control_all(PERF_EVENT_IOC_DISABLE, true); }
  Result<bool> write_snapshot(PerfFile& file);
  void go_on() { control_all(PERF_EVENT_IOC_ENABLE, true); }

 private:
  struct Ring {
    int cpu = -1;
    pid_t thread = -1;
    int fd = -1;  // of its owner
    perf_event_mmap_page* control = nullptr;
    char* trace = nullptr;
  };
  struct Event {
    Descriptor fd;
    size_t of = 0;  // in RingRequest::events
    uint64_t id = 0;
  };
  explicit EventRings(const RingRequest& request) : request_(request) {}
  Result<bool> open_on(int cpu, pid_t thread, std::optional<size_t>& owner);
  Result<bool> map(const Descriptor& owner, Ring ring);
  AuxRing trace_of(const Ring& ring) const;
  // `traces`: only the events that have trace data.
  void control_all(unsigned long what, bool traces);

  RingRequest request_;
  std::vector<Event> events_;
  std::vector<Ring> rings_;
  std::vector<AuxRing> snapshots_;  // of each ring
  uint64_t snapshot_ = 0;
};

}  // namespace tsomon::pt_live
