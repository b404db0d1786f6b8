// flight_run FILE PROGRAM...: `tsomon run` with a flight recorder beside it that records what needs
// no Intel PT. Says whether there was a violation and a file; status 77: perf events are not
// allowed here.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "monitor/live/run.h"
#include "monitor/pt_live/flight_recorder.h"
#include "monitor/pt_live/pt_record.h"

using namespace tsomon;

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: flight_run FILE PROGRAM...\n");
    return 2;
  }
  pt_live::PtRecordRequest request;
  request.snapshot = true;
  std::unique_ptr<pt_live::FlightRecorder> recorder;
  RunOptions options;
  options.before_start = [&](pid_t pid) {
    auto started = pt_live::FlightRecorder::start(
        pt_live::setup_of(request, {pt_live::sideband_event(true, true)}, {}), argv[1], pid, false);
    if (!started) {
      fmt::print(stderr, "{}\n", started.error().to_string());
      return false;
    }
    recorder = std::move(*started);
    return true;
  };
  size_t violations = 0;
  run({argv + 2, argv + argc}, options, [&](const ReportedFinding&) {
    ++violations;
    recorder->dump();
  });
  if (recorder == nullptr) {
    return 77;
  }
  const auto written = recorder->stop();
  fmt::print("{}, {}\n", violations != 0 ? "violated" : "clean",
             written && *written ? "written" : "not written");
  return 0;
}
