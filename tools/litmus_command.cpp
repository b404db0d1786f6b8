// `tsomon litmus`: litmus tests on the abstract machine, under SC and TSO.
//
// Exit status 0 when every test was judged, whatever its verdict: that a relaxed outcome is
// possible is what a litmus test asks, not a violation. 2 if a file could not be read, else 3 if a
// bound left an answer open.
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "decoders/litmus/judge.h"
#include "decoders/litmus/parser.h"
#include "monitor/events/read_input.h"
#include "tools/command.h"
#include "tools/number_option.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/stop_signals.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr const char* kLitmusTool = "tsomon litmus";

using litmus::Judgement;
using litmus::LitmusTest;
using litmus::ModelJudgement;

struct LitmusArguments {
  std::vector<std::string> files;
  OutputFormat output = OutputFormat::kText;
  machine::Limits limits;
};

constexpr size_t kMaxFileSize = size_t{16} << 20;

// As signed: a litmus test that writes -1 wants to see -1.
int64_t signed_value(machine::Value value, uint8_t width) {
  const int unused = 64 - 8 * width;
  return static_cast<int64_t>(value << unused) >> unused;
}

std::string value_text(machine::Value value, uint8_t width) {
  return std::to_string(signed_value(value, width));
}

std::string model_text(const char* model, const LitmusTest& test, const ModelJudgement& judgement) {
  std::string out = fmt::format(
      "  {}: {} ({}), {} states, {} executions{}\n", model, litmus::verdict_text(judgement.verdict),
      litmus::quantifier_text(test.quantifier), judgement.states.size(), judgement.executions,
      judgement.exploration.complete() ? "" : ", incomplete");
  for (const auto& values : judgement.states) {
    std::string line;
    for (size_t index = 0; index < values.size(); ++index) {
      line += fmt::format(" {}={}", printable(test.observed[index].name),
                          value_text(values[index], test.observed[index].width));
    }
    const bool satisfies = litmus::holds(test.proposition, test.observed, values);
    out += fmt::format("   {}{}\n", satisfies ? "*" : " ",
                       line.empty() ? " (nothing observed)" : line);
  }
  return out;
}

void print_text(const std::string& file, const LitmusTest& test, const Judgement& judgement) {
  put_lines(stdout, fmt::format("{} ({}): {}\n", printable(test.name), printable(file),
                                !judgement.robust   ? "robustness inconclusive"
                                : *judgement.robust ? "robust"
                                                    : "not robust") +
                        model_text("SC", test, judgement.sc) +
                        model_text("TSO", test, judgement.tso));
}

nlohmann::ordered_json model_json(const LitmusTest& test, const ModelJudgement& judgement) {
  auto states = nlohmann::ordered_json::array();
  for (const auto& values : judgement.states) {
    auto named = nlohmann::ordered_json::object();
    for (size_t index = 0; index < values.size(); ++index) {
      named[test.observed[index].name] = signed_value(values[index], test.observed[index].width);
    }
    states.push_back({{"values", std::move(named)},
                      {"satisfies", litmus::holds(test.proposition, test.observed, values)}});
  }
  return {{"states", judgement.states.size()},
          {"executions", judgement.executions},
          {"verdict", litmus::verdict_text(judgement.verdict)},
          {"complete", judgement.exploration.complete()},
          {"final_states", std::move(states)}};
}

void print_json(const std::string& file, const LitmusTest& test, const Judgement& judgement) {
  nlohmann::ordered_json object = {{"file", file},
                                   {"name", test.name},
                                   {"quantifier", litmus::quantifier_text(test.quantifier)},
                                   {"sc", model_json(test, judgement.sc)},
                                   {"tso", model_json(test, judgement.tso)},
                                   {"robust", nullptr},
                                   {"complete", judgement.complete()}};
  if (judgement.robust) {
    object["robust"] = *judgement.robust;
  }
  put_json(stdout, object, kLitmusTool);
}

// The reason why not everything was seen.
const char* bound_of(const Judgement& judgement) {
  const machine::Exploration& sc = judgement.sc.exploration;
  const machine::Exploration& tso = judgement.tso.exploration;
  return sc.stopped || tso.stopped                   ? "interrupted"
         : sc.state_limit_hit || tso.state_limit_hit ? "a bound was hit (--max-states)"
                                                     : "a bound was hit (--max-jumps)";
}

// The file was not judged; others are.
void refuse(const std::string& file, const LitmusArguments& options, const Error& error) {
  put_message("", error.to_string());
  if (options.output == OutputFormat::kJson) {
    put_error_json(file, {}, error, kLitmusTool);
  }
}

Error not_judged(const std::string& file, const std::string& why) {
  return {ErrorKind::kEnvironment, input_name(file), {}, why + ": not judged"};
}

int judge_file(const std::string& file, const LitmusArguments& options) {
  const std::string input = input_name(file);
  const auto test = read_input(file, kMaxFileSize).and_then([&](const std::string& text) {
    return litmus::parse_litmus(text, input);
  });
  if (!test) {
    refuse(file, options, test.error());
    return kExitBadInput;
  }
  const Judgement judgement = litmus::judge_litmus(*test, options.limits);
  if (options.output == OutputFormat::kJson) {
    print_json(file, *test, judgement);
  } else {
    print_text(file, *test, judgement);
  }
  if (!judgement.complete()) {
    put_message(
        input, fmt::format("{}: states and executions are those seen so far", bound_of(judgement)));
    return kExitInconclusive;
  }
  return kExitClean;
}

int run_litmus(const LitmusArguments& options) {
  const StopSignals signals;
  int status = kExitClean;
  for (const std::string& file : options.files) {
    int judged = kExitClean;
    try {
      judged = judge_file(file, options);
    } catch (const WorkEnded& end) {
      refuse(file, options, not_judged(file, end.what()));
      judged = kExitInconclusive;
    } catch (const std::bad_alloc&) {
      refuse(file, options, not_judged(file, "out of memory"));
      judged = kExitEnvironment;
    }
    // What was not judged outranks what was left open.
    if (judged != kExitClean && (status == kExitClean || status == kExitInconclusive)) {
      status = judged;
    }
  }
  return status;
}

}  // namespace

void add_litmus_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "litmus", "Run x86 litmus tests on the abstract machine, under SC and under TSO");
  auto options = std::make_shared<LitmusArguments>();
  command->add_option("FILE", options->files, "Litmus tests; - is standard input")->required();
  command
      ->add_option("--max-states", options->limits.max_states,
                   "Machine states to visit per test and model; large ones count as several")
      ->check(positive_number())
      ->capture_default_str();
  command
      ->add_option("--max-jumps", options->limits.max_backward_jumps,
                   "Backward jumps that one thread may take in one execution")
      ->capture_default_str();
  add_output_option(*command, options->output);
  command->footer(
      "States that satisfy the condition are marked with *.\n"
      "Exit status: 0 all tests were judged, whatever the verdict; 2 a file could not be read;\n"
      "3 a bound, or SIGINT or SIGTERM, left an answer open; 4 out of memory.");
  command->callback([options, &exit_status] { exit_status = run_litmus(*options); });
}

}  // namespace tsomon
