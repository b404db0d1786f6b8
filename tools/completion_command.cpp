// `tsomon completion`: what a shell completes.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/command.h"
#include "tools/option_table.h"
#include "tools/output.h"
#include "tools/word_option.h"

namespace tsomon {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string names_of(const std::vector<CommandEntry>& commands) {
  std::vector<std::string> names;
  for (const CommandEntry& command : commands) {
    names.push_back(command.name);
  }
  return joined(names);
}

// Behind -- stands a program with arguments of its own.
std::string bash(const std::vector<CommandEntry>& commands) {
  std::string choices;
  std::string options;
  for (const CommandEntry& command : commands) {
    std::vector<std::string> all;
    for (const OptionEntry& option : command.options) {
      all.insert(all.end(), option.names.begin(), option.names.end());
      for (const std::string& name : option.names) {
        if (!option.choices.empty()) {
          choices +=
              fmt::format("    {}:{}) words='{}' ;;\n", command.name, name, joined(option.choices));
        }
      }
    }
    options += fmt::format("    {}) words='{}' ;;\n", command.name, joined(all));
  }
  return fmt::format(
      R"(# Completion of tsomon for bash: source it, or put it into share/bash-completion/completions.
_tsomon() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} words= i
  for ((i = 2; i < COMP_CWORD; ++i)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then
      mapfile -t COMPREPLY < <(compgen -cf -- "$current")
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- "$current")
    return
  fi
  case ${{COMP_WORDS[1]}}:$before in
{}    *) ;;
  esac
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}    *) ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -o filenames -F _tsomon tsomon
)",
      names_of(commands), choices, options);
}

// Within '...' of zsh's and fish's, and without what _arguments and _describe take for theirs.
std::string quoted(const std::string& text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result +=
          special.find(c) != std::string_view::npos ? std::string("\\") + c : std::string(1, c);
    }
  }
  return result;
}

std::string zsh(const std::vector<CommandEntry>& commands) {
  std::string names;
  std::string cases;
  for (const CommandEntry& command : commands) {
    names += fmt::format("    '{}:{}'\n", command.name, quoted(command.description, ":"));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionEntry& option : command.options) {
      for (const std::string& name : option.names) {
        const std::string value = option.value.empty() ? ""
                                  : option.choices.empty()
                                      ? ":value:_files"
                                      : fmt::format(":value:({})", joined(option.choices));
        cases += fmt::format(" \\\n        '*{}[{}]{}'", name, quoted(option.description, "[]:\\"),
                             value);
      }
    }
    cases += " \\\n        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef tsomon
# Completion of tsomon for zsh: put it into a folder of $fpath, as _tsomon.
_tsomon() {{
  local -a commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local program=${{words[(i)--]}}
  if ((program < CURRENT)); then
    shift $program words
    ((CURRENT -= program))
    _normal
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT -= 1))
  case $command in
{}  esac
}}
_tsomon "$@"
)",
                     names, cases);
}

std::string fish(const std::vector<CommandEntry>& commands) {
  std::string text =
      "# Completion of tsomon for fish: put it into share/fish/vendor_completions.d, as "
      "tsomon.fish.\n";
  for (const CommandEntry& command : commands) {
    text += fmt::format("complete -c tsomon -n __fish_use_subcommand -f -a {} -d '{}'\n",
                        command.name, quoted(command.description, "\\"));
  }
  for (const CommandEntry& command : commands) {
    for (const OptionEntry& option : command.options) {
      for (const std::string& name : option.names) {
        const bool is_long = name.rfind("--", 0) == 0;
        text += fmt::format(
            "complete -c tsomon -n '__fish_seen_subcommand_from {}' -{} {}{} -d '{}'\n",
            command.name, is_long ? 'l' : 's', name.substr(is_long ? 2 : 1),
            option.value.empty()     ? ""
            : option.choices.empty() ? " -r"
                                     : fmt::format(" -x -a '{}'", joined(option.choices)),
            quoted(option.description, "\\"));
      }
    }
  }
  return text;
}

}  // namespace

void add_completion_command(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("completion", "Print what a shell completes of tsomon");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}))
      ->option_text("bash|zsh|fish");
  command->footer(
      "source <(tsomon completion bash) completes in this shell; an installation has the files "
      "where\nshells look for them.\n\nExit status: 0; 2 bad usage.");
  command->callback([&app, shell] {
    const std::vector<CommandEntry> commands = commands_of(app);
    put_lines(stdout, *shell == "bash"  ? bash(commands)
                      : *shell == "zsh" ? zsh(commands)
                                        : fish(commands));
  });
}

}  // namespace tsomon
