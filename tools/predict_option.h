// `--predict` of the commands that watch programs.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "monitor/predict/slices.h"
#include "tools/watch_report.h"

namespace tsomon {

struct PredictChoice {
  bool knows_atomics = false;  // of the events of the command (EventSource::knows_atomics())
  bool predict = false;
  uint64_t events = SliceOptions().slice_events;
  uint64_t work = SliceOptions().max_work;
};

void add_predict_options(CLI::App& command, PredictChoice& choice);

// What is predicted is printed as it comes.
class OnlinePredictions {
 public:
  // `filter` may be nullptr.
  OnlinePredictions(const PredictChoice& choice, const ReportOutput& output, FindingFilter* filter);

  // Absent where nothing is asked for.
  EventFollower* follower() { return predictor_.get(); }
  void print_summary(const std::string& name) const;
  // An exit status, with what was predicted.
  int worse(int status) const;

 private:
  void print(const Prediction& prediction);

  const ReportOutput output_;
  FindingFilter* filter_;
  HiddenFindings hidden_;  // of all slices
  std::unique_ptr<SlicePredictor> predictor_;
};

}  // namespace tsomon
