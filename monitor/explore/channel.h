// The memory that the exploration and the explored program share.
//
// Purpose     The exploring process starts the program with the number of a descriptor in its
//             environment. The runtime in the program maps it, stops before the program's
//             constructors and serves: for a request it makes a child of itself, which runs the
//             program under the schedule that the request has and leaves here what it did. A child
//             that comes to its first thread has done so far what all executions do, and serves
//             from there, this request and the later ones. Every execution begins with the same
//             memory: in a child of its own, or in one child that brings its memory back after each
//             (`run_in_place`, runtime/in_place.h). That one asks for forks of executions that it
//             cannot bring back (`forks_asked`).
// Protocol    `request` and `done` count; who waits for one sleeps on it (futex), which `sleepers`
//             counts. All else is written before the count changes and read after.
// Ahead       A request may come with others that are asked for next (`queue`), which differ in
//             seed, prefix and threads that wait. Who runs in place goes on with them without an
//             answer and puts the runs before into `log`; what was run last is where an answer is.
//             It answers early when a run shows something that the explorer has to know first.
// Kept        From run to run: `shared`, the words of memory that several threads access; `split`,
//             those that are accessed in parts; the numbers of threads, given by who starts them; the names of labels, which are those of
//             units, calls and results; the fences and atomic blocks that were put into the
//             program.
#pragma once

#include <atomic>
#include <cstdint>

#include "offline/explore/program.h"

namespace tsomon::explore {

inline constexpr const char* kChannelVariable = "TSOMON_EXPLORE";
// The layout below: a program that was linked with another one is refused.
inline constexpr uint64_t kChannelMagic = 0x3730786C70786574;
inline constexpr uint32_t kMaxSteps = 1U << 14;
inline constexpr uint32_t kMaxMarks = 1U << 14;
inline constexpr uint32_t kSharedTable = 1U << 16;  // words, at most half full
inline constexpr uint32_t kMaxFound = 4096;
inline constexpr uint32_t kMaxLabels = 4096;
inline constexpr uint32_t kLabelSize = 64;
inline constexpr uint32_t kOutcomeBytes = 1U << 16;
inline constexpr uint32_t kMaxSplit = 256;     // words
inline constexpr uint32_t kMaxRepairs = 1024;  // places of either kind
inline constexpr uint32_t kMaxAhead = 31;      // runs
inline constexpr uint32_t kAheadChoices = 1U << 16;
inline constexpr uint32_t kLogBytes = 1U << 20;

struct ThreadName {
  uint32_t parent;  // its number
  uint32_t child;   // of its children, counted from 1; 0: not given yet
};

// A word that copies go through in parts: bit N, a part begins at its byte N.
struct SplitWord {
  uint64_t word;
  uint8_t starts;
};

// A request behind the first; its prefix begins in `queue_choices`.
struct QueuedRequest {
  uint64_t seed;
  uint64_t waiting;
  uint32_t prefix_begin;
  uint32_t prefix_size;
};

// A run in the log. Behind it: its steps, marks, waiting threads and outcomes.
struct alignas(16) LoggedRun {
  End end;
  int32_t status;
  int32_t wait_status;
  uint32_t step_count;
  uint32_t mark_count;
  uint32_t waiting_count;
  uint32_t outcome_bytes;
  uint32_t bytes;  // of all of it
  uint64_t unsaid;
  uint64_t cut_waits;
  uint64_t freed_compared;
  uint64_t fault_pc;
  char detail[256];
  char not_understood[128];
};

struct Channel {
  uint64_t magic;
  std::atomic<uint32_t> request;
  std::atomic<uint32_t> done;
  std::atomic<uint32_t> sleepers;  // on one of them
  int32_t explorer;
  int32_t server;
  std::atomic<int32_t> child;
  int32_t wait_status;
  uint64_t load_base;  // of the program
  uint32_t processor;  // that it runs on: which of those that it may use, from 1; 0: any
  int32_t runs_on;     // the processor's number
  bool run_in_place;
  std::atomic<uint32_t> forks_asked;
  std::atomic<uint32_t> no_executor;  // executions cannot run in place
  std::atomic<uint32_t> ended_here;   // `child` was ended by the explorer
  uint64_t in_place;                  // executions that ran so
  char forked_because[64];            // the last one that did not

