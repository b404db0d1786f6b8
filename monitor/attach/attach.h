// Watches a running process with the detector beside it, and leaves it as it was.
//
// What it does  Looks at the process (target.h), makes a plan (plan.h), sets the probes, turns hits
//               into events (hits_to_events.h) and judges them as `tsomon run` does. Everything
//               that can be refused is refused before the first probe is set.
// Ends          With the process, with its exec, after `duration`, at the first violation if asked
//               for, at SIGINT, SIGTERM, SIGHUP or SIGQUIT. Then the probes go; what was recorded
//               is judged to the end. When this process is killed the kernel takes the probes out.
// Verdict       Of what was watched: the accesses of functions that were not chosen are not seen.
//               Values are looked at only on request (hit_values.h).
// Modules       Those that the process loads later are probed when the kernel tells of their
//               code: some milliseconds later, without stopping anything. What ran of them before
//               is counted as lost. Files named in `modules` are probed from the start.
// Loss          Hits that found no room, probes given up because of `max_overhead`, accesses that
//               no probe can tell: all make the result incomplete, and warnings say so.
// Delay         A finding comes some tens of milliseconds after the hit that closes its cycle.
// Leaves        The kernel's page for stepping over probed instructions ([uprobes]) stays mapped in
//               the process; nothing executes there.
// Thread-safety: one call at a time; the four signals are blocked in the calling thread meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/attach/hit_values.h"
#include "monitor/attach/plan.h"
#include "monitor/events/event_follower.h"
#include "monitor/judge/watch.h"
#include "tso/support/result.h"

namespace tsomon::attach {

struct AttachOptions {
  std::vector<WatchOptions> watches = {WatchOptions()};  // one for each property
  PlanRequest plan;
  double duration = 0;  // seconds; 0: no end
  // Asked when a finding was reported: true ends the session. May be empty.
  std::function<bool()> until;
  double max_overhead = 0;  // percent of the processor time of the process; 0: no bound
  Values values = Values::kNone;
  std::vector<std::string> modules;   // files that the process may load later: probed in advance
  std::string save;                   // a text trace of all events, for `tsomon check`; empty: none
  EventFollower* follower = nullptr;  // is told of all events that are judged
  // What the user should know while it runs.
  std::function<void(const std::string&)> note;
};

struct AttachSummary {
  std::vector<WatchSummary> watches;  // as AttachOptions::watches
  std::string program;
  std::string ended;             // why
  uint64_t hits = 0;             // of probes and watch points
  uint64_t lost_hits = 0;        // of probes
  uint64_t lost_watch_hits = 0;  // of watch points
  uint64_t left_out = 0;         // HitsToEvents::left_out()
  ValueCounts values;
  std::vector<std::string> warnings;
  bool not_saved = false;  // AttachOptions::save could not be written to the end
};

Result<AttachSummary> attach_to(pid_t pid, const AttachOptions& options,
                                const Watch::Callback& report);

}  // namespace tsomon::attach
