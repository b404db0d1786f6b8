// When a process is watched next, for how long, and what of it.
//
// Kinds       kAll: everything, at random moments: what happens often enough is met in proportion to the share of time that
//             these slices have, whatever the others find. kFocus: only functions by which units of
//             several threads have met on a word in common (slice_look.h); their share rises, as the same cost pays for
//             more of it. A function that a slice of everything does not show so any more counts half, and no
//             more at a tenth. kCold: only functions that no slice has shown for a while, for long, until they have done as
//             much as a slice of everything does: code that runs seldom is not met at random moments. One that
//             was shown rests, twice as long each time it was shown again at once, half as long when it was not; and
//             until some slices of everything have not shown it.
//             kTrigger: what functions have begun that somebody waits for; never planned.
// Budget      Processor time a second: what the share of time asked for costs with slices of everything, or the share of
//             the process's own processor time asked for, or the smaller one. Each kind has its part of
//             it: half of it is for everything, the rest for the others; what they have no use for is not used.
// Moments     The time between the end of a slice and the beginning of the next of its kind is uniform between 0 and twice
//             what the budget says, so that nothing of the program's rhythm decides what is seen.
// Costs       Are those of the slices so far, the last ones more than earlier ones. The first of each kind comes at once, of kCold
//             once it is known what is not cold.
// Lengths     Of kAll and kFocus, where the cost is bounded: kShortest at first, since nobody knows what it costs; then so long
//             that one costs what a second may cost its kind (or kLittle), but no longer than asked for. So a program at full
//             rate, of which a millisecond takes a second to judge, is watched for a short moment each second and not for
//             long once in minutes. Where a slice cuts more units than it shows whole, the next one lasts longer. What a
//             slice shows does not end it, so that moments at which much is done are watched like others; only the
//             first one, of which nothing is known, has few bytes (kFirstBytes).
// Complexity  O(functions) a slice. Thread-safety: none.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "monitor/slices/slice_client.h"

namespace tsomon {

enum class SliceKind : uint8_t { kAll, kFocus, kCold, kTrigger };
inline constexpr size_t kSliceKinds = 4;
const char* name_of(SliceKind kind);

struct PlanOptions {
  std::chrono::microseconds slice{20'000};  // at most, but for kCold
  double share = 1;                         // of the time, above 0
  double max_overhead = 0;                  // of the process's processor time; 0: any
  bool focus = false;
  bool cold = false;
  uint64_t seed = 0;
};

struct PlannedSlice {
  SliceKind kind = SliceKind::kAll;
  std::chrono::microseconds begin{0};  // since the plan's
  std::chrono::microseconds time{0};   // at most
  uint64_t most_bytes = 0;             // of records; 0: as they come
  WatchedFunctions functions;
};

// What was learnt from one.
struct WatchedSlice {
  SliceKind kind = SliceKind::kAll;
  std::chrono::microseconds ended{0};  // since the plan's begin
  std::chrono::microseconds watched{0};
  std::chrono::microseconds cost{0};  // processor time, of the process and of whoever judged it
  uint64_t bytes = 0;                 // of records
  uint64_t units = 0;                 // that it shows
  uint64_t cut_units = 0;             // ... of them, that were open when it ended
  std::vector<uint64_t> shown;        // functions, ascending
  std::vector<uint64_t> met;          // ... by which units have met
};

class Plan {
 public:
  static constexpr double kKept = 0.1;         // a function in focus that counts less goes
  static constexpr uint32_t kMostRest = 1024;  // slices of kCold
  static constexpr uint64_t kQuiet = 4;  // slices of everything that do not show what rested before
  static constexpr int kLonger = 50;     // slices of kCold last longer at most
  static constexpr std::chrono::microseconds kShortest{100};
  static constexpr std::chrono::microseconds kLittle{5000};  // that a slice may cost anyway
  static constexpr uint64_t kFirstBytes = 16384;             // of the first slice, likewise

  explicit Plan(const PlanOptions& options);

  // `rate`: processors that the process keeps busy, as far as it is known.
  PlannedSlice next(double rate);
  void learn(const WatchedSlice& slice);
  // It was not recorded; its time was over at `ended`, since the plan's begin.
  void leave_out(SliceKind kind, std::chrono::microseconds ended);

  size_t in_focus() const { return heat_.size(); }

 private:
  struct Kind {
    double part = 0;                    // of the budget
    double cost = 0;                    // of a slice, in microseconds; 0: not known
    double length = 0;                  // likewise
    std::chrono::microseconds time{0};  // that the next one lasts
    std::chrono::microseconds due{0};   // when the next one begins
    bool scheduled = false;
  };
  struct Rest {
    uint32_t length = 1;  // when it is shown again
    uint64_t until = 0;   // number of a slice of kCold
    uint64_t quiet = 0;   // of everything; both are to come
  };

  bool has_use(SliceKind kind) const;
  bool is_bounded() const { return options_.max_overhead > 0; }
  double mean_gap(const Kind& kind) const;
  void learn_length(const WatchedSlice& slice, Kind* kind) const;
  void learn_heat(const WatchedSlice& slice);
  void learn_rest(const WatchedSlice& slice);
  Kind& of(SliceKind kind) { return kinds_[static_cast<size_t>(kind)]; }
  const Kind& of(SliceKind kind) const { return kinds_[static_cast<size_t>(kind)]; }

  PlanOptions options_;
  std::mt19937_64 random_;
  std::array<Kind, kSliceKinds> kinds_;
  std::chrono::microseconds now_{0};
  double rate_ = 1;                  // as next() was told it
  double bytes_ = 0;                 // of a slice of everything
  std::map<uint64_t, double> heat_;  // of functions in focus
  std::map<uint64_t, Rest> rests_;   // of functions that were shown
  uint64_t cold_slices_ = 0;
  uint64_t all_slices_ = 0;
};

}  // namespace tsomon
