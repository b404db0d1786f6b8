// `tsomon check`: verdicts over files (interfaces.md).
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "monitor/check/check_input.h"
#include "monitor/check/consistency_check.h"
#include "monitor/check/linearizability_check.h"
#include "monitor/events/read_input.h"
#include "monitor/findings/happened_deadlock.h"
#include "monitor/input/open_events.h"
#include "monitor/judge/searched_groups.h"
#include "monitor/judge/stream_check.h"
#include "monitor/specification/sequential_program.h"
#include "tools/command.h"
#include "tools/files_option.h"
#include "tools/findings_option.h"
#include "tools/input_memory.h"
#include "tools/object_option.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/part_option.h"
#include "tools/perf_option.h"
#include "tools/progress_line.h"
#include "tools/property_option.h"
#include "tools/relation_option.h"
#include "tools/stop_signals.h"
#include "tools/word_option.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

struct CheckArguments {
  std::vector<std::string> files;
  std::vector<std::string> properties = {"serializability"};
  std::string sets = "auto";
  RelationChoice relation;
  std::string order = "issue";
  std::string format = "auto";
  PerfOptions perf;
  FileSearch search;
  std::string object = "auto";
  std::string specification;
  linearizability::SearchBounds history_bounds;
  std::string model = "both";
  uint64_t max_decisions = ConsistencyOptions().max_decisions;
  uint64_t max_steps = OrientationBounds().max_steps;
  uint64_t max_undirected = AnalysisOptions().max_undirected;
  std::optional<double> max_work;  // seconds
  uint64_t history = CheckOptions().history_events;
  unsigned jobs = 0;
  std::string part;                             // "2/8"
  std::vector<std::string> searched;            // what parts wrote
  std::shared_ptr<const SearchedGroups> known;  // what these files say
  bool no_values = false;
  std::vector<std::string> without;
  int64_t clock_margin = 0;
  bool all = false;
  bool verbose = false;
  bool progress = false;
  FindingsChoice findings;
  OutputFormat output = OutputFormat::kText;
};

CheckOptions check_options(const CheckArguments& options, const std::string& property) {
  CheckOptions result;
  result.property = *property_named(property);
  result.sets = *set_choice(options.sets);
  RelationOptions& relation = result.analysis.relation;
  relation = options.relation.relation();
  const auto without = [&](const char* refinement) {
    return std::find(options.without.begin(), options.without.end(), refinement) !=
           options.without.end();
  };
  relation.order =
      options.order == "thread" || without("intervals") ? TraceOrder::kThread : TraceOrder::kIssue;
  relation.store_buffer = without("store-buffer") ? 0 : relation.store_buffer;
  relation.lock_order = !without("locks");
  relation.thread_order = !without("threads");
  result.analysis.values = !options.no_values && !without("values");
  const uint64_t max_steps = with_effort(options.max_steps);
  result.analysis.bounds.max_steps = max_steps;
  result.analysis.max_total_steps = 10 * max_steps;
  // Whoever asks for more decisions means those of large components, too.
  const double more =
      static_cast<double>(max_steps) / static_cast<double>(OrientationBounds().max_steps);
  const auto scaled = [more](uint64_t work) {
    return std::max(work, static_cast<uint64_t>(std::min(more * static_cast<double>(work), 1e18)));
  };
  result.analysis.bounds.max_work = scaled(result.analysis.bounds.max_work);
  result.analysis.max_total_work = scaled(result.analysis.max_total_work);
  result.analysis.max_undirected = with_effort(options.max_undirected);
  result.analysis.told = options.all ? Told::kAll : Told::kEachKind;
  result.history_events = options.history;
  result.clock_margin = options.clock_margin;
  result.jobs = options.jobs;
  result.part = part_named(options.part);
  if (result.part) {
    result.found = std::make_shared<SearchedGroups>();
  }
  result.searched = options.known;
  return result;
}

ConsistencyOptions consistency_options(const CheckArguments& options) {
  ConsistencyOptions result;
  result.model = options.model == "sc"    ? ConsistencyModel::kSc
                 : options.model == "tso" ? ConsistencyModel::kTso
                                          : ConsistencyModel::kBoth;
  result.fenced_release = options.relation.relation().fenced_release;
  result.max_decisions = with_effort(options.max_decisions);
  return result;
}

