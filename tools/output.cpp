#include "tools/output.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "monitor/findings/result_json.h"
#include "tools/command.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

bool coloured = false;

// What a line is, by how it begins.
std::string_view colour_of(std::string_view line) {
  constexpr std::string_view kRed = "\x1b[1;31m";
  constexpr std::string_view kYellow = "\x1b[1;33m";
  constexpr std::string_view kGreen = "\x1b[32m";
  constexpr std::string_view kBold = "\x1b[1m";
  constexpr std::string_view kSource = "\x1b[36m";
  const auto has = [&](std::string_view text) { return line.find(text) != std::string_view::npos; };
  if (line.starts_with("SUMMARY: ")) {
    return kBold;
  }
  if (line.starts_with("violation ")) {
    return has("(definite") ? kRed : kYellow;
  }
  if (line.starts_with("  [") && has("] ")) {
    return kBold;
  }
  if (line.starts_with("  would rule it out: ")) {
    return kGreen;
  }
  const size_t text = line.find_first_not_of(' ');
  if (text >= 8 && text < 16 && line.find(" | ") != std::string_view::npos &&
      line.find_first_not_of("0123456789", text) == line.find(" | ")) {
    return kSource;
  }
  if (text == 0 && has(": DEFINITE violation")) {
    return kRed;
  }
  if (text == 0 && (has(": POSSIBLE violation") || line.ends_with(": inconclusive"))) {
    return kYellow;
  }
  return text == 0 && (line.ends_with("serializable") || line.ends_with(": robust"))
             ? kGreen
             : std::string_view();
}

std::string with_colours(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    const std::string_view colour = colour_of(line);
    out += colour;
    out += line;
    out += colour.empty() ? "" : "\x1b[0m";
    lines.remove_prefix(line.size());
    if (!lines.empty()) {
      out += '\n';
      lines.remove_prefix(1);
    }
  }
  return out;
}

// Checked once, when tsomon ends.
void put(FILE* file, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

}  // namespace

void put_lines(FILE* file, std::string_view lines) {
  const std::string shown = printable_lines(lines);
  put(file, coloured && file == stdout ? with_colours(shown) : shown);
}

void choose_colours(const std::string& when) {
  const char* const no = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool may = ::isatty(STDOUT_FILENO) != 0 && (no == nullptr || *no == '\0') &&
                   terminal != nullptr && std::string_view(terminal) != "dumb";
  coloured = when == "always" || (when == "auto" && may);
}

TextShape text_shape(FILE* file, bool verbose) {
  TextShape shape{0, verbose};
  if (::isatty(::fileno(file)) == 0) {
    return shape;
  }
  const char* const columns = std::getenv("COLUMNS");
  winsize window = {};
  if (columns != nullptr && std::atoi(columns) > 0) {
    shape.width = static_cast<size_t>(std::atoi(columns));
  } else if (::ioctl(::fileno(file), TIOCGWINSZ, &window) == 0) {
    shape.width = window.ws_col;
  }
  return shape;
}

void put_json(FILE* file, const nlohmann::ordered_json& object, std::string_view tool) {
  put(file, json_line(object, tool) + "\n");
}

void put_listed_json(FILE* file, const ListedJson& json, std::string_view tool) {
  put_json_line(json, tool, [file](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), file);
  });
  put(file, "\n");
}

void put_message(std::string_view tool, std::string_view text) {
  put(stderr, printable(tool) + (tool.empty() ? "" : ": ") + printable(text) + "\n");
}

void put_messages(std::string_view tool, std::string_view input,
                  const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    put_message(tool, fmt::format("{}: {}", input, text));
  }
}

int put_error(std::string_view tool, const Error& error) {
  put_message(tool, error.to_string());
  return exit_status_of(error);
}

void put_error_json(const std::string& file, const std::string& property, const Error& error,
                    std::string_view tool) {
  nlohmann::ordered_json object = {{"file", file}};
  if (!property.empty()) {
    object.update({{"events", 0}, {"threads", 0}, {"units", 0}, {"property", property}});
  }
  object["verdict"] = nullptr;
  object["complete"] = false;
  object["error"] = error_json(error);
  put_json(stdout, object, tool);
}

}  // namespace tsomon
