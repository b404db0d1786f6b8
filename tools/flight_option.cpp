#include "tools/flight_option.h"

#include <cstdio>
#include <utility>

#include "monitor/pt_live/pt_record.h"
#include "tools/output.h"

namespace tsomon {

void add_flight_options(CLI::App& command, FlightChoice& choice) {
  CLI::Option* pt = command.add_option("--pt-on-violation", choice.output,
                                       "Keep the last part of its Intel PT trace; write it to this "
                                       "file at the first violation");
  pt->option_text("FILE");
  command
      .add_option("--trace-size", choice.trace_bytes,
                  "Of --pt-on-violation: bytes kept for each processor (4M)")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("SIZE")
      ->needs(pt);
}

Result<Flight> Flight::prepare(const FlightChoice& choice, pid_t pid) {
  Flight flight;
  flight.choice_ = choice;
  if (choice.output.empty()) {
    return flight;
  }
  pt_live::PtRecordRequest request;
  request.pid = pid;
  request.snapshot = true;
  request.trace_bytes = choice.trace_bytes;
  auto setup = pt_live::pt_setup(request);
  if (!setup) {
    return tl::unexpected<Error>(setup.error());
  }
  flight.setup_ = std::move(*setup);
  return flight;
}

Result<bool> Flight::start(pid_t pid, bool running) {
  if (choice_.output.empty()) {
    return true;
  }
  auto recorder = pt_live::FlightRecorder::start(setup_, choice_.output, pid, running);
  if (!recorder) {
    return tl::unexpected<Error>(recorder.error());
  }
  recorder_ = std::move(*recorder);
  return true;
}

void Flight::stop(const char* command) const {
  if (recorder_ == nullptr) {
    return;
  }
  const auto written = recorder_->stop();
  if (!written) {
    put_message(command, written.error().to_string());
  } else if (*written) {
    put_message(command,
                "wrote " + choice_.output + ": what was executed before the first violation");
  }
}

}  // namespace tsomon