// Clean is what every model that was asked about allows.
int status_of(const ConsistencyReport& report, const ConsistencyOptions& options,
              const HiddenFindings& hidden) {
  const int violation = status_of(Verdict::kDefinite, hidden, report.complete);
  switch (report.verdict) {
    case ConsistencyVerdict::kSc:
      return kExitClean;
    case ConsistencyVerdict::kTso:
      return options.model == ConsistencyModel::kTso ? kExitClean : violation;
    case ConsistencyVerdict::kInconsistent:
      return violation;
    case ConsistencyVerdict::kInconclusive:
      break;
  }
  return kExitInconclusive;
}

constexpr const char* kCheckTool = "tsomon check";
constexpr const char* kTimeOver = "the seconds of --max-work are over";

// Why an analysis was interrupted, if nobody did it.
void name_time(const StopSignals& stop, Notes* notes) {
  if (stop.time_is_over() && notes->take_back(limit_text(WorkLimit::kStopped))) {
    notes->missing(kTimeOver);
  }
}

// The input was not judged; others are.
int refuse(const std::string& file, const CheckArguments& options, const Error& error) {
  put_message(kCheckTool, error.to_string());
  if (options.output == OutputFormat::kJson) {
    for (const std::string& property : options.properties) {
      put_error_json(file, property, error, kCheckTool);
    }
  }
  return kExitBadInput;
}

void add_warnings(const std::vector<std::string>& warnings, nlohmann::ordered_json* object) {
  if (!warnings.empty()) {
    (*object)["warnings"] = warnings;
  }
}

int check_file_consistency(const std::string& file, const CheckArguments& options,
                           FindingFilter& filter) {
  const ConsistencyOptions asked = consistency_options(options);
  int status = kExitClean;
  const auto done = check_consistency_of(
      file, *input_format(options.format), asked,
      [&](const CheckedConsistency& checked) {
        put_messages(kCheckTool, checked.input, checked.warnings);
        HiddenFindings hidden(&filter);
        if (options.output == OutputFormat::kJson) {
          auto object = consistency_json(file, checked, &hidden);
          add_warnings(checked.warnings, &object);
          put_json(stdout, object, kCheckTool);
        } else {
          put_lines(stdout, consistency_text(checked, &hidden));
        }
        status = worse(status, status_of(checked.report, asked, hidden));
      },
      options.search);
  return done ? status : refuse(file, options, done.error());
}

int check_file_linearizability(const std::string& file, const CheckArguments& options,
                               FindingFilter& filter) {
  linearizability::Options asked;
  asked.object = linearizability::object_kind(options.object);
  asked.bounds = options.history_bounds;
  asked.bounds.max_work = with_effort(asked.bounds.max_work);
  asked.want_linearization = options.all;
  // One for each input: several are judged at a time.
  std::unique_ptr<SequentialProgram> specification;
  if (!options.specification.empty()) {
    auto started = SequentialProgram::start(options.specification);
    if (!started) {
      return refuse(file, options, started.error());
    }
    specification = std::move(*started);
    asked.specification = specification.get();
  }
  const auto checked = check_linearizability_of(file, *history_format(options.format), asked);
  if (!checked) {
    return refuse(file, options, checked.error());
  }
  HiddenFindings hidden(&filter);
  if (options.output == OutputFormat::kJson) {
    put_json(stdout, linearizability_json(file, *checked, &hidden), kCheckTool);
  } else {
    put_lines(stdout, linearizability_text(*checked, &hidden));
  }
  switch (checked->report.verdict) {
    case linearizability::Verdict::kLinearizable:
      return kExitClean;
    case linearizability::Verdict::kViolation:
      return status_of(Verdict::kDefinite, hidden, true);
    case linearizability::Verdict::kInconclusive:
      break;
  }
  return kExitInconclusive;
}

