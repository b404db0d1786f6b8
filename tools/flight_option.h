// The option that keeps a flight recorder beside what is watched, the same for run and attach.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include <sys/types.h>

#include "monitor/pt_live/flight_recorder.h"
#include "tso/support/result.h"

namespace tsomon {

struct FlightChoice {
  std::string output;  // empty: none
  size_t trace_bytes = size_t{4} << 20;
};

// `choice` keeps its values as the defaults and must outlive the parsing.
void add_flight_options(CLI::App& command, FlightChoice& choice);

// Nothing where none is asked for. `pid` 0: of a program that is not there yet.
class Flight {
 public:
  // kEnvironment: no Intel PT.
  static Result<Flight> prepare(const FlightChoice& choice, pid_t pid);

  // As pt_live::Recording::begin() has it.
  Result<bool> start(pid_t pid, bool running);
  void dump() const {
    if (recorder_ != nullptr) {
      recorder_->dump();
    }
  }
  // Tells the user, as `command` ("tsomon run").
  void stop(const char* command) const;

 private:
  FlightChoice choice_;
  pt_live::RecordingSetup setup_;
  std::unique_ptr<pt_live::FlightRecorder> recorder_;
};

}  // namespace tsomon
