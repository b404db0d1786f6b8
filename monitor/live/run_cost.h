// What watching costs a program that runs, measured while it does.
//
// Waiting     Where the detector takes less than the program records, the pipe between them fills, and
//             then the program's buffers: its threads wait. Counted is the time in which the pipe
//             was full and nobody read it, for that the detector had not taken what was read
//             before. What the program's own buffers still took meanwhile makes it somewhat more
//             than the program has waited, in the first moments.
// Misses      What recording costs inside of the program's threads: they are not slower for anybody
//             who could see it from outside.
// Complexity  Two looks at the clock for each piece that is read.
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace tsomon {

struct RunCost {
  double seconds = 0;  // of the window that was measured
  double waiting = 0;  // share of it, from 0 to 1
  double events = 0;   // that the detector took in a second
};

// For people, without the program's name: what it costs and what costs less.
std::string cost_text(const RunCost& cost);

class RunCostMeter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr double kWindow = 1;   // seconds
  static constexpr double kHigh = 0.25;  // share from which on it is told

  // `tell` may be empty. It is called once, for the first window in which the share is high.
  RunCostMeter(int pipe, std::function<void(const RunCost&)> tell);

  // Something was read from the pipe and handed on, which began then; so many events had been
  // judged by now.
  void handed_on(Clock::time_point begun, uint64_t events);

 private:
  int pipe_;
  std::function<void(const RunCost&)> tell_;
  int room_ = 0;  // of the pipe
  bool begun_ = false;
  Clock::time_point window_;
  Clock::duration waited_{};
  uint64_t events_ = 0;  // when the window began
};

}  // namespace tsomon