// Who waits for whom at the end of the input. The exit status.
int report_deadlock(const CheckedProperties& checked, const HappenedDeadlock& deadlock,
                    const CheckArguments& options, FindingFilter& filter,
                    nlohmann::ordered_json* object) {
  if (!deadlock.any()) {
    return kExitClean;
  }
  HiddenFindings hidden(&filter);
  *object = deadlock.json();
  hidden.mark(deadlock.places(), object);
  if (options.output != OutputFormat::kJson) {
    put_lines(stdout, checked.input + ": " +
                          (hidden.all() ? "deadlock: " + hidden.text() + "\n\n" : deadlock.text()));
  }
  return hidden.all() ? kExitClean : kExitViolation;
}

// A part says what it has searched, and has no verdict.
void put_part(const std::string& file, const CheckedProperties& checked,
              const std::vector<CheckOptions>& asked) {
  for (const CheckOptions& question : asked) {
    put_json(stdout,
             {{"file", file},
              {"property", property_name(question.property)},
              {"part", {{"number", question.part->number}, {"of", question.part->of}}},
              {"warnings", checked.warnings},
              {"searched", question.found->json()}},
             kCheckTool);
  }
}

// What parts have searched (put_part).
Result<std::shared_ptr<const SearchedGroups>> read_parts(const std::vector<std::string>& files) {
  auto searched = std::make_shared<SearchedGroups>();
  for (const std::string& file : files) {
    auto text = read_input(file);
    if (!text) {
      return tl::unexpected<Error>(text.error());
    }
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      const auto object = nlohmann::ordered_json::parse(line, nullptr, false);
      if (object.is_object() && object.contains("error")) {
        continue;  // it could not judge the input, and others say why
      }
      const bool is_part = object.is_object() && object.contains("searched");
      const auto added = is_part
                             ? searched->add(object["searched"])
                             : fail(ErrorKind::kMalformed,
                                    "expected what `tsomon check --part K/N --output json` writes");
      if (!added) {
        Error error = added.error();
        error.input = input_name(file);
        return tl::unexpected<Error>(std::move(error));
      }
    }
  }
  return std::shared_ptr<const SearchedGroups>(std::move(searched));
}

int judge_file(const std::string& file, const CheckArguments& options, const StopSignals& stop,
               FindingFilter& filter) {
  if (options.properties.front() == "consistency") {
    return check_file_consistency(file, options, filter);
  }
  if (options.properties.front() == "linearizability") {
    return check_file_linearizability(file, options, filter);
  }
  std::vector<CheckOptions> asked;
  for (const std::string& property : options.properties) {
    asked.push_back(check_options(options, property));
  }
  auto checked = [&] {
    Progress progress;
    const ProgressLine line(file, progress, options.progress);
    asked.front().progress = &progress;
    return check_properties(file, *input_format(options.format), asked, options.perf,
                            options.search);
  }();
  if (!checked) {
    return refuse(file, options, checked.error());
  }
  const WorkPause outside;  // a report is printed whole, whoever asks for a stop
  put_messages(kCheckTool, checked->input, checked->warnings);
  if (asked.front().part) {
    put_part(file, *checked, asked);
    return kExitClean;
  }
  const HappenedDeadlock deadlock =
      happened_deadlock(checked->stuck, checked->symbols, checked->names);
  nlohmann::ordered_json waiting;
  int status = report_deadlock(*checked, deadlock, options, filter, &waiting);
  for (CheckReport& report : checked->reports) {
    name_time(stop, &report.notes);
    HiddenFindings hidden(&filter);
    const ReportChoice choice{checked->names, options.all, &hidden,
                              text_shape(stdout, options.verbose)};
    if (options.output == OutputFormat::kJson) {
      auto object = report_json(file, checked->symbols, report, choice);
      if (deadlock.any()) {
        object["deadlock"] = waiting;
      }
      add_warnings(checked->warnings, &object);
      put_json(stdout, object, kCheckTool);
    } else {
      put_lines(stdout, report_text(checked->input, checked->symbols, report, choice));
    }
    status = worse(status, status_of(report.verdict(), hidden, report.complete()));
  }
  return status;
}

