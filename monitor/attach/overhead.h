// How much of a process's processor time its hits take.
//
// Cost of a hit   Measured on the process's own hits: where a thread goes straight on from one hit
//                 to the next, with at most eight instructions in between, the time between the two
//                 is what a hit costs: from the kernel's reading of the clock in one trap, through
//                 its return, the instruction that is carried out in a copy and stepped over, the
//                 few instructions in between and the way into the next trap, to the reading of the
//                 clock there. The median of such gaps since the last look counts: a thread that is
//                 kept from running between two hits does not show in it. While there are none, the
//                 last median, and before the first one the cost of a hit in this process (cost.h).
// Time            The processor's of all threads, ended ones too, as the scheduler counts it, in
//                 nanoseconds (Target::processor_seconds()); the time in hits is a part of it.
// Why not         the run time that the kernel keeps of BPF programs: it is the program's alone,
//                 less than a tenth of a hit. Nor the threads' time in the kernel: system calls of
//                 the program are in it.
// Misses          What hits cost besides: caches and branch predictors that they empty. That the
//                 cost of hits differs by their instruction: a gap is the cost of one that has a
//                 near neighbour.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tsomon::attach {

class Overhead {
 public:
  static constexpr size_t kFewest = 16;  // gaps that a median is taken of

  // `hit_cost`: nanoseconds, until gaps tell; `processor_seconds` of the process so far.
  Overhead(double hit_cost, double processor_seconds)
      : hit_cost_(hit_cost), time_before_(processor_seconds) {}

  // Percent of the processor time since the last call that was spent in hits; `hits`: all so far,
  // the lost ones too; `gaps`: since the last call, nanoseconds. O(gaps).
  double measure(uint64_t hits, std::vector<int64_t> gaps, double processor_seconds);
  double hit_cost() const { return hit_cost_; }  // nanoseconds

 private:
  double hit_cost_;
  double time_before_;
  uint64_t hits_before_ = 0;
};

}  // namespace tsomon::attach
