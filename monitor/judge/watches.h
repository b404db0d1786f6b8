// Several questions about the same events: a watch for each.
//
// Contract    As Watch. Findings say which property they are about (ReportedFinding::property); their numbers
//             count for each of them.
// Complexity  That of all watches together: each has a detector and a history of its own.
// Thread-safety: none.
#pragma once

#include <memory>
#include <vector>

#include "monitor/judge/watch.h"

namespace tsomon {

class Watches {
 public:
  Watches(const Symbols& symbols, const std::vector<WatchOptions>& options,
          const Watch::Callback& report) {
    for (const WatchOptions& each : options) {
      all_.push_back(std::make_unique<Watch>(symbols, each, report));
    }
  }

  void expect_cancels() {
    for (const auto& watch : all_) {
      watch->expect_cancels();
    }
  }
  void add(const EventBlock& block) {
    for (const auto& watch : all_) {
      watch->add(block);
    }
  }
  void lost(const EventLoss& loss) {
    for (const auto& watch : all_) {
      watch->lost(loss);
    }
  }
  void incomplete() {
    for (const auto& watch : all_) {
      watch->incomplete();
    }
  }
  void idle() {
    for (const auto& watch : all_) {
      watch->idle();
    }
  }
  void finish() {
    for (const auto& watch : all_) {
      watch->finish();
    }
  }
  std::vector<WatchSummary> summaries() const {  // in the order of the options
    std::vector<WatchSummary> summaries;
    for (const auto& watch : all_) {
      summaries.push_back(watch->summary());
    }
    return summaries;
  }

 private:
  std::vector<std::unique_ptr<Watch>> all_;
};

}  // namespace tsomon
