// A program of the abstract machine, as something to explore. After the prefix the commits come first, then the thread
// with the smallest number; of Policy::kLocalFirst what no other thread can see comes before.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/explore/program.h"
#include "tso/machine/machine.h"

namespace tsomon::explore {

class MachineProgram : public Program {
 public:
  MachineProgram(const machine::Program& program, Model model)
      : machine_(program,
                 {.model = model == Model::kSc ? machine::Model::kSc : machine::Model::kTso}),
        state_(machine_.initial()) {}

  const Run& run(const Request& request) override;
  const machine::State& state() const { return state_; }  // after the last run

 private:
  void settle(uint16_t thread);
  Step describe(uint16_t thread) const;
  void masks(Step* step) const;
  Choice choose(const Step& now, const Request& request) const;

  machine::Machine machine_;
  machine::State state_;
  Run run_;
};

}  // namespace tsomon::explore