// What one input is too much for, the next one may not be.
int check_file(const std::string& file, const CheckArguments& options, const StopSignals& stop,
               FindingFilter& filter) {
  try {
    return within_memory_of({file}, [&] { return judge_file(file, options, stop, filter); });
  } catch (const WorkEnded& end) {
    refuse(file, options,
           {ErrorKind::kEnvironment,
            input_name(file),
            {},
            std::string(stop.time_is_over() ? kTimeOver : end.what()) + ": not judged"});
    return kExitInconclusive;
  } catch (const std::bad_alloc&) {
    refuse(file, options,
           {ErrorKind::kEnvironment,
            input_name(file),
            {},
            "out of memory: not judged; give it more, or check a shorter recording"});
    return kExitEnvironment;
  }
}

int run_check(CheckArguments& options) {
  if (!options.searched.empty()) {
    auto known = read_parts(options.searched);
    if (!known) {
      return put_error(kCheckTool, known.error());
    }
    options.known = std::move(*known);
  }
  auto filter = options.findings.filter();
  if (!filter) {
    put_message(kCheckTool, filter.error().to_string());
    return kExitBadInput;
  }
  int status = kExitClean;
  const StopSignals stop(options.max_work);
  for (const std::string& file : options.files) {
    status = worse(status, check_file(file, options, stop, *filter));
  }
  put_unused(kCheckTool, *filter);
  return options.findings.status(status);
}

void add_part_options(CLI::App& command, CheckArguments& options) {
  auto* const part = add_part_option(
      command, options.part,
      "Searches every Nth group of units that the input leaves open alone, from the Kth on,\n"
      "with K from 1 to N; needs --output json, and has no verdict");
  command
      .add_option(
          "--searched", options.searched,
          "What `tsomon check --part` wrote of this input, with the same options; may be\n"
          "repeated: what it has searched is not searched again, and the result is the same")
      ->allow_extra_args(false)
      ->excludes(part)
      ->option_text("FILE");
}

// Whether what is asked has parts.
void check_parts(const CheckArguments& options) {
  if (options.part.empty() && options.searched.empty()) {
    return;
  }
  const std::string option = options.part.empty() ? "--searched" : "--part";
  const std::string& asked = options.properties.front();
  if (!property_named(asked) || !StreamCheck::can_check(check_options(options, asked))) {
    throw CLI::ValidationError(option,
                               "belongs to what is asked of an input that time, locks and threads "
                               "put in order");
  }
  if (!options.part.empty() && options.output != OutputFormat::kJson) {
    throw CLI::ValidationError(option, "writes what other processes read: add --output json");
  }
}

void add_linearizability_options(CLI::App& command, CheckArguments& options) {
  add_object_option(
      command, options.object,
      "Of linearizability: what the operations are of; auto: as the input says, or by their names");
  add_specification_option(command, options.specification);
  command
      .add_option("--max-bytes", options.history_bounds.max_bytes,
                  "Of linearizability: memory of the search, per object and key")
      ->capture_default_str();
}

