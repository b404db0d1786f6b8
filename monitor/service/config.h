// What `tsomon monitor` is told in its configuration file (docs/guide/monitor.md lists the keys).
//
// Form        TOML, read with toml++. A table [service], and a [[target]] for each program that is watched.
// Errors      All of them, in the order of the file: unknown keys, wrong types, values out of range, keys that are
//             missing or exclude each other; each with FILE:LINE:COLUMN, what was expected and what was found. What is no TOML
//             has one error, where reading ended. Suppressions files are not opened here.
// Paths       As they are written: relative ones are relative to the folder that tsomon was started in.
// Complexity  O(size). At most kMostConfigBytes and kMostTargets. Thread-safety: pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "monitor/process/control_groups.h"
#include "tso/model/property.h"
#include "tso/support/result.h"

namespace tsomon::service {

inline constexpr size_t kMostConfigBytes = size_t{1} << 20;
inline constexpr size_t kMostTargets = 64;

struct TargetConfig {
  std::string name;
  // One of these, or a group.
  pid_t pid = 0;
  std::string program;  // shell pattern of an executable's name; of its path where it has a slash
  std::vector<std::string> command;  // to be started
  attach::GroupChoice group;         // processes in it; beside `program` those that are both

  std::string control;  // folder of the control socket; empty: its abstract name
  std::vector<Property> properties = {Property::kSerializability};
  double sample = 0.01;     // share of the time
  double max_overhead = 0;  // share of the process's processor time; 0: any
  std::chrono::microseconds slice{20'000};
  bool focus = false;
  bool cold = false;
  std::vector<std::string> labels;
  std::vector<std::string> suppressions;  // files
  std::chrono::microseconds flight_recorder{
      0};                       // how much of the past is kept when something happens; 0: nothing
  std::string flight_function;  // pattern of functions whose call is such a thing; empty: none
  std::string trigger;          // as parse_trigger() reads it; empty: none

  bool operator==(const TargetConfig&) const = default;
};

struct ServiceConfig {
  static constexpr uint64_t kLeastMegabytes = 16;
  static constexpr uint64_t kMostMegabytes = uint64_t{1} << 20;
  static constexpr uint64_t kLeastMemory = 64;

  std::string store;  // folder
  uint64_t store_megabytes = 1024;
  std::string metrics;         // textfile for Prometheus; empty: none
  std::string metrics_listen;  // where they can be asked for (listen_address.h); empty: nowhere
  double idle_share = 0.02;    // of a processor, for analyses of kept slices; 0: none
  uint64_t memory_megabytes = 1024;  // of the monitor
  double cpu_share = 0;              // of a processor, of the monitor; 0: any
  bool journal = false;              // lines begin with their level, as sd-daemon(3) says
  std::string user;                  // who judges (separation.h); empty: who has started it
  std::vector<TargetConfig> targets;
};

struct ConfigReading {
  ServiceConfig config;  // only where there are no errors
  std::vector<Error> errors;
  std::string text = {};  // what was read; empty: it could not be
};

// `file`: its name, in messages.
ConfigReading parse_config(std::string_view text, const std::string& file);
// "-" is standard input.
ConfigReading read_config(const std::string& file);

}  // namespace tsomon::service
