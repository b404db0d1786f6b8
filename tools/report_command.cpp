// `tsomon report`: results as text, as a page, and as what other tools read.
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "monitor/check/check_input.h"
#include "monitor/events/read_input.h"
#include "monitor/findings/happened_deadlock.h"
#include "monitor/input/load.h"
#include "monitor/input/open_events.h"
#include "monitor/report/render.h"
#include "tools/command.h"
#include "tools/files_option.h"
#include "tools/input_memory.h"
#include "tools/output.h"
#include "tools/stop_signals.h"

namespace tsomon {
namespace {

constexpr const char* kReportTool = "tsomon report";
constexpr size_t kBeginning = 64 * 1024;  // bytes that are looked at for what a file is

struct ReportArguments {
  std::vector<std::string> files;
  std::string html;
  std::vector<std::string> sources;
  std::string perfetto;
  std::string sarif;
  std::string dot;
  std::string junit;
  std::string ndjson;
  FileSearch search;  // of recordings
};

int refuse_input(const Error& error) {
  put_message(kReportTool, error.to_string());
  return kExitBadInput;
}

std::optional<std::string> whole(std::istream& input) {
  std::string text{std::istreambuf_iterator<char>(input), {}};
  return input.bad() ? std::nullopt : std::optional(std::move(text));
}

// A capture, a perf.data or a text trace: what `check` says of it.
int judge(const std::string& file, const FileSearch& search, report::Results* results) {
  const StopSignals signals;  // what was found until then is reported
  CheckOptions options;
  options.analysis.told = Told::kEachKind;
  const auto checked = check_properties(file, InputFormat::kAuto, {options}, {}, search);
  if (!checked) {
    return refuse_input(checked.error());
  }
  put_messages(kReportTool, checked->input, checked->warnings);
  nlohmann::ordered_json object =
      report_json(file, checked->symbols, checked->reports.front(), {checked->names});
  object["tool"] = "tsomon check";
  if (const auto deadlock = happened_deadlock(checked->stuck, checked->symbols, checked->names);
      deadlock.any()) {
    object["deadlock"] = deadlock.json();
  }
  results->add(object, file);
  return kExitClean;
}

int read_results(std::istream& input, const std::string& name, report::Results* results) {
  results->read(input, name);
  return input.bad() ? refuse_input({ErrorKind::kUnreadable, name, {}, "cannot be read"})
                     : kExitClean;
}

int read_file(const std::string& file, const FileSearch& search, report::Results* results) {
  if (file == "-") {
    const auto text = whole(std::cin);
    if (!text || !report::are_results(*text)) {
      return refuse_input({ErrorKind::kMalformed,
                           "<stdin>",
                           {},
                           "expected results in JSON, found none; recordings are read from files"});
    }
    std::istringstream lines(*text);
    return read_results(lines, "<stdin>", results);
  }
  std::ifstream input(file, std::ios::binary);
  std::string beginning(kBeginning, '\0');
  input.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<size_t>(std::max<std::streamsize>(input.gcount(), 0)));
  if (!report::are_results(beginning)) {
    std::error_code none;
    if (std::filesystem::is_fifo(file, none)) {
      return refuse_input({ErrorKind::kMalformed,
                           file,
                           {},
                           "expected results in JSON, found none; recordings are read from files"});
    }
    return judge(file, search, results);  // it says what cannot be read, too
  }
  input.clear();
  if (input.seekg(0)) {
    return read_results(input, file, results);
  }
  // Of a pipe, what was looked at does not come again.
  input.clear();
  const auto rest = whole(input);
  if (!rest) {
    return refuse_input({ErrorKind::kUnreadable, file, {}, "cannot be read"});
  }
  std::istringstream lines(beginning + *rest);
  return read_results(lines, file, results);
}

bool is_protobuf_name(std::string_view file) {
  return file.ends_with(".pftrace") || file.ends_with(".perfetto-trace");
}

// What an input is too much for, the next one may not be.
int read_input(const std::string& file, const FileSearch& search, report::Results* results) {
  try {
    return within_memory_of({file}, [&] { return read_file(file, search, results); });
  } catch (const WorkEnded& end) {
    return refuse_input(
        {ErrorKind::kEnvironment, input_name(file), {}, std::string(end.what()) + ": not judged"});
  } catch (const std::bad_alloc&) {
    refuse_input({ErrorKind::kEnvironment, input_name(file), {}, "out of memory"});
    return kExitEnvironment;
  }
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code none;  // what is not there is no other file
  return std::filesystem::is_regular_file(a, none) && std::filesystem::equivalent(a, b, none);
}

// "-": standard output; empty: nothing is written.
template <typename Write>
int write_report(const std::string& file, const Write& write) {
  if (file.empty()) {
    return kExitClean;
  }
  if (file == "-") {  // the program says itself whether that could be written
    write(std::cout);
    std::cout.flush();
    return kExitClean;
  }
  std::ofstream output(file, std::ios::binary | std::ios::trunc);
  write(output);
  output.close();
  if (!output) {
    put_message(kReportTool, file + ": cannot be written: " + std::strerror(errno));
    return kExitEnvironment;
  }
  return kExitClean;
}

int run_report(const ReportArguments& options) {
  const std::array<const std::string*, 6> outputs = {&options.html,  &options.perfetto,
                                                     &options.sarif, &options.dot,
                                                     &options.junit, &options.ndjson};
  bool any = false;
  for (const std::string* const output : outputs) {
    any = any || !output->empty();
    for (const std::string& file : options.files) {
      if (!output->empty() && is_same_file(*output, file)) {
        return refuse_input({ErrorKind::kUsage, *output, {}, "is an input, too: not overwritten"});
      }
    }
  }
  for (const std::string& folder : options.sources) {
    std::error_code none;
    if (options.html.empty() || !std::filesystem::is_directory(folder, none)) {
      return refuse_input({ErrorKind::kUsage,
                           folder,
                           {},
                           options.html.empty() ? "--source is for --html"
                                                : "expected a folder for --source, found none"});
    }
  }
  report::Results results;
  int status = kExitClean;
  for (const std::string& file : options.files) {
    status = worse(status, read_input(file, options.search, &results));
  }
  results.finish();
  for (const std::string& problem : results.problems()) {
    put_message(kReportTool, problem);
    status = worse(status, kExitBadInput);
  }
  const auto write = [&](const std::string& file, const auto& writer) {
    status = worse(status, write_report(file, [&](std::ostream& out) { writer(results, out); }));
  };
  write(any ? "" : "-", report::write_text);
  write(options.html, [&options](const report::Results& found, std::ostream& out) {
    report::write_html(found, options.sources, out);
  });
  write(options.perfetto,
        is_protobuf_name(options.perfetto) ? report::write_perfetto_trace : report::write_perfetto);
  write(options.sarif, [](const report::Results& found, std::ostream& out) {
    report::write_sarif(found, TSOMON_VERSION, out);
  });
  write(options.dot, report::write_dot);
  write(options.junit, report::write_junit);
  write(options.ndjson, report::write_ndjson);
  return status;
}

}  // namespace

