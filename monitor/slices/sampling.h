// Watches a running program in slices, and judges each.
//
// Plan        Slices of one length at random moments: the time between the end of one and the beginning of the next is
//             uniform between 0 and twice what the share asks for, so that nothing of the program's own
//             rhythm decides what is seen, and what happens often enough is met in proportion to the share. What a
//             slice takes to be judged is time that is not watched: with a share of 1 they follow one
//             another as fast as that allows. The share that was reached is told.
// Memory      That of one slice and its judgement, at a time.
// Errors      As record_slice(); once something was watched a program that ends is no error.
// Stops       A stop (tso/support/work.h) ends the slice that is recorded; it is judged.
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "monitor/check/check_input.h"
#include "monitor/slices/slice_client.h"

namespace tsomon {

struct SamplingOptions {
  pid_t pid = 0;
  std::string folder;  // of the socket
  std::chrono::microseconds slice{20'000};
  double share = 1;                     // of the time, above 0
  std::chrono::microseconds time{0};    // in all; 0: until a stop, or the program's end
  uint64_t seed = 0;                    // of the random moments
  std::vector<CheckOptions> questions;  // at least one
};

struct SamplingSummary {
  uint64_t slices = 0;
  std::chrono::microseconds watched{0};
  std::chrono::microseconds elapsed{0};
  uint64_t cut_units = 0;
  uint64_t without_threads = 0;  // slices in which nobody took part
  std::string ended;             // why before its time; empty: it was not
  double share() const {
    return elapsed.count() == 0
               ? 0
               : static_cast<double>(watched.count()) / static_cast<double>(elapsed.count());
  }
};

// `judged` gets the number of each slice, from 1 on, when it began, and the answers.
Result<SamplingSummary> watch_slices(
    const SamplingOptions& options,
    const std::function<void(uint64_t, std::chrono::microseconds, CheckedProperties&)>& judged);

}  // namespace tsomon
