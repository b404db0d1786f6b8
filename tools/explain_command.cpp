// `tsomon explain`: what would have ruled the violations of a run out.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "monitor/events/read_input.h"
#include "monitor/explain/explain.h"
#include "monitor/explain/explain_explored.h"
#include "monitor/input/load.h"
#include "monitor/input/open_events.h"
#include "tools/command.h"
#include "tools/exploration_options.h"
#include "tools/files_option.h"
#include "tools/input_memory.h"
#include "tools/number_option.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/stop_signals.h"
#include "tools/word_option.h"

namespace tsomon {
namespace {

constexpr const char* kExplainTool = "tsomon explain";
constexpr uint64_t kMaxViolations = 10'000;

struct ExplainArguments : ExplorationArguments {
  std::vector<std::string> files;
  std::vector<std::string> passing;
  std::string property = "serializability";
  std::string format = "auto";
  FileSearch search;
  uint64_t max_work = 20'000'000'000;
  uint64_t violations = 32;
  bool minimize = false;
  bool with_program = false;
  OutputFormat output = OutputFormat::kText;
};

int refuse(const std::string& file, const ExplainArguments& options, const Error& error,
           int status) {
  put_message(kExplainTool, error.to_string());
  if (options.output == OutputFormat::kJson) {
    put_error_json(file, options.property, error, kExplainTool);
  }
  return status;
}

int status_of(const Explanation& explanation) {
  if (explanation.violations() > 0) {
    return kExitViolation;
  }
  for (const ExplainedInput& input : explanation.violating) {
    if (input.report.verdict() == Verdict::kInconclusive) {
      return kExitInconclusive;
    }
  }
  return kExitClean;
}

Result<std::vector<ExplainedInput>> read_all(const std::vector<std::string>& files,
                                             const ExplainOptions& options) {
  std::vector<ExplainedInput> inputs;
  for (const std::string& file : files) {
    auto input = read_for_explaining(file, options);
    if (!input) {
      return tl::unexpected<Error>(input.error());
    }
    put_messages(kExplainTool, input->input, input->warnings);
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

// A folder that `explore -o` wrote stands for its traces.
void expand_folders(ExplainArguments* options) {
  std::vector<std::string> files;
  for (const std::string& file : options->files) {
    std::error_code error;
    if (!std::filesystem::is_directory(file, error)) {
      files.push_back(file);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(file, error)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("bad-", 0) == 0) {
        files.push_back(entry.path().string());
      } else if (name.rfind("good-", 0) == 0) {
        options->passing.push_back(entry.path().string());
      }
    }
  }
  const auto by_number = [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  };
  if (files.size() != options->files.size()) {
    std::sort(files.begin(), files.end(), by_number);
    std::sort(options->passing.begin(), options->passing.end(), by_number);
  }
  options->files = std::move(files);
}

int explain_files(ExplainArguments& options) {
  ExplainOptions asked;
  asked.check.property = *property_named(options.property);
  asked.check.analysis.max_findings =
      static_cast<uint32_t>(std::min(options.violations, kMaxViolations));
  asked.format = *input_format(options.format);
  asked.files = options.search;
  asked.minimize = options.minimize;
  asked.bounds.max_work = options.max_work;
  const std::string& first = options.files.front();
  auto inputs = read_all(options.files, asked);
  if (!inputs) {
    return refuse(first, options, inputs.error(), kExitBadInput);
  }
  auto passing = read_all(options.passing, asked);
  if (!passing) {
    return refuse(first, options, passing.error(), kExitBadInput);
  }
  auto explanation = explain_inputs(std::move(*inputs), std::move(*passing), asked);
  if (!explanation) {
    return refuse(first, options, explanation.error(), kExitBadInput);
  }
  std::optional<ExploredRepairs> explored;
  if (options.with_program && explanation->violations() > 0) {
    auto tried = explore_repairs(*explanation, options.asked());
    if (!tried) {
      return refuse(options.explore.command[0], options, tried.error(),
                    exit_status_of(tried.error()));
    }
    explored = std::move(*tried);
    put_refuted_last(&*explanation, &*explored);
  }
  const WorkPause outside;  // a report is printed whole; and JSON cannot do without memory
  const ExploredRepairs* const shown = explored ? &*explored : nullptr;
  if (options.output == OutputFormat::kJson) {
    put_json(stdout, explanation_json(*explanation, shown), kExplainTool);
  } else {
    put_lines(stdout, explanation_text(*explanation, shown));
  }
  return status_of(*explanation);
}

int run_explain(ExplainArguments& options) {
  expand_folders(&options);
  if (options.files.empty()) {
    put_message(kExplainTool, "no bad-*.std is there");
    return kExitBadInput;
  }
  const StopSignals signals;
  const std::string input = input_name(options.files.front());
  try {
    std::vector<std::string> files = options.files;
    files.insert(files.end(), options.passing.begin(), options.passing.end());
    return within_memory_of(files, [&] { return explain_files(options); });
  } catch (const WorkEnded& end) {
    const Error error{
        ErrorKind::kEnvironment, input, {}, std::string(end.what()) + ": not explained"};
    return refuse(options.files.front(), options, error, kExitInconclusive);
  } catch (const std::bad_alloc&) {
    const Error error{ErrorKind::kEnvironment,
                      input,
                      {},
                      "out of memory: not explained; give it more, or a shorter recording"};
    return refuse(options.files.front(), options, error, kExitEnvironment);
  }
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "explain", "Find what would have ruled violations out: atomic blocks, fences, locks");
  auto options = std::make_shared<ExplainArguments>();
  command
      ->add_option(
          "FILE", options->files,
          "Captures, packs, perf.data or text traces with violations; - is standard input; a\n"
          "folder of explore -o stands for its traces")
      ->required()
      ->option_text("...");
  command
      ->add_option("--passing", options->passing,
                   "Runs without a violation: a repair that forbids few of them is better")
      ->option_text("FILE...");
  command->add_option("--property", options->property, "What is violated")
      ->check(one_of({"serializability", "robustness", "sc-serializability"}))
      ->capture_default_str();
  command->add_option("--format", options->format, "Format of the inputs, auto: by content")
      ->check(one_of({"auto", "std", "capture", "perf", "pack"}))
      ->capture_default_str();
  add_files_options(*command, options->search);
  command
      ->add_option("--violations", options->violations,
                   "How many violations of an input are looked at")
      ->check(positive_number())
      ->capture_default_str();
  command->add_flag("--minimize", options->minimize,
                    "Show the smallest part of the trace that shows each violation");
  command
      ->add_option("--max-work", options->max_work,
                   "Steps of the search, some nanoseconds each; beyond it is not complete")
      ->check(positive_number())
      ->capture_default_str();
  command->add_flag("--explore", options->with_program,
                    "Try each repair on the program that is named after --, with these options of\n"
                    "explore");
  add_exploration_options(*command, *options);
  add_output_option(*command, options->output);
  command->add_option("--program", options->explore.command)->group("")->allow_extra_args(false);
  command->footer(
      "Exit status: 0 nothing to explain; 1 a violation; 2 bad usage, or an input that cannot be\n"
      "read or is malformed; 3 inconclusive; 4 out of memory.");
  command->callback([options, &exit_status] {
    for (std::string& word : options->explore.command) {
      word.erase(0, 1);  // tsomon.cpp
    }
    if (options->with_program == options->explore.command.empty()) {
      throw CLI::RequiredError(options->with_program ? "A program, after --" : "--explore");
    }
    exit_status = run_explain(*options);
  });
}

}  // namespace tsomon
