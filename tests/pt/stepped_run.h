// The truth that decoders are tested against: a real program, one instruction at a time.
//
// Purpose     Runs a program under ptrace and writes down, between its two breakpoints, every
//             instruction of every thread with the registers before it.
// Threads     One thread runs at a time, for a random number of steps; the order of all steps is
//             the order of `steps`.
// Strings     The repetitions of a rep instruction are one step.
// PTWRITE     Carried out by the stepper: the processor need not have it.
// Signals     Sent at random steps where `signal` is set: asynchronous, as interrupts are.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "decoders/x86/instruction.h"

namespace tsomon::test {

struct Step {
  uint64_t ip = 0;
  uint64_t next = 0;     // where the thread was afterwards; an interrupt may take it elsewhere
  uint32_t thread = 0;   // position in StepRun::threads
  uint32_t quantum = 0;  // changes whenever another thread goes on
  x86::RegisterFile registers;  // before the instruction, all known
};

struct MappedCode {
  std::string file;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t address = 0;
};

struct SteppedRun {
  std::vector<Step> steps;
  std::vector<int> threads;      // their ids
  std::vector<MappedCode> code;  // that of the kernel (vdso) as a temporary file
  std::unordered_map<uint64_t, x86::Instruction> instructions;
  uint64_t memory_checks = 0;  // stores and loads whose values were compared with the memory
  uint64_t memory_errors = 0;

  const x86::Instruction& at(uint64_t ip) const { return instructions.at(ip); }
};

struct StepOptions {
  uint64_t seed = 1;
  int signal = 0;
  bool check_memory = false;
  size_t max_steps = 200000;
};

SteppedRun step_through(const std::string& program, const StepOptions& options = {});

}  // namespace tsomon::test
