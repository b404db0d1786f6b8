// What a slice waits for, instead of a random moment.
//
// Forms       function=PATTERN   the first call of a function with a twin (shell pattern of its readable name): the process
//                                waits for it itself (WatchedFunctions::kFirst), at no cost to anybody
//             counter=EVENT>N    an event of perf (page-faults, context-switches, ...: libpfm4's names) came more than N
//                                times a second, over a tenth of one
//             usdt=PROVIDER:NAME a thread passed the marker (a uprobe: root's)
//             signal             SIGUSR1 to this process; before other threads of it begin
// Errors      kUsage: none of these, or the process has no such function or marker. kEnvironment: the kernel refuses.
// Waiting     wait() looks every few milliseconds, also whether to stop (tso/support/work.h) and at the time.
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/slices/twin_functions.h"
#include "tso/support/result.h"

namespace tsomon {

struct TriggerName {
  enum class Kind : uint8_t { kFunction, kCounter, kMarker, kSignal };
  Kind kind = Kind::kSignal;
  std::string name;      // pattern, event, or the marker's
  std::string provider;  // of a marker
  uint64_t rate = 0;     // of a counter, a second
};

Result<TriggerName> parse_trigger(const std::string& text);

class Trigger {
 public:
  static Result<std::unique_ptr<Trigger>> open(const TriggerName& name, pid_t pid);
  virtual ~Trigger() = default;
  using Clock = std::chrono::steady_clock;
  // True: it came. False: not until then, a stop was asked for, or the process has ended.
  virtual bool wait(Clock::time_point until) = 0;
};

// Of TriggerName::kFunction, which no Trigger is made of: where the functions begin, at least one.
Result<std::vector<uint64_t>> trigger_functions(const TriggerName& name,
                                                const TwinFunctions& functions);

}  // namespace tsomon