// Whether the format is one of what the property is asked of.
void check_format(const CheckArguments& options) {
  const std::vector<std::string>& asked = options.properties;
  const bool histories = std::find(asked.begin(), asked.end(), "linearizability") != asked.end();
  if (histories && asked.size() != 1) {
    throw CLI::ValidationError("--property linearizability", "is asked alone");
  }
  if (histories ? !history_format(options.format) : !input_format(options.format)) {
    throw CLI::ValidationError("--format " + options.format,
                               histories
                                   ? "is no format of histories (std, etcd, edn, hist, log)"
                                   : "is a format of histories: add --property linearizability");
  }
  if (!histories && options.object != "auto") {
    throw CLI::ValidationError("--object", "belongs to --property linearizability");
  }
  if (!histories && !options.specification.empty()) {
    throw CLI::ValidationError("--specification", "belongs to --property linearizability");
  }
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("check", "Judge captures, perf.data and text traces");
  auto options = std::make_shared<CheckArguments>();
  command
      ->add_option("FILE", options->files,
                   "Captures, packs, perf.data or text traces; - is standard input")
      ->required()
      ->option_text("...");
  add_property_option(*command, options->properties,
                      {"serializability", "robustness", "sc-serializability", "atomic-sets",
                       "consistency", "linearizability"},
                      "What is asked of the trace");
  add_sets_option(*command, options->sets);
  add_relation_options(*command, options->relation);
  command
      ->add_option("--order", options->order,
                   "issue: stamps order the threads; thread: no order between threads is known")
      ->check(one_of({"issue", "thread"}))
      ->capture_default_str();
  command
      ->add_option("--format", options->format,
                   "Format of the inputs, auto: by content; etcd, edn, hist and log are histories")
      ->check(
          one_of({"auto", "std", "capture", "perf", "pack", "axe", "etcd", "edn", "hist", "log"}))
      ->capture_default_str();
  add_linearizability_options(*command, *options);
  add_files_options(*command, options->search);
  add_perf_options(*command, options->perf);
  command->add_option("--model", options->model, "Of consistency: the models that are asked about")
      ->check(one_of({"sc", "tso", "both"}))
      ->capture_default_str();
  command
      ->add_option("--max-decisions", options->max_decisions,
                   "Of consistency: decisions of the search, per model")
      ->capture_default_str();
  command->add_flag("--no-values", options->no_values, "Ignore recorded values");
  command
      ->add_option("--clock-margin", options->clock_margin,
                   "Of captures: the time-stamp counters of two processors may differ by CYCLES, "
                   "also where less was\nmeasured: fewer orders are certain")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 60))
      ->option_text("CYCLES");
  command
      ->add_option(
          "--without", options->without,
          "Do not use what would make verdicts sharper: intervals (time stamps, as --order "
          "thread),\nvalues, store-buffer (its size), locks (release before the next "
          "acquisition), threads (start\nand end). Separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(one_of({"intervals", "values", "store-buffer", "locks", "threads"}))
      ->option_text("LIST");
  command
      ->add_option(
          "--max-work", options->max_work,
          "Seconds for all inputs together; what was found by then is told. All bounds on work\n"
          "below move with it: they are meant for ten seconds, and hold without it, too")
      ->check(CLI::PositiveNumber)
      ->option_text("SECONDS");
  command
      ->add_option("--max-steps", options->max_steps,
                   "Decisions of the search in one part, a tenth of those in all")
      ->capture_default_str();
  command->add_option("--max-undirected", options->max_undirected, "Undirected edges of one trace")
      ->capture_default_str();
  command
      ->add_option("--history", options->history,
                   "Events of a stream that are kept, so that what is flagged can be searched")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option(
          "--jobs", options->jobs,
          "Threads that read and search; the verdict and the output do not depend on it. As "
          "many as there are processors if not given")
      ->check(CLI::Range(1U, 1024U));
  add_part_options(*command, *options);
  command->add_flag(
      "--progress", options->progress,
      "Say on standard error how far a long check is, also where that is no terminal");
  command->add_flag(
      "--all", options->all,
      "Show every violation by itself; otherwise those of one fingerprint are told of "
      "as one, with their number");
  add_verbose_option(*command, options->verbose);
  add_findings_options(*command, options->findings);
  add_output_option(*command, options->output);
  command->footer(
      "Exit status: 0 nothing found; 1 a violation was found; 2 bad usage, or an input that "
      "cannot\n"
      "be read or is malformed (the others are still judged); 3 inconclusive; 4 out of memory "
      "(likewise).\n"
      "SIGINT and SIGTERM end it with what was found until then; the second one ends it at once.");
  command->callback([options, &exit_status] {
    auto& properties = options->properties;
    properties = each_once(properties);
    const bool consistency =
        std::find(properties.begin(), properties.end(), "consistency") != properties.end();
    if (consistency && properties.size() != 1) {
      throw CLI::ValidationError("--property consistency", "is asked alone");
    }
    if (consistency && options->order != "thread") {
      throw CLI::ValidationError("--property consistency",
                                 "asks about values without an order between threads: add "
                                 "--order thread");
    }
    if (consistency && !options->without.empty()) {
      throw CLI::ValidationError("--without",
                                 "says what the other properties do without, not consistency");
    }
    if (options->format == "axe" && !consistency) {
      throw CLI::ValidationError("--format axe",
                                 "has no order between threads and no units: add --property "
                                 "consistency --order thread");
    }
    check_format(*options);
    check_parts(*options);
    exit_status = run_check(*options);
  });
}

}  // namespace tsomon
