#include "tools/predict_option.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "monitor/findings/result_json.h"
#include "tools/command.h"
#include "tools/number_option.h"
#include "tools/output.h"

namespace tsomon {

void add_predict_options(CLI::App& command, PredictChoice& choice) {
  command.add_flag(
      "--predict", choice.predict,
      "Also say what could have happened in another schedule of what the program has "
      "done: of\nslices of the run in which locks were taken in both orders or threads "
      "came close to each\nother on the same data, see tsomon predict");
  command.add_option("--predict-events", choice.events, "How long such a slice is")
      ->check(positive_number())
      ->capture_default_str()
      ->option_text("N");
  command
      .add_option("--predict-work", choice.work,
                  "Steps of the search in all slices, some nanoseconds each; then no more is asked")
      ->check(positive_number())
      ->capture_default_str()
      ->option_text("N");
}

OnlinePredictions::OnlinePredictions(const PredictChoice& choice, const ReportOutput& output,
                                     FindingFilter* filter)
    : output_(output), filter_(filter), hidden_(filter) {
  if (choice.predict) {
    SliceOptions options;
    options.slice_events = choice.events;
    options.max_work = choice.work;
    options.knows_atomics = choice.knows_atomics;
    predictor_ = std::make_unique<SlicePredictor>(
        options, [this](const Prediction& prediction) { print(prediction); });
  }
}

void OnlinePredictions::print(const Prediction& prediction) {
  HiddenFindings hidden(filter_);
  if (output_.format == OutputFormat::kJson) {
    put_listed_json(output_.file, prediction_json("slice", prediction, &hidden), output_.tool);
  } else {
    put_lines(output_.file, predictions_text(prediction, &hidden, output_.shape));
    std::fflush(output_.file);
  }
  hidden_.add(hidden);
}

void OnlinePredictions::print_summary(const std::string& name) const {
  if (predictor_ == nullptr) {
    return;
  }
  const SliceSummary& summary = predictor_->summary();
  if (output_.format == OutputFormat::kJson) {
    nlohmann::ordered_json object = {{"program", name},
                                     {"event", "predictions"},
                                     {"predicted", summary.predicted},
                                     {"slices", summary.slices},
                                     {"left_out", summary.left_out}};
    hidden_.add_to(&object);
    put_json(output_.file, object, output_.tool);
    return;
  }
  put_lines(output_.file,
            fmt::format("{}: {} predicted for other schedules, from {} slices of the run; {} "
                        "occasions were left out\n",
                        name, summary.predicted, summary.slices, summary.left_out) +
                (hidden_.hidden() > 0 ? fmt::format("  {}\n", hidden_.text()) : ""));
}

int OnlinePredictions::worse(int status) const {
  const bool predicted =
      predictor_ != nullptr && predictor_->summary().predicted > 0 && !hidden_.all();
  return predicted && (status == kExitClean || status == kExitInconclusive) ? kExitViolation
                                                                            : status;
}

}  // namespace tsomon
