// `tsomon worker`.
#include "monitor/fleet/worker.h"

#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "monitor/process/host_name.h"
#include "tools/command.h"
#include "tools/fleet/open.h"
#include "tools/output.h"
#include "tools/stop_signals.h"

namespace tsomon {

int run_worker(const WorkerArguments& options) {
  constexpr const char* kTool = "tsomon worker";
  const StopSignals signals;
  int exit_status = kExitClean;
  const auto fleet = open_fleet_of(options.fleet, kTool, &exit_status);
  if (fleet == nullptr) {
    return exit_status;
  }
  const char* const program = std::getenv("TSOMON_PROGRAM");
  fleet::WorkerOptions how;
  how.program = program == nullptr ? "/usr/bin/tsomon" : program;
  how.name = options.name.empty() ? fmt::format("{}:{}", host_name(), ::getpid()) : options.name;
  how.jobs = options.jobs;
  how.bounds.idle = options.idle;
  how.bounds.share = options.jobs;
  how.bounds.memory_bytes = options.max_memory << 20;
  how.bounds.processor_time = options.max_time;
  how.bounds.output_bytes = uint64_t{1} << 30;
  how.lease = std::chrono::duration_cast<std::chrono::milliseconds>(options.lease);
  how.most_tries = options.tries;
  how.once = options.once;
  how.tell = [&](const std::string& text) { put_message(kTool, text); };
  fleet::Worker worker(*fleet, how);
  const auto done = worker.run([&] { return signals.asked(); });
  const fleet::WorkerCounters& counters = worker.counters();
  put_message(kTool,
              fmt::format("{} judged, {} tries failed, {} parked, {:.1f} s of processor time",
                          counters.judged, counters.failed, counters.parked,
                          std::chrono::duration<double>(counters.used).count()));
  return done ? kExitClean : put_error(kTool, done.error());
}

}  // namespace tsomon
