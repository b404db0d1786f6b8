// Lines `[process] call op(args)` and `[process] return value`.
#include "decoders/histories/builder.h"

namespace tsomon::histories {
namespace {

constexpr std::string_view kHeader = "@object";

// "atomic-stack" is a stack.
std::string declared(std::string_view comment) {
  std::string_view rest = comment.substr(comment.find(kHeader) + kHeader.size());
  std::string_view word = take_word(&rest);
  constexpr std::string_view kAtomic = "atomic-";
  if (word.substr(0, kAtomic.size()) == kAtomic) {
    word.remove_prefix(kAtomic.size());
  }
  return std::string(word);
}

}  // namespace

Result<History> read_call_lines(std::string_view text, const std::string& name) {
  HistoryBuilder builder(name, text);
  Values values;
  for (uint64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = trimmed(take_line(&text));
    if (line.empty()) {
      continue;
    }
    if (line.front() == '#') {
      if (line.find(kHeader) != std::string_view::npos) {
        builder.history().declared_object = declared(line);
      }
      continue;
    }
    const size_t end = line.find(']');
    if (line.front() != '[' || end == std::string_view::npos) {
      return builder.error(number, "'[process] call op(args)' or '[process] return value'", line);
    }
    const std::string_view process = trimmed(line.substr(1, end - 1));
    std::string_view rest = line.substr(end + 1);
    const std::string_view word = take_word(&rest);
    // A comment may follow.
    rest = trimmed(rest.substr(0, rest.find('#')));
    if (word == "return") {
      if (builder.open(process) == nullptr) {
        return builder.error(number, "a return of an operation that the process has called", line);
      }
      if (!builder.returned(process, values_of(rest, &builder.history(), &values), number)) {
        return builder.error(number);
      }
      continue;
    }
    const size_t name_end = rest.find_first_of(" \t(");
    const std::string_view operation = rest.substr(0, name_end);
    if (word != "call" || operation.empty()) {
      return builder.error(number, "'call op(args)' or 'return value' after the process", line);
    }
    std::string_view arguments = trimmed(rest.substr(operation.size()));
    if (arguments.size() >= 2 && arguments.front() == '(' && arguments.back() == ')') {
      arguments = arguments.substr(1, arguments.size() - 2);
    } else if (!arguments.empty() && arguments.front() == '(') {
      return builder.error(number, "')' at the end of the arguments", line);
    }
    if (builder.open(process) != nullptr) {
      return builder.error(number, "a process without an open operation", line);
    }
    if (!builder.call(process, "", operation, values_of(arguments, &builder.history(), &values),
                      number)) {
      return builder.error(number);
    }
  }
  return builder.take();
}

}  // namespace tsomon::histories
