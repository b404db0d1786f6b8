// A program of which every run may show that what was explored before is void.
//
// Purpose     After each run: words that turned out to be shared are steps from then on, and places
//             that a repair means are changed from then on. Then the exploration begins anew.
// Thread-safety: none.
#pragma once

#include <utility>

#include "monitor/explore/program_process.h"
#include "monitor/explore/program_repair.h"

namespace tsomon::explore {

class LearningProgram : public Program {
 public:
  // `repair` may be nullptr.
  LearningProgram(ProgramProcess& process, RepairPlaces* repair)
      : process_(process), repair_(repair) {}

  const Run& run(const Request& request) override {
    const Run& run = process_.run(request);
    learnt_ = process_.learn_shared() || learnt_;
    learnt_ = (repair_ != nullptr && repair_->learn(run)) || learnt_;
    unsaid_ = unsaid_ || run.unsaid != 0;
    return run;
  }
  void expect(const std::vector<Request>& requests) override { process_.expect(requests); }
  bool learnt() const { return learnt_; }
  bool take_learnt() { return std::exchange(learnt_, false); }
  // Copies of several shared words were one step.
  bool unsaid() const { return unsaid_; }

 private:
  ProgramProcess& process_;
  RepairPlaces* repair_;
  bool learnt_ = false;
  bool unsaid_ = false;
};

}  // namespace tsomon::explore
