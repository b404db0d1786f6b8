// What is explored: something that runs under a schedule and says what it did.
//
// Purpose     The strategies know no more of a program than this interface. A real program runs in
//             a process of its own (monitor/explore); tests explore the abstract machine's.
// Steps       A thread announces its next operation and waits. Executing its step performs the
//             operation and runs the thread to the next one. Under TSO a store waits in the buffer
//             of its thread until a commit step puts it into memory.
// Contract    A program is deterministic: the same choices give the same steps. A thread's steps
//             depend on nothing but the values that it read.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "offline/explore/operation.h"

namespace tsomon::explore {

enum class Model : uint8_t { kSc, kTso };

struct Choice {
  uint16_t thread = 0;
  uint8_t commit = 0;  // 0 or 1
  uint8_t answer = 0;  // of Op::kAnswer
  bool operator==(const Choice&) const = default;
};

enum class Policy : uint8_t {
  kFirst,     // the commits first, then the thread with the smallest number
  kRandom,    // all that is enabled alike
  kContinue,  // the commits first, then the thread that ran, then as kFirst
  kPct,       // priorities that change at `depth` - 1 places among the first `length` steps
  // Steps that no other thread can notice the time of, then as kFirst: threads that start, are
  // started, joined or end, fences, stores that enter a buffer, and accesses to bytes that are not
  // `contended`.
  kLocalFirst,
};

struct Request {
  Model model = Model::kTso;
  Policy policy = Policy::kFirst;  // after the prefix
  // A thread that came to wait for a value, and could not go on, stays where it is until the end,
  // and so does a loop that waits. For graph exploration, which comes back to it by itself.
  bool waiting_is_final = false;
  uint64_t waiting = 0;  // threads that wait so already when the prefix has ended
  uint64_t seed = 1;
  uint32_t depth = 3;
  uint32_t length = 64;
  uint32_t preemptions = UINT32_MAX;  // in the part after the prefix kFirst does not preempt anyway
  std::vector<Choice> prefix;
  std::vector<uint64_t> contended;  // of kLocalFirst: contended_access() of each
  bool operator==(const Request&) const = default;
};

// That the loads (or the writes) of a thread of a byte of memory are in a race with others. An
// object of synchronisation is its first byte.
inline uint64_t contended_access(uint64_t byte, uint16_t thread, bool load) {
  return byte << 7 | uint64_t{thread} << 1 | (load ? 1 : 0);
}

// A place in the code, and the part of the program, to be executed without interruption, that it
// is in.
struct AtomicPlace {
  uint64_t pc = 0;
  uint32_t block = 0;  // 0: in none, which ends the block that a thread is in
  uint32_t order = 0;  // a step back to 0 begins the block anew
};

struct Step {
  Choice choice;
  Op op = Op::kLoad;
  uint8_t size = 0;
  // Nothing was executed: the thread came to wait here (waiting_is_final).
  bool waits = false;
  // A locked operation that always counts as a write, but for a failed compare-exchange.
  bool exact = false;
  bool divisible = false;  // part of a copy: it may as well be several steps
  uint64_t address = 0;
  Value a = 0;
  Value b = 0;
  Value initial = 0;  // of the cell, before anything was written to it
  Value read = 0;
  Value written = 0;
  uint64_t pc = 0;
  uint64_t enabled = 0;  // threads that could execute before this step, one bit each
  uint64_t commits = 0;  // threads whose oldest store could be committed
};

enum class MarkKind : uint8_t {
  kUnitBegin,
  kUnitEnd,
  kUnitCancel,
  kIteration,  // the last `value` operations of the thread were an iteration without effect
  kCall,       // an operation of a concurrent object, right after its step of this name
  kReturn,     // of the innermost one
  kFree,       // of memory that several threads access
};
inline bool is_unit_mark(MarkKind kind) { return kind < MarkKind::kIteration; }

// Something that a thread did between its operations.
struct Mark {
  MarkKind kind = MarkKind::kUnitBegin;
  uint16_t thread = 0;
  uint32_t step = 0;       // before this one
  uint32_t value = 0;      // of kUnitBegin, kCall, kReturn: its label
  uint32_t operation = 0;  // before this one of the thread, counted from 0
  uint64_t address = 0;    // of kFree
  uint64_t size = 0;
};

enum class End : uint8_t {
  kFinished,
  kStuck,        // no thread can go on, and not all have ended
  kBound,        // more steps than may be
  kCrashed,      // by `signal`
  kExited,       // with `status`, not 0
  kDiverged,     // the prefix does not fit: the program is not deterministic
  kRefused,      // it called `detail`, which cannot be controlled
  kHung,         // a thread runs without coming to an operation
  kFailed,       // the environment: `detail`
  kStopped,      // somebody asked for it
  kInterrupted,  // a thread had to wait inside an atomic block: no execution of the changed program
};

// A thread that has not ended.
struct Waiting {
  uint16_t thread = 0;
  Op op = Op::kLoad;
  bool in_loop = false;    // that waits for a value to change
  bool can_go_on = false;  // it only has not been let (waiting_is_final)
  uint64_t address = 0;
  uint64_t pc = 0;
};

struct Run {
  End end = End::kFinished;
  int signal = 0;
  int status = 0;
  std::string detail;
  std::vector<Step> steps;
  std::vector<Mark> marks;
  std::vector<Waiting> waiting;
  std::vector<std::string> outcomes;  // in the order in which they were named
  uint64_t fault_pc = 0;              // of kCrashed without a signal, which `detail` describes
  std::string not_understood;  // an asm statement that it executed: nothing follows from the run
  uint64_t cut_waits = 0;  // threads that looked, woke without reason and looked again too often
  uint64_t freed_compared = 0;  // compare-exchanges with the address of freed memory
  uint64_t unsaid = 0;  // accesses that were not told one by one: several threads' at one place
};

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  // Valid until the next call.
  virtual const Run& run(const Request& request) = 0;
  // These will be asked for next, in this order, if nothing else is. For programs that are faster
  // when they know.
  virtual void expect(const std::vector<Request>&) {}
};

}  // namespace tsomon::explore
