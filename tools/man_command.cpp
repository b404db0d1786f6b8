// `tsomon man`: man pages.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/command.h"
#include "tools/examples.h"
#include "tools/option_table.h"
#include "tools/output.h"
#include "tools/word_option.h"

namespace tsomon {
namespace {

// As roff takes it for text.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += "\\&";
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c); });
  return text;
}

std::string header(const std::string& name, const std::string& description) {
  return fmt::format(".TH {} 1 \"\" \"tsomon {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     upper(name), TSOMON_VERSION, roff(name), roff(description));
}

std::string page_of(const CommandEntry& command) {
  std::string page = header("tsomon-" + command.name, command.description);
  page += fmt::format(".SH SYNOPSIS\n.B tsomon {}\n[options]", roff(command.name));
  for (const OptionEntry& option : command.options) {
    if (option.names.empty()) {
      page += fmt::format("\n.I {}", roff(option.value));
    }
  }
  page += "\n.SH OPTIONS\n";
  for (const OptionEntry& option : command.options) {
    std::vector<std::string> names;
    for (const std::string& name : option.names) {
      names.push_back("\\fB" + roff(name) + "\\fR");
    }
    page += fmt::format(".TP\n{}{}{}\n{}\n", fmt::join(names, ", "),
                        names.empty() || option.value.empty() ? "" : " ",
                        option.value.empty() ? "" : "\\fI" + roff(option.value) + "\\fR",
                        roff(option.description));
  }
  if (!command.footer.empty()) {
    page += ".SH NOTES\n.nf\n" + roff(command.footer) + "\n.fi\n";
  }
  if (const std::string_view examples = examples_of(command.name); !examples.empty()) {
    page += ".SH EXAMPLES\n.nf\n" + roff(std::string(examples)) + "\n.fi\n";
  }
  return page + ".SH SEE ALSO\n.BR tsomon (1)\n";
}

std::string overview(const CLI::App& app, const std::vector<CommandEntry>& commands) {
  std::string page = header("tsomon", app.get_description());
  page += ".SH SYNOPSIS\n.B tsomon\n.I command\n[options]\n.SH COMMANDS\n";
  for (const CommandEntry& command : commands) {
    page += fmt::format(".TP\n.BR tsomon\\-{} (1)\n{}\n", roff(command.name),
                        roff(command.description));
  }
  return page + ".SH NOTES\n.nf\n" + roff(app.get_footer()) + "\n.fi\n";
}

}  // namespace

void add_man_command(CLI::App& app, int& /*exit_status*/) {
  CLI::App* command = app.add_subcommand("man", "Print a man page, of tsomon or of a command");
  auto name = std::make_shared<std::string>();
  command->add_option("COMMAND", *name, "Of this command")->option_text("COMMAND");
  command->footer(
      "tsomon man check | man -l - shows one; an installation has them all.\n\nExit status: 0; 2 "
      "bad usage.");
  command->callback([&app, name] {
    const std::vector<CommandEntry> commands = commands_of(app);
    if (name->empty()) {
      return put_lines(stdout, overview(app, commands));
    }
    for (const CommandEntry& each : commands) {
      if (each.name == *name) {
        return put_lines(stdout, page_of(each));
      }
    }
    std::vector<std::string> names;
    for (const CommandEntry& each : commands) {
      names.push_back(each.name);
    }
    throw CLI::ValidationError("COMMAND",
                               "there is no command " + *name + meant_text(*name, names));
  });
}

}  // namespace tsomon
