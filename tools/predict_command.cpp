// `tsomon predict`: what could have happened in another schedule of the run that was recorded.
#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "monitor/events/read_input.h"
#include "monitor/findings/result_json.h"
#include "monitor/input/load.h"
#include "monitor/input/open_events.h"
#include "monitor/predict/merge_parts.h"
#include "monitor/predict/predict.h"
#include "tools/command.h"
#include "tools/files_option.h"
#include "tools/findings_option.h"
#include "tools/input_memory.h"
#include "tools/number_option.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/part_option.h"
#include "tools/stop_signals.h"
#include "tools/word_option.h"

namespace tsomon {
namespace {

constexpr const char* kPredictTool = "tsomon predict";

struct PredictArguments {
  std::vector<std::string> files;
  std::vector<std::string> kinds = {"races", "deadlocks", "atomicity", "use-after-free",
                                    "use-after-destroy"};
  std::string model = "sc";
  std::string branches = "auto";
  std::string format = "auto";
  FileSearch search;
  uint64_t max_events = UINT64_MAX;
  uint64_t window_events = 0;  // as many as the memory holds
  unsigned jobs = 0;           // as many as there are processors
  uint64_t max_work = 100'000'000'000;
  std::string part;  // "2/8"
  bool merge = false;
  uint64_t witness_events = 1'000'000;  // more take more memory, as JSON, than most analyses
  bool verbose = false;
  FindingsChoice findings;
  OutputFormat output = OutputFormat::kText;
};

// What an event takes in long recordings, with all that is made of it.
constexpr uint64_t kBytesOfEvent = 160;
constexpr uint64_t kBytesOfBufferedEvent = 400;

// In bytes; as much as one can wish for where the system does not say.
uint64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  uint64_t kilobytes = 0;
  while (info >> name >> kilobytes) {
    if (name == "MemAvailable:") {
      return kilobytes * 1024;
    }
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return UINT64_MAX;
}

predict::Branches branches_of(const std::string& name) {
  return name == "as-recorded"        ? predict::Branches::kAsRecorded
         : name == "after-every-read" ? predict::Branches::kAfterEveryRead
         : name == "none"             ? predict::Branches::kNone
                                      : predict::Branches::kAuto;
}

int refuse(const std::string& file, const PredictArguments& options, const Error& error,
           int status) {
  put_message(kPredictTool, error.to_string());
  if (options.output == OutputFormat::kJson) {
    put_error_json(file, "", error, kPredictTool);
  }
  return status;
}

int predict_file(const std::string& file, const PredictArguments& options, FindingFilter& filter) {
  PredictOptions asked;
  const auto kind = [&](const char* name) {
    return std::find(options.kinds.begin(), options.kinds.end(), name) != options.kinds.end();
  };
  asked.races = kind("races");
  asked.deadlocks = kind("deadlocks");
  asked.atomicity = kind("atomicity");
  asked.uses_after_free = kind("use-after-free");
  asked.uses_after_destroy = kind("use-after-destroy");
  asked.race.branches = branches_of(options.branches);
  asked.race.max_witness_events = options.witness_events;
  asked.bounds.max_work = options.max_work;
  asked.race.jobs =
      options.jobs != 0 ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  asked.files = options.search;
  asked.store_buffers = options.model == "tso";
  const uint64_t bytes = asked.store_buffers ? kBytesOfBufferedEvent : kBytesOfEvent;
  asked.max_events = options.max_events;
  asked.part = part_named(options.part);
  asked.window_events =
      std::min(predict::kMaxEvents / 2,
               options.window_events != 0 ? options.window_events : available_memory() / bytes);
  const auto prediction = predict_input(file, *input_format(options.format), asked);
  if (!prediction) {
    return refuse(file, options, prediction.error(), kExitBadInput);
  }
  const WorkPause outside;  // a report is printed whole; and JSON cannot do without memory
  put_messages(kPredictTool, prediction->input, prediction->warnings);
  HiddenFindings hidden(&filter);
  if (options.output == OutputFormat::kJson) {
    ListedJson json = prediction_json(file, *prediction, &hidden);
    if (!prediction->warnings.empty()) {
      json.object["warnings"] = prediction->warnings;
    }
    put_listed_json(stdout, json, kPredictTool);
  } else {
    put_lines(stdout, prediction_text(*prediction, &hidden, text_shape(stdout, options.verbose)));
  }
  const bool complete = prediction->complete();
  return status_of(prediction->found() ? Verdict::kDefinite
                   : complete          ? Verdict::kClean
                                       : Verdict::kInconclusive,
                   hidden, complete);
}

// The answers of parts as one.
int merge_parts(const PredictArguments& options) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (const std::string& file : options.files) {
    auto text = read_input(file);
    if (!text) {
      return put_error(kPredictTool, text.error());
    }
    parts.emplace_back(input_name(file), std::move(*text));
  }
  const auto merged = merge_prediction_parts(parts);
  if (!merged) {
    return put_error(kPredictTool, merged.error());
  }
  put_json(stdout, merged->object, kPredictTool);
  const bool complete = merged->object.value("complete", false);
  if (merged->found && merged->shown > 0) {
    return kExitViolation;
  }
  return complete ? kExitClean : kExitInconclusive;
}

int run_predict(const PredictArguments& options) {
  if (options.merge) {
    return merge_parts(options);
  }
  auto filter = options.findings.filter();
  if (!filter) {
    put_message(kPredictTool, filter.error().to_string());
    return kExitBadInput;
  }
  const StopSignals signals;
  int status = kExitClean;
  for (const std::string& file : options.files) {
    try {
      status = worse(
          status, within_memory_of({file}, [&] { return predict_file(file, options, *filter); }));
    } catch (const WorkEnded& end) {
      const Error error{
          ErrorKind::kEnvironment, input_name(file), {}, std::string(end.what()) + ": not judged"};
      status = worse(status, refuse(file, options, error, kExitInconclusive));
    } catch (const std::bad_alloc&) {
      const Error error{
          ErrorKind::kEnvironment,
          input_name(file),
          {},
          "out of memory: not judged; give it more, or predict from a shorter recording"};
      status = worse(status, refuse(file, options, error, kExitEnvironment));
    }
  }
  put_unused(kPredictTool, *filter);
  return options.findings.status(status);
}

}  // namespace

