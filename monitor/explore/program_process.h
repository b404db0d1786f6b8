// A real program to explore, in a process of its own.
//
// Purpose     Starts the program with the runtime under control (channel.h) and runs it under one
//             schedule after the other. Addresses are the same in every run: no randomisation.
// Errors      start(): the program cannot be started, or has no runtime. A run that the environment
//             ends says End::kFailed; one whose thread does not come to an operation for
//             `hang_seconds` is ended, and so is one when a stop was asked for
//             (tso/support/work.h). Neither ends a run whose output is
//             shown while a debugger traces it.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/types.h>

#include "decoders/capture/reader.h"
#include "offline/explore/program.h"
#include "tso/support/result.h"

namespace tsomon::explore {

struct Channel;

// A thread's number, the number of who starts it, and as which of its threads.
struct ThreadOrigin {
  uint32_t number = 0;
  uint32_t parent = 0;
  uint32_t child = 0;
};

struct ProcessOptions {
  uint32_t max_steps = 10000;
  double hang_seconds = 10;
  bool show_output = false;
  bool reuse = false;      // freed memory is given out again
  bool spurious = true;    // waits on conditions may wake by themselves
  bool fork = false;       // every execution; else only those that need it
  uint32_t processor = 0;  // which of those that may be used, from 1; 0: wherever it starts
};

class ProgramProcess : public Program {
 public:
  static Result<std::unique_ptr<ProgramProcess>> start(const std::vector<std::string>& command,
                                                       const ProcessOptions& options);
  ~ProgramProcess() override;

  const Run& run(const Request& request) override;
  // Some of them are run with the first one, without a round trip between the processes for each.
  void expect(const std::vector<Request>& requests) override;
  // Words that several threads accessed in the last run, and that were not known to be shared:
  // they are now. True: there were some, and what was run before is not to be trusted.
  bool learn_shared();
  std::vector<uint64_t> shared_words() const;  // increasing
  void share(uint64_t word);
  // Copies go through the word in parts from now on (GraphBuilder::take_parts). False: they did so
  // before, or there is no room.
  bool split(uint64_t word, uint8_t starts);
  std::map<uint64_t, uint8_t> split_words() const;
  std::vector<ThreadOrigin> origins() const;  // those that are not children of the first, in order
  void set_origin(const ThreadOrigin& origin);
  // Changes the program for all later runs: a full fence behind the store at `pc`; a part that is
  // not interrupted. False: there is no room.
  bool add_fence(uint64_t pc);
  bool add_atomic(const AtomicPlace& place);
  std::vector<ThreadOrigin> named_threads() const;  // all that have a number
  void forget_threads();
  const std::string& label(uint32_t number);
  // What the last run wrote to its standard error, at most 4 KiB.
  std::string error_output() const;
  std::vector<capture::Module> modules() const;
  // Runs so far, those of them that were not forked, and why the last one was.
  uint64_t runs() const { return runs_; }
  uint64_t in_place() const { return in_place_; }
  std::string forked_because() const;

 private:
  friend class NearProcess;
  ProgramProcess() = default;
  Result<bool> begin(const std::vector<std::string>& command);
  // `memory`: of the channel, which the program inherits.
  Result<bool> start_server(const std::vector<std::string>& command, int memory);
  Result<bool> wait_for_runtime(const std::string& program);
  bool is_ahead(const Request& request) const;
  void drop_ahead();
  void ask(const Request& request);
  void queue_expected();
  void take_next();
  void sleep_on_done(uint32_t value);
  bool wait_for_run();
  void take_run();

  ProcessOptions options_;
  Channel* channel_ = nullptr;
  int errors_ = -1;
  pid_t server_ = -1;
  uint32_t served_ = 0;
  uint64_t runs_ = 0;
  uint64_t in_place_ = 0;
  Run run_;
  // Requests that are expected, and the next of them. Of runs that were made with the last that was
  // asked for: those in the log that were not taken yet, and whether `newest_`, the last one, was.
  std::vector<Request> expected_;
  size_t next_expected_ = 0;
  uint32_t logged_ = 0;
  uint32_t log_at_ = 0;
  bool newest_is_left_ = false;
  bool newest_was_in_place_ = false;
  bool took_newest_ = true;
  Run newest_;
  double seconds_per_run_ = 1;  // lately
  std::vector<std::string> labels_;
};

// The calling thread runs on the processor of the process from now on. They take turns: a processor
// of its own would be idle half of the time, or busy with others when it is needed.
class NearProcess {
 public:
  explicit NearProcess(const ProgramProcess& process);
  ~NearProcess();
  NearProcess(const NearProcess&) = delete;
  NearProcess& operator=(const NearProcess&) = delete;

 private:
  cpu_set_t before_{};
};

}  // namespace tsomon::explore