void add_report_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("report", "Show results as a page, and write them for other tools");
  auto options = std::make_shared<ReportArguments>();
  command
      ->add_option("FILE", options->files,
                   "What check, run, attach, predict and explore wrote with --output json, or\n"
                   "captures, packs, perf.data and text traces, which are judged as `check` does;\n"
                   "- is standard input, for results")
      ->required()
      ->option_text("...");
  const auto add = [&](const char* name, std::string& file, const char* what) {
    command->add_option(name, file, what)->option_text("F");
  };
  add("--html", options->html, "A page that needs nothing else");
  command
      ->add_option("--source", options->sources,
                   "A folder of source files: the page quotes lines of those that the results\n"
                   "name. May be repeated; no source file is read from elsewhere")
      ->option_text("DIR")
      ->allow_extra_args(false);
  add("--perfetto", options->perfetto,
      "A trace for Perfetto and chrome://tracing: the witness of each finding, step by step;\n"
      "in JSON, or in Perfetto's protobuf where F ends in .pftrace or .perfetto-trace");
  add("--sarif", options->sarif, "SARIF 2.1.0, for code hosts and editors");
  add("--dot", options->dot, "The cycle of each finding, for Graphviz");
  add("--junit", options->junit,
      "JUnit's XML, for CI: a test for each input, and for each finding");
  add("--ndjson", options->ndjson, "JSON, a line for each finding");
  add_files_options(*command, options->search);
  command->footer(
      "F is a file, or - for standard output. Without any of them the findings are listed as "
      "text.\n"
      "Findings with one fingerprint are one, which says how often it is there.\n\n"
      "Exit status: 0; 2 bad usage, or an input that cannot be read or is malformed (the others\n"
      "are still there); 4 out of memory, or a file that cannot be written.");
  command->callback([options, &exit_status] { exit_status = run_report(*options); });
}

}  // namespace tsomon
