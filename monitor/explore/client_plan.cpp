// The bounds file of `tsomon explore --clients`.
#include <charconv>

#include <fmt/format.h>

#include "monitor/explore/explore_clients.h"

namespace tsomon::explore {
namespace {

constexpr uint32_t kMostCalls = 16;

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// ["push", "pop"]
bool parse_names(std::string_view text, std::vector<std::string>* names) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return false;
  }
  text = text.substr(1, text.size() - 2);
  while (!trim(text).empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = trim(text.substr(0, comma));
    if (name.size() < 3 || name.front() != '"' || name.back() != '"') {
      return false;
    }
    names->emplace_back(name.substr(1, name.size() - 2));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

bool parse_number(std::string_view text, uint32_t least, uint32_t* number) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && *number >= least &&
         *number <= kMostCalls;
}

}  // namespace

Result<ClientPlan> parse_client_plan(std::string_view text, const std::string& name) {
  ClientPlan plan;
  uint32_t line = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view said = trim(whole.substr(0, whole.find('#')));
    if (said.empty()) {
      continue;
    }
    const size_t equals = std::min(said.find('='), said.size());
    const std::string_view key = trim(said.substr(0, equals));
    const std::string_view value = trim(said.substr(std::min(equals + 1, said.size())));
    const bool good = key == "calls"        ? parse_number(value, 1, &plan.bounds.calls)
                      : key == "threads"    ? parse_number(value, 1, &plan.bounds.threads)
                      : key == "before"     ? parse_number(value, 0, &plan.bounds.before)
                      : key == "after"      ? parse_number(value, 0, &plan.bounds.after)
                      : key == "operations" ? parse_names(value, &plan.operations)
                                            : false;
    if (!good) {
      return tl::unexpected(Error{
          ErrorKind::kMalformed, name, fmt::format("line {}", line),
          fmt::format("expected calls, threads (1 to {0}), before, after (0 to {0}) = NUMBER, or "
                      "operations = [\"NAME\", ...], found '{1}'",
                      kMostCalls, said)});
    }
  }
  return plan;
}

}  // namespace tsomon::explore
