#include "tools/option_table.h"

#include <algorithm>
#include <string_view>

#include "tools/examples.h"

namespace tsomon {
namespace {

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  const auto twice = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), twice), text.end());
  return text;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

// Of "sc|tso [tso]" and "TEXT:{sc,tso}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string& text = option.get_option_text();
  const std::string first = text.substr(0, text.find(' '));
  if (first.find('|') != std::string::npos && first.find_first_of("[]") == std::string::npos &&
      first.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos) {
    return split(first, '|');
  }
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}');
  if (begin != std::string::npos && end != std::string::npos && begin < end) {
    return split(std::string_view(type).substr(begin + 1, end - begin - 1), ',');
  }
  return {};
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) {
    entry.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    entry.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) {
    entry.choices = choices_of(option);
    entry.value = option.get_option_text();
    if (entry.value.empty() || entry.value == "...") {
      const std::string name = entry.names.empty() ? option.get_name() : option.get_type_name();
      entry.value = name.substr(0, name.find(':')) + entry.value;
    }
    if (option.get_option_text().empty() && !entry.choices.empty()) {
      entry.value.clear();
      for (const std::string& choice : entry.choices) {
        entry.value += (entry.value.empty() ? "" : "|") + choice;
      }
    }
    if (option.get_option_text().empty() && !option.get_default_str().empty()) {
      entry.value += " [" + option.get_default_str() + "]";
    }
  }
  entry.description = one_line(option.get_description());
  return entry;
}

}  // namespace

std::vector<CommandEntry> commands_of(const CLI::App& app) {
  std::vector<CommandEntry> commands;
  for (const CLI::App* const each : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandEntry& command = commands.emplace_back();
    command.name = each->get_name();
    command.description = one_line(each->get_description());
    const std::string footer = each->get_footer();
    command.footer = footer.substr(0, footer.find(kExamplesTitle));
    for (const CLI::Option* const option : each->get_options()) {
      if (!option->get_group().empty()) {  // else it is hidden
        command.options.push_back(entry_of(*option));
      }
    }
  }
  return commands;
}

}  // namespace tsomon