  // The explorer writes these before it asks for a run.
  Model model;
  Policy policy;
  bool waiting_is_final;
  bool show_output;
  bool spurious;  // waits may wake by themselves
  bool reuse;     // freed memory is given out again
  uint64_t waiting;
  uint64_t seed;
  uint32_t depth;
  uint32_t length;
  uint32_t max_steps;
  uint32_t prefix_size;
  Choice prefix[kMaxSteps];
  uint32_t contended_count;
  uint64_t contended[kSharedTable];  // accesses, of Policy::kLocalFirst; 0: free

  uint32_t queued;
  QueuedRequest queue[kMaxAhead];
  Choice queue_choices[kAheadChoices];

  // What the exploration changes in the program.
  uint32_t fence_count;
  uint64_t fences[kMaxRepairs];  // stores behind which a full fence comes
  uint32_t atomic_count;
  AtomicPlace atomic[kMaxRepairs];

  uint32_t shared_count;
  uint64_t shared[kSharedTable];  // 0: free
  uint32_t split_count;
  SplitWord split[kMaxSplit];
  ThreadName threads[kMaxThreads + 1];
  uint32_t label_count;
  char labels[kMaxLabels][kLabelSize];

  // The program writes these while it runs.
  uint32_t taken;  // of the queue
  uint32_t log_bytes;
  std::atomic<uint32_t> wrote_errors;  // to its standard error
  alignas(16) uint8_t log[kLogBytes];
  End end;
  int32_t status;
  char detail[256];
  char not_understood[128];  // an asm statement
  std::atomic<uint32_t> step_count;
  uint32_t mark_count;
  uint32_t waiting_count;
  uint32_t found_count;
  uint32_t outcome_bytes;
  uint64_t unsaid;
  uint64_t cut_waits;
  uint64_t freed_compared;
  uint64_t fault_pc;
  Step steps[kMaxSteps];
  Mark marks[kMaxMarks];
  Waiting waiting_threads[kMaxThreads + 1];
  uint64_t found[kMaxFound];     // words that turned out to be shared
  char outcomes[kOutcomeBytes];  // each ends with 0
};

// A number in the channel, read once: the other side may change it at any time.
inline uint32_t at_most(const uint32_t& number, uint32_t most) {
  const uint32_t now = *const_cast<const volatile uint32_t*>(&number);
  return now < most ? now : most;
}

inline uint64_t word_of(uint64_t address) { return address >> 3; }
inline uint32_t shared_home(uint64_t word) {
  return static_cast<uint32_t>((word * 0x9E3779B97F4A7C15ULL) >> 48) & (kSharedTable - 1);
}
inline bool table_has(const uint64_t (&table)[kSharedTable], uint64_t word) {
  uint32_t at = shared_home(word);
  for (uint32_t i = 0; i < kSharedTable && table[at] != 0;
       ++i, at = (at + 1) & (kSharedTable - 1)) {
    if (table[at] == word) {
      return true;
    }
  }
  return false;
}
// False: it was there, or there is no room.
inline bool table_add(uint64_t (&table)[kSharedTable], uint32_t* count, uint64_t word) {
  if (word == 0 || table_has(table, word) || *count >= kSharedTable / 2) {
    return false;
  }
  uint32_t at = shared_home(word);
  while (table[at] != 0) {
    at = (at + 1) & (kSharedTable - 1);
  }
  table[at] = word;
  ++*count;
  return true;
}
inline bool is_shared_word(const Channel& channel, uint64_t word) {
  return table_has(channel.shared, word);
}

}  // namespace tsomon::explore
