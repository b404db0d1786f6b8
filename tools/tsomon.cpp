// The program `tsomon`: one subcommand per file tools/*_command.cpp.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/examples.h"
#include "tools/number_option.h"
#include "tools/output.h"
#include "tools/word_option.h"
#include "tso/support/printable.h"

namespace {

// The innermost subcommand on the command line: its help is the one that answers.
const CLI::App* selected(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return command;
}

// Of what was not expected, the subcommand or option that was meant; empty: none is near.
std::string meant(const CLI::App& app, const CLI::App& command) {
  for (const std::string& word : app.remaining(true)) {
    const std::string written = word.substr(0, word.find('='));
    std::vector<std::string> offered;
    if (written.rfind("--", 0) == 0) {
      for (const CLI::Option* option : command.get_options()) {
        for (const std::string& name : option->get_lnames()) {
          offered.push_back("--" + name);
        }
      }
    } else if (&command == &app) {
      for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
        offered.push_back(each->get_name());
      }
    }
    if (std::string text = tsomon::meant_text(written, offered); !text.empty()) {
      return text;
    }
  }
  return {};
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = selected(app);
  const std::string name = command == &app ? "tsomon" : "tsomon " + command->get_name();
  const std::string text = tsomon::printable_lines(
      name + ": " + error.what() + meant(app, *command) + "\nTry: " + name + " --help\n");
  std::fputs(text.c_str(), stderr);
  return tsomon::kExitBadInput;
}

// Of the commands that tell findings to people.
void add_colour_option(CLI::App& app) {
  tsomon::choose_colours("auto");
  for (const char* const name : {"attach", "check", "explain", "explore", "predict", "run"}) {
    app.get_subcommand(name)
        ->add_option_function<std::string>("--color", tsomon::choose_colours,
                                           "Colours in text on standard output; auto: on a "
                                           "terminal, unless NO_COLOR is set")
        ->check(tsomon::one_of({"auto", "always", "never"}))
        ->default_str("auto")
        ->type_name("WHEN");
  }
}

void add_examples(CLI::App& app) {
  for (CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string_view examples = tsomon::examples_of(command->get_name());
    command->footer(command->get_footer() + std::string(tsomon::kExamplesTitle) +
                    std::string(examples));
  }
}

int output_not_written() {
  std::fprintf(stderr, "tsomon: standard output could not be written completely\n");
  return tsomon::kExitEnvironment;
}

// No file that is opened later gets the number of a standard descriptor that was closed. Reading
// and writing there fails as before, and programs that are started find it closed.
void keep_standard_descriptors_apart() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) < 0) {
      // The lowest free one: this.
      (void)::open("/dev/null", (number == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    }
  }
}

// The words of the command line, the last first, as CLI11 takes them. `explain --explore` has files
// and a program: what follows -- becomes the values of an option, or it would be files, too.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  bool program = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (program) {
      words.push_back("--program=." + word);  // a value may be empty, or begin with a dash
    } else if (word == "--" && !words.empty() && words.front() == "explain" &&
               std::find(words.begin(), words.end(), "--explore") != words.end()) {
      program = true;
    } else {
      words.push_back(word);
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int run(int argc, char** argv) {
  CLI::App app("Finds atomicity violations of multithreaded programs under x86-TSO.", "tsomon");
  app.set_version_flag("--version", "tsomon " TSOMON_VERSION);
  // Not required here but below: CLI11 would answer a mistyped name with "required" only.
  app.require_subcommand(0, 1);
  app.footer(
      "Exit status: 0 nothing found; 1 a violation was found; 2 bad usage or bad input;\n"
      "3 inconclusive; 4 the environment lacks something. `record` and `run` pass their\n"
      "child's through.");

  int exit_status = tsomon::kExitClean;
  tsomon::add_attach_command(app, exit_status);
  tsomon::add_check_command(app, exit_status);
  tsomon::add_completion_command(app, exit_status);
  tsomon::add_critical_races_command(app, exit_status);
  tsomon::add_doctor_command(app, exit_status);
  tsomon::add_explain_command(app, exit_status);
  tsomon::add_explore_command(app, exit_status);
  tsomon::add_findings_command(app, exit_status);
  tsomon::add_fleet_command(app, exit_status);
  tsomon::add_generate_command(app, exit_status);
  tsomon::add_litmus_command(app, exit_status);
  tsomon::add_man_command(app, exit_status);
  tsomon::add_monitor_command(app, exit_status);
  tsomon::add_pack_command(app, exit_status);
  tsomon::add_predict_command(app, exit_status);
  tsomon::add_record_command(app, exit_status);
  tsomon::add_report_command(app, exit_status);
  tsomon::add_run_command(app, exit_status);
  tsomon::add_script_command(app, exit_status);
  tsomon::add_show_command(app, exit_status);
  tsomon::add_status_command(app, exit_status);
  tsomon::add_submit_command(app, exit_status);
  tsomon::add_top_command(app, exit_status);
  tsomon::add_worker_command(app, exit_status);
  tsomon::refuse_negative_numbers(app);
  add_colour_option(app);
  add_examples(app);

  try {
    app.parse(words_of(argc, argv));
    if (app.get_subcommands().empty()) {
      throw CLI::RequiredError("A subcommand");
    }
  } catch (const CLI::Success& success) {  // --help, --version
    exit_status = app.exit(success);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return output_not_written();
  }
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors_apart();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "tsomon: out of memory; give it more, or check a shorter recording\n");
    return tsomon::kExitEnvironment;
  } catch (const std::system_error& error) {  // no thread could be started, say
    if (std::ferror(stdout) != 0) {
      return output_not_written();  // fmt throws when the buffer of the stream is written in vain
    }
    tsomon::put_message("tsomon", error.what());
    return tsomon::kExitEnvironment;
  } catch (const std::exception& error) {
    tsomon::put_message("tsomon", std::string("internal error: ") + error.what());
    return tsomon::kExitBadInput;
  }
}
