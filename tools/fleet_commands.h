// The commands that speak to a fleet: their options are in tsomon, their work is in tsomon-fleet.
//
// Why two     Libraries of servers are nothing that every tsomon needs: tsomon checks the command line and becomes tsomon-fleet
//             (fleet_launcher.cpp), which has the same options and does the work (tools/fleet/).
// Both define these functions; each returns an exit status of command.h.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/process/file_search.h"
#include "tools/output_option.h"

namespace tsomon {

struct FleetAddress {
  std::string url;
  std::string credentials;
};
// --fleet, which is returned. `required`: it is.
CLI::Option* add_fleet_options(CLI::App& command, FleetAddress& address, bool required);

struct SubmitArguments {
  FleetAddress fleet;
  std::vector<std::string> files;
  std::string store;  // of tsomon monitor, instead of files
  bool follow = false;
  std::string tenant = "default";
  std::string host;
  std::vector<std::string> ask = {"check"};
  std::vector<std::string> set;  // NAME=VALUE
  std::string suppressions;
  FileSearch search;
  bool no_sources = false;
  bool wait = false;
  OutputFormat output = OutputFormat::kText;
};
int run_submit(const SubmitArguments& options);

struct WorkerArguments {
  FleetAddress fleet;
  bool once = false;
  bool idle = false;
  unsigned jobs = 1;
  uint64_t max_memory = 4096;  // MiB
  std::chrono::microseconds max_time = std::chrono::hours(1);
  std::chrono::microseconds lease = std::chrono::minutes(1);
  uint64_t tries = 3;
  std::string name;
};
int run_worker(const WorkerArguments& options);

struct FleetArguments {
  FleetAddress fleet;
  std::string action;
  std::string id;
  // Of prune; 0: not asked for.
  std::chrono::microseconds recordings{0};
  std::chrono::microseconds findings{0};
  OutputFormat output = OutputFormat::kText;
};
int run_fleet(const FleetArguments& options);

struct FleetFindingsArguments {
  FleetAddress fleet;
  std::string tenant;
  std::string id;  // empty: all
  OutputFormat output = OutputFormat::kText;
};
int run_fleet_findings(const FleetFindingsArguments& options);

}  // namespace tsomon
