// `tsomon attach`: watches a process that runs already.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "monitor/attach/attach.h"
#include "monitor/process/find_process.h"
#include "monitor/slices/sampling.h"
#include "tools/command.h"
#include "tools/discover_report.h"
#include "tools/findings_option.h"
#include "tools/flight_option.h"
#include "tools/number_option.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/predict_option.h"
#include "tools/property_option.h"
#include "tools/relation_option.h"
#include "tools/slice_report.h"
#include "tools/stop_signals.h"
#include "tools/watch_report.h"
#include "tools/word_option.h"

namespace tsomon {
namespace {

constexpr const char* kAttachTool = "tsomon attach";

// As for `tsomon run`: more than any processor has.
constexpr uint32_t kStoreBuffer = 256;

struct AttachArguments {
  AttachArguments() { relation.store_buffer = kStoreBuffer; }
  std::string process;
  attach::AttachOptions attach;
  std::vector<std::string> properties = {"serializability"};
  bool discover = false;
  bool until_violation = false;
  bool verbose = false;
  FindingsChoice findings;
  bool no_unit_accesses = false;
  bool no_locks = false;
  std::string values;
  RelationChoice relation;
  FlightChoice flight;
  PredictChoice predict;
  OutputFormat output = OutputFormat::kText;

  // What only probes can do is not asked for.
  bool names_nothing() const {
    return attach.plan.units.empty() && attach.plan.accesses.empty() && attach.plan.watch.empty() &&
           attach.plan.named_locks.empty() && attach.save.empty() && values.empty() &&
           !until_violation && !predict.predict && flight.output.empty();
  }
};

// One slice behind the other, and how long is no matter.
SamplingOptions sampling_options(const AttachArguments& options, pid_t pid) {
  SamplingOptions asked;
  asked.pid = pid;
  asked.plan.slice = std::chrono::milliseconds(100);
  asked.plan.max_overhead = options.attach.max_overhead / 100;
  asked.time = std::chrono::microseconds(static_cast<int64_t>(options.attach.duration * 1e6));
  asked.questions = questions_of(options.properties, options.relation.relation(), SetChoice::kAuto);
  return asked;
}

attach::AttachOptions attach_options(const AttachArguments& options) {
  attach::AttachOptions result = options.attach;
  result.plan.unit_accesses = !options.no_unit_accesses;
  result.plan.locks = !options.no_locks;
  result.values = options.values.empty()       ? attach::Values::kNone
                  : options.values == "memory" ? attach::Values::kMemory
                                               : attach::Values::kExact;
  result.watches = watches_of(options.properties, options.relation.relation());
  result.note = [](const std::string& text) { put_message(kAttachTool, text); };
  return result;
}

// What the verdict rests on.
nlohmann::ordered_json values_json(const std::string& source, const attach::ValueCounts& counts) {
  return {{"source", source.empty() ? "none" : source},
          {"registers", counts.registers},
          {"memory", counts.memory},
          {"assumed", counts.assumed},
          {"compared", counts.compared},
          {"differed", counts.differed}};
}

void print_values(const std::string& source, const attach::ValueCounts& counts) {
  if (source.empty()) {
    return;
  }
  fmt::print("  values: {} from registers, {} from memory of one thread\n", counts.registers,
             counts.memory);
  if (counts.assumed != 0) {
    fmt::print(
        "  the verdict rests on {} more values that memory held at the hit, and that are assumed "
        "to be\n  those that were read; {} of {} that could be compared were not\n",
        counts.assumed, counts.differed, counts.compared);
  }
}

// Long enough for thousands of samples of a busy process.
constexpr double kDiscoverSeconds = 2;

int run_attach(const AttachArguments& options) {
  const auto refuse = [](const Error& error) {
    put_message(kAttachTool, error.to_string());
    return exit_status_of(error);
  };
  auto filter = options.findings.filter();
  if (!filter) {
    return refuse(filter.error());
  }
  const auto found = attach::find_process(options.process);
  if (!found) {
    return refuse(found.error());
  }
  const pid_t pid = *found;
  if (options.discover) {
    const double seconds = options.attach.duration;
    return run_discover(pid, seconds > 0 ? seconds : kDiscoverSeconds, options.output);
  }
  const ReportOutput output{options.output, stdout, kAttachTool,
                            text_shape(stdout, options.verbose)};
  if (can_be_asked(pid, {})) {
    if (options.names_nothing()) {
      put_message(kAttachTool,
                  fmt::format("process {} has instrumented versions of its functions: they are "
                              "watched, in slices, as by `tsomon run --pid`",
                              pid));
      const StopSignals stop;
      return watch_and_report(sampling_options(options, pid), *filter, options.findings, output);
    }
    put_message(kAttachTool,
                fmt::format("process {} has instrumented versions of its functions, which cost "
                            "less than probes: `tsomon run --pid {}`",
                            pid, pid));
  }
  auto flight = Flight::prepare(options.flight, pid);
  if (!flight) {
    return refuse(flight.error());
  }
  if (auto started = flight->start(pid, true); !started) {
    return refuse(started.error());
  }
  OnlinePredictions predictions(options.predict, output, &*filter);
  WatchReport report(output, &*filter);
  attach::AttachOptions asked = attach_options(options);
  asked.follower = predictions.follower();
  bool counts = false;  // the last finding does
  if (options.until_violation) {
    asked.until = [&] { return counts; };
  }
  const auto summary = attach::attach_to(pid, asked, [&](const ReportedFinding& violation) {
    counts = report.found(violation, [&] { flight->dump(); });
  });
  if (!summary) {
    return refuse(summary.error());
  }
  flight->stop("tsomon attach");
  put_message(kAttachTool, "detached: " + summary->ended);
  const nlohmann::ordered_json more = {{"pid", pid},
                                       {"ended", summary->ended},
                                       {"hits", summary->hits},
                                       {"lost_hits", summary->lost_hits},
                                       {"lost_watch_hits", summary->lost_watch_hits},
                                       {"values", values_json(options.values, summary->values)}};
  predictions.print_summary(summary->program);
  for (const WatchSummary& watch : summary->watches) {
    report.summary(summary->program, watch, more);
  }
  if (options.output == OutputFormat::kText) {
    fmt::print("  hits: {}\n", summary->hits);
    print_values(options.values, summary->values);
  }
  const int status = predictions.worse(report.exit_status());
  put_unused(kAttachTool, *filter);
  return summary->not_saved ? kExitEnvironment : options.findings.status(status);
}

}  // namespace

void add_attach_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "attach", "Watch a running process that was not built with tsomon-c++, and leave it again");
  auto options = std::make_shared<AttachArguments>();
  attach::AttachOptions& attach = options->attach;
  command
      ->add_option("-p,--pid", options->process,
                   "The process: its number, or the name of its program if no other has that")
      ->required()
      ->option_text("PID|NAME");
  command
      ->add_option("--unit", attach.plan.units,
                   "Units of work: [MODULE:]PATTERN for functions, MODULE+0xADDRESS[..0xEND], "
                   "0xADDRESS[..0xEND]\nin memory, or usdt:PROVIDER:BEGIN..END. May be repeated")
      ->option_text("NAME...");
  command
      ->add_option("--accesses", attach.plan.accesses,
                   "Functions whose accesses are watched, too; named like units")
      ->option_text("NAME...");
  command->add_flag("--discover", options->discover,
                    "Watch nothing; propose what to watch, from the processor's samples of memory "
                    "accesses\n(2 s, or --duration). Exit status 4 where it takes none");
  command
      ->add_option("--watch", attach.plan.watch,
                   "Locations: a variable's name or 0xADDRESS, and :LENGTH. The processor has room "
                   "for four of\n8 bytes")
      ->option_text("NAME...");
  command->add_flag("--no-unit-accesses", options->no_unit_accesses,
                    "Watch where units begin and end, not what their instructions access");
  command
      ->add_option("--lock", attach.plan.named_locks,
                   "Functions that acquire or release the lock whose address is their first "
                   "argument (unlock or release in the name: release; try: where they return "
                   "non-zero), or ACQUIRE/RELEASE")
      ->option_text("NAME...");
  command->add_flag("--no-locks", options->no_locks,
                    "Do not watch the locks of the C library: fewer hits, and more orders that "
                    "are not known");
  add_property_option(*command, options->properties,
                      {"serializability", "robustness", "sc-serializability"},
                      "What is asked of the process");
  command
      ->add_option(
          "--values", options->values,
          "Conclude orders from the values stored: sound only when every function that "
          "stores to the\nlocations is watched. exact (the default): what registers show, and "
          "memory while the process\nhas one thread; memory: elsewhere, too, what a location "
          "held at the hit, assuming that\nnobody stored before the instruction ran")
      ->expected(0, 1)
      ->default_str("exact")
      ->check(one_of({"exact", "memory"}))
      ->option_text("[exact|memory]");
  command
      ->add_option("--module", attach.modules,
                   "Files that the process may load later: probed from the start, so that nothing "
                   "of them is missed")
      ->option_text("FILE...");
  command->add_flag("--later", attach.plan.later,
                    "Names that no module has yet may be of one that is loaded later");
  add_relation_options(*command, options->relation);
  command
      ->add_option("--max-overhead", attach.max_overhead,
                   "Of the processor time of the process; beyond it the busiest function is no "
                   "longer watched")
      ->check(positive_number())
      ->option_text("PERCENT");
  command->add_option("--duration", attach.duration, "Detach after so many seconds")
      ->check(positive_number())
      ->option_text("SECONDS");
  command->add_flag("--until-violation", options->until_violation,
                    "Detach when a violation was found");
  command
      ->add_option("-o,--save", attach.save,
                   "Also write the events to this file, as a text trace for tsomon check")
      ->option_text("FILE");
  add_flight_options(*command, options->flight);
  add_predict_options(*command, options->predict);
  add_verbose_option(*command, options->verbose);
  add_findings_options(*command, options->findings);
  add_output_option(*command, options->output);
  command->footer(
      "Exit status: 0 nothing found, 1 a violation was found or predicted, 2 bad usage or a "
      "process that cannot "
      "be\nwatched, 3 inconclusive, 4 a permission or a feature of the kernel is missing.\n"
      "SIGINT and SIGTERM detach and judge what was seen.");
  command->callback([options, &exit_status] { exit_status = run_attach(*options); });
}

}  // namespace tsomon
