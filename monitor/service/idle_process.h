// A program that runs when nobody else needs the processor, within bounds, and whose output is read.
//
// Why a process   What it reads comes from programs that are watched, and may be anything: where it crashes, or takes all the memory
//             that it may have, whoever started it goes on.
// Priority    If it is asked for: SCHED_IDLE, idle for disks, and the first one to go when the machine has no memory left.
// Share       Of one processor: it is stopped (SIGSTOP) once it has used more than that over kBurst, until it has not. What is
//             left over passes on to the next program.
// Bounds      Processor time: SIGTERM, and SIGKILL two seconds of it later. Memory: looked at many times a second, SIGKILL; its
//             address space has a bound of some times that, so that it cannot outrun the looks. Output: SIGXFSZ.
//             Time: kMostSeconds, for one that waits for ever.
// The end     It does not outlive the thread that started it, whatever ends that. A stop ends it within a tenth of a second.
// Errors      kUsage: there is no such program. kEnvironment: it cannot be started.
// Thread-safety: one thread for each object.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tso/support/result.h"

namespace tsomon::service {

struct IdleBounds {
  bool idle = true;  // only when nobody else needs the processor
  double share = 1;
  uint64_t memory_bytes = uint64_t{512} << 20;
  std::chrono::microseconds processor_time = std::chrono::seconds(60);
  uint64_t output_bytes = uint64_t{64} << 20;
};

struct IdleEnd {
  enum class Why : uint8_t { kEnded, kStopped, kTime, kMemory };
  Why why = Why::kEnded;
  int wait_status = 0;  // of waitpid(2)
  std::string output;
  std::chrono::microseconds used{0};  // processor time
  uint64_t most_bytes = 0;            // that it was seen to have
};

class IdleProcess {
 public:
  static constexpr std::chrono::microseconds kBurst{50'000};  // of processor time
  static constexpr std::chrono::seconds kMostSeconds{3600};

  explicit IdleProcess(IdleBounds bounds = {}) : bounds_(bounds) {}
  // The next program has these.
  void set_bounds(const IdleBounds& bounds) { bounds_ = bounds; }
  // `command` is not empty; its first word is a path. Returns when it has ended. `stopped`: whether it is to be, asked again and
  // again.
  Result<IdleEnd> run(const std::vector<std::string>& command,
                      const std::function<bool()>& stopped);

 private:
  using Clock = std::chrono::steady_clock;
  IdleEnd follow(pid_t pid, const std::function<bool()>& stopped);

  IdleBounds bounds_;
  double credit_ = static_cast<double>(kBurst.count());  // microseconds that it may use at once
  Clock::time_point credited_ = Clock::now();
};

}  // namespace tsomon::service
