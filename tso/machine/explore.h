// All executions of a small program on the abstract machine.
//
// Purpose     explore() visits every distinct (reads-from, coherence) class once; outcomes()
//             collects what they end in; enumerate() goes through every single sequence of steps,
//             commits visible, and is the naive twin of explore().
// Classes     Two executions are in one class when every load and locked operation reads from the
//             same write and the writes of every location commit in the same order. Register and
//             memory contents follow from that. A class has the same name under SC and TSO, so the
//             classes of two models can be compared.
// Method      Depth-first search. explore() remembers machine states, each with its reads-from and
//             coherence so far, and runs at once whatever commutes with all other steps: register
//             instructions, jumps, fences that are enabled, and (under TSO) putting a store in the
//             buffer. That loses orders of steps, never a class.
// Bounds      The number of states and of backward jumps per thread. A state is of a usual size,
//             kStateBytes to remember and kStateWork to find; where states are larger, or are found
//             again more often, fewer are visited. A bound that is hit is in the result, which is
//             then a part of the answer. So is a stop that somebody asked for (tso/support/work.h).
// Cost        explore: O(states x length) time and memory, exponential in the number of accesses
//             that race. enumerate: O(executions x length) time, O(length) memory.
// Thread-safety: the functions share nothing; the callbacks run on the caller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tso/machine/machine.h"

namespace tsomon::machine {

// Of a state of explore(): bytes that it and what is found with it take up, and bytes of names that
// are made until it is found.
inline constexpr uint64_t kStateBytes = 192;
inline constexpr uint64_t kStateWork = 2048;

struct Limits {
  uint64_t max_states = 1'000'000;  // distinct states of explore(), steps of enumerate()
  uint32_t max_backward_jumps = 4;  // that one thread may take in one execution
};

struct Exploration {
  uint64_t states = 0;      // distinct states of explore(), steps of enumerate()
  uint64_t executions = 0;  // classes of explore(), step sequences of enumerate()
  bool state_limit_hit = false;
  bool loop_limit_hit = false;
  bool stopped = false;  // by the callback, or because somebody asked for it

  bool complete() const { return !state_limit_hit && !loop_limit_hit && !stopped; }
};

// Names the class of a final state: equal names, equal classes (of one program).
std::string execution_class(const State& state);

// Calls `on_class` with one final state of every class.
Exploration explore(const Machine& machine, const Limits& limits,
                    const std::function<void(const State&)>& on_class);

// Calls `on_execution` with the steps of every execution and its final state; false stops.
Exploration enumerate(
    const Machine& machine, const Limits& limits,
    const std::function<bool(const std::vector<Step>&, const State&)>& on_execution);

struct Outcomes {
  std::set<std::vector<Value>> final_states;  // distinct results of `observe`
  std::set<std::string> classes;              // names of execution_class
  Exploration exploration;
};

// What explore() finds, seen through `observe`, which picks registers and memory of final states.
Outcomes outcomes(const Machine& machine, const Limits& limits,
                  const std::function<std::vector<Value>(const State&)>& observe);

}  // namespace tsomon::machine
