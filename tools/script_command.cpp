#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "decoders/std/writer.h"
#include "monitor/events/read_input.h"
#include "monitor/input/load.h"
#include "monitor/input/open_events.h"
#include "monitor/input/perf_source.h"
#include "monitor/process/location_texts.h"
#include "tools/command.h"
#include "tools/files_option.h"
#include "tools/input_memory.h"
#include "tools/output.h"
#include "tools/perf_option.h"
#include "tools/word_option.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr const char* kScriptTool = "tsomon script";
constexpr size_t kEventsAtOnce = 16384;  // formatted before they are written

struct ScriptOptions {
  std::string input;
  std::string format = "auto";
  PerfOptions perf;
  FileSearch search;
  bool records = false;
};

// Loads or stores that are atomic.
bool has_atomics(const Trace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(), [](const Event& event) {
    return event.atomic() && event.kind() != EventKind::kReadModifyWrite;
  });
}

void print(LoadedTrace& loaded, bool is_recording, bool knows_atomics) {
  Trace& trace = loaded.trace;
  StdWriter writer(trace.symbols);
  std::string text;
  writer.write_headers(text);
  if (is_recording) {
    StdWriter::write_recorded_until_whole(text);
  }
  if (knows_atomics) {
    StdWriter::write_atomics(text);
  }
  StdWriter::write_loss(trace, text);
  StdWriter::write_damage(loaded.damage, loaded.nothing_counts, text);
  if (loaded.may_cancel) {
    StdWriter::write_may_cancel(text);
  }
  EventBlock part;
  part.extras = std::move(trace.extras);  // events refer to them by position
  auto at = trace.events.begin();
  while (at != trace.events.end() || !text.empty()) {
    const auto end = at + std::min<ptrdiff_t>(trace.events.end() - at, kEventsAtOnce);
    part.events.assign(at, end);
    at = end;
    writer.write(part, text);
    if (at == trace.events.end() && is_recording) {
      StdWriter::write_whole(text);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);  // checked once, when tsomon ends
    text.clear();
  }
}

// The records of a perf.data, not what they mean.
int list_records(const std::string& input) {
  const auto problems = list_perf_records(input, [&](const std::string& lines) {
    const std::string shown = printable_lines(lines);
    std::fwrite(shown.data(), 1, shown.size(), stdout);  // checked once, when tsomon ends
  });
  if (!problems) {
    put_message(kScriptTool, problems.error().to_string());
    return kExitBadInput;
  }
  put_messages(kScriptTool, input, *problems);
  return problems->empty() ? kExitClean : kExitInconclusive;
}

int write_script(const ScriptOptions& options) {
  if (options.records) {
    return list_records(options.input);
  }
  auto loaded =
      load_trace(options.input, *input_format(options.format), options.perf, options.search);
  if (!loaded) {
    put_message(kScriptTool, loaded.error().to_string());
    return kExitBadInput;
  }
  std::vector<std::string> warnings = symbolise(loaded->trace, loaded->modules, loaded->files);
  warnings.insert(warnings.begin(), loaded->warnings.begin(), loaded->warnings.end());
  put_messages(kScriptTool, loaded->input, warnings);
  const bool complete = loaded->trace.complete;
  const bool recorded = loaded->basis != BasisSource::kWritten;
  print(*loaded, recorded, loaded->knows_atomics && (recorded || has_atomics(loaded->trace)));
  return complete ? kExitClean : kExitInconclusive;
}

int run_script(const ScriptOptions& options) {
  try {
    return within_memory_of({options.input}, [&] { return write_script(options); });
  } catch (const WorkEnded& end) {
    put_message(kScriptTool,
                fmt::format("{}: {}: not written", input_name(options.input), end.what()));
    return kExitInconclusive;
  }
}

}  // namespace

void add_script_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "script", "Write the events of a capture, perf.data or trace as a text trace");
  auto options = std::make_shared<ScriptOptions>();
  command
      ->add_option("--format", options->format,
                   "Format of the input; auto goes by its content, not by its name")
      ->check(one_of({"auto", "std", "capture", "perf", "pack"}))
      ->default_str("auto")
      ->option_text("auto|std|capture|perf|pack");
  add_files_options(*command, options->search);
  add_perf_options(*command, options->perf);
  command->add_flag("--records", options->records,
                    "Of perf.data: list the records, in the form of perf script -D");
  command->add_option("FILE", options->input, "The input; '-' is standard input")
      ->required()
      ->option_text(" ");
  command->footer(
      "Source locations are looked up in the recorded program's files. `tsomon check` on the\n"
      "output gives the verdict that it gives on FILE.\n"
      "Exit status: 0 written whole; 2 bad usage or bad input; 3 written, but events are missing;\n"
      "4 it could not be written.");
  command->callback([options, &exit_status] { exit_status = run_script(*options); });
}

}  // namespace tsomon