void add_predict_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("predict",
                                         "Find races, deadlocks, atomicity violations, uses after "
                                         "free and after destruction of other\n"
                                         "schedules of a recorded run");
  auto options = std::make_shared<PredictArguments>();
  command
      ->add_option("FILE", options->files,
                   "Captures, packs, perf.data or text traces; - is standard input")
      ->required()
      ->option_text("...");
  command->add_option("--kinds", options->kinds, "What is predicted; separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(one_of({"races", "deadlocks", "atomicity", "use-after-free", "use-after-destroy"}))
      ->default_str("races,deadlocks,atomicity,use-after-free,use-after-destroy")
      ->option_text("LIST");
  command
      ->add_option("--branches", options->branches,
                   "Which loads have to see what they saw: those before a recorded branch, all\n"
                   "of them (safe), or none; auto: as recorded where the input has branches,\n"
                   "else after every read")
      ->check(one_of({"auto", "as-recorded", "after-every-read", "none"}))
      ->capture_default_str();
  command
      ->add_option("--model", options->model,
                   "The memory model of the other schedules; tso: stores may commit late, and\n"
                   "witnesses say when each does")
      ->check(one_of({"sc", "tso"}))
      ->capture_default_str();
  command->add_option("--format", options->format, "Format of the inputs, auto: by content")
      ->check(one_of({"auto", "std", "capture", "perf", "pack"}))
      ->capture_default_str();
  add_files_options(*command, options->search);
  command
      ->add_option("--max-events", options->max_events,
                   "Events of an input that are looked at, from its beginning; without it all")
      ->check(positive_number())
      ->option_text("N");
  command
      ->add_option(
          "--window-events", options->window_events,
          "Longer inputs are looked at in windows of so many events, each of which begins\n"
          "with the last quarter of the one before; without it as many as fit into memory")
      ->check(positive_number())
      ->option_text("N");
  auto* const part = add_part_option(
      *command, options->part,
      "Looks at every Nth window alone, from the Kth on, with K from 1 to N; --merge\n"
      "puts the answers of all parts together");
  command
      ->add_flag(
          "--merge", options->merge,
          "The files are what `tsomon predict --part K/N --output json` wrote, of each part;\n"
          "writes, as JSON, what one process would have written")
      ->excludes(part);
  command
      ->add_option("--jobs", options->jobs,
                   "Threads that search; without it as many as there are processors. The\n"
                   "result does not depend on it")
      ->check(CLI::Range(1U, 1024U))
      ->option_text("N");
  command
      ->add_option("--max-work", options->max_work,
                   "Steps of the search in a window, some nanoseconds each; beyond it is not\n"
                   "complete")
      ->check(positive_number())
      ->capture_default_str();
  command
      ->add_option("--witness-events", options->witness_events,
                   "Events of all witnesses together that are reported; all are validated")
      ->capture_default_str();
  add_verbose_option(*command, options->verbose);
  add_findings_options(*command, options->findings);
  add_output_option(*command, options->output);
  command->footer(
      "Exit status: 0 nothing can happen; 1 something can; 2 bad usage, or an input that cannot\n"
      "be read or is malformed (the others are still judged); 3 inconclusive; 4 out of memory.");
  command->callback([options, &exit_status] { exit_status = run_predict(*options); });
}

}  // namespace tsomon
