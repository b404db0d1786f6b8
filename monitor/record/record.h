// Runs a program so that the probe in it writes a capture.
//
// What it does  Sets TSOMON_OPTIONS (keeping what the caller has set there), starts the program,
//               forwards SIGINT, SIGTERM, SIGHUP and SIGQUIT to it, waits, and looks whether a
//               capture was written. The probe does the recording (monitor/probe).
// Several       The first recorded process writes FILE, a further one FILE.PID.
// processes
// Status        The program's own, 128 + N when signal N ended it, 127 when it is not found, 126
//               when it cannot be executed, 125 when recording itself failed: nothing was written,
//               or FILE cannot be. As env(1) and nohup(1) do. 4 when there is no memory or no
//               process to start it, when the probe refused to record, and where it would be 0 and
//               a capture is not whole. A program that is left (monitor/process/child.h) counts as
//               ended by the signal. 2, before the program starts, when FILE is a device, a FIFO
//               or a folder, or TSOMON_OPTIONS cannot be understood.
// Old capture   FILE is replaced by a new capture only: when none was written it is there again.
// Thread-safety: none; forwards signals of the whole process while it runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "monitor/process/child.h"

namespace tsomon {

inline constexpr int kRecordUsage = 2;
inline constexpr int kRecordEnvironment = 4;
inline constexpr int kRecordFailed = 125;
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

struct RecordResult {
  int status = kRecordFailed;
  std::string problem;             // for the user; empty when all went well
  std::vector<std::string> files;  // captures that were written, FILE first
  // What the probe said and nobody has read, and which captures are not whole.
  std::vector<std::string> warnings;
  bool left = false;  // the program goes on: it did not end when it was asked to, twice
};

// `command` is not empty; command[0] is looked up in PATH.
RecordResult record(const std::vector<std::string>& command, const std::string& output);

// Why the program did not start.
struct NotStarted {
  int status = kNotExecutable;
  std::string problem;
};
NotStarted not_started(const std::vector<std::string>& command, const Child& child);

// Of a program that was left (Child::left()).
std::string left_running(pid_t process);

// What to do about a program that the probe in it refused to record: it has said why.
std::string refused(const std::vector<std::string>& command);

// What to do about a program that ended without having recorded anything.
std::string not_recorded(const std::vector<std::string>& command, int status,
                         std::string_view subcommand);

}  // namespace tsomon
