// `tsomon generate`: text traces with chosen properties.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "decoders/std/generator.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/word_option.h"

namespace tsomon {
namespace {

struct GenerateOptions {
  StdGeneratorOptions trace;
  std::string output;
};

int write_all(StdGenerator& generator, std::FILE* file) {
  std::string text;
  while (generator.next(text)) {
    if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) {
      return errno;
    }
  }
  return std::fflush(file) != 0 ? errno : 0;
}

int run_generate(const GenerateOptions& options) {
  auto generator = StdGenerator::create(options.trace);
  if (!generator) {
    put_message("tsomon generate", generator.error().to_string());
    return kExitBadInput;
  }
  const bool to_file = !options.output.empty();
  std::FILE* const file = to_file ? std::fopen(options.output.c_str(), "wb") : stdout;
  int error = file == nullptr ? errno : write_all(*generator, file);
  if (to_file && file != nullptr && std::fclose(file) != 0 && error == 0) {
    error = errno;
  }
  if (error != 0) {
    put_message("tsomon generate",
                fmt::format("{} could not be written: {}",
                            to_file ? options.output : "standard output", std::strerror(error)));
    return kExitEnvironment;
  }
  put_message("tsomon generate", fmt::format("{} units, {} of them violating", generator->units(),
                                             generator->violating()));
  return kExitClean;
}

}  // namespace

void add_generate_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("generate", "Write a text trace with chosen properties, for measurements");
  auto options = std::make_shared<GenerateOptions>();
  StdGeneratorOptions& trace = options->trace;
  const auto add = [command](const char* name, auto& value, const char* help) {
    command->add_option(name, value, help)->capture_default_str();
  };
  add("--events", trace.events, "Events, one a line");
  add("--threads", trace.threads, "Threads");
  add("--locations", trace.locations, "Shared locations; each belongs to one lock");
  add("--locks", trace.locks, "Locks");
  add("--unit-length", trace.unit_length, "Accesses of a unit, on average");
  add("--locked", trace.locked,
      "Share of the accesses that are to shared locations, under their lock");
  add("--violations", trace.violations,
      "Share of the units that give the lock back between a look and the act");
  add("--cancelled", trace.cancelled,
      "Share of these units that are cancelled, and so violate nothing");
  add("--rmw", trace.rmw, "Share of the accesses that are locked read-modify-writes");
  add("--fences", trace.fences, "Share of fences");
  add("--buffered", trace.buffered,
      "Share of racing stores and loads among the accesses that are not under a lock");
  add("--waits", trace.waits,
      "Share of the units that wait for a condition before their first critical section");
  static const std::map<std::string, LongUnit> kLongUnits = {
      {"none", LongUnit::kNone}, {"private", LongUnit::kPrivate}, {"shared", LongUnit::kShared}};
  command
      ->add_option_function<std::string>(
          "--long-unit",
          [&trace](const std::string& name) { trace.long_unit = kLongUnits.at(name); },
          "One unit of the first thread stays open for the whole run. private: it uses locations "
          "of its own; shared: it wrote under every lock before all others began")
      ->check(one_of({"none", "private", "shared"}))
      ->default_str("none")
      ->option_text("none|private|shared");
  add("--seed", trace.seed, "The same options and seed give the same trace");
  command->add_option("-o", options->output, "The file to write; standard output if not given")
      ->option_text("FILE");
  command->footer(
      "Shares are from 0 to 1. Without --violations and --buffered every verdict is clean.\n"
      "Exit status: 0 written; 2 bad usage; 4 it could not be written.");
  command->callback([options, &exit_status] { exit_status = run_generate(*options); });
}

}  // namespace tsomon
