// `call(op,args)` and `ret(values)` events of text traces.
#include <algorithm>

#include "decoders/histories/builder.h"
#include "decoders/std/ops.h"

namespace tsomon::histories {
namespace {

// "call(...)" without the name and the outer parentheses. False when it is not closed.
bool operand_of(std::string_view field, size_t name, std::string_view* operand) {
  if (field.size() < name + 2 || field[name] != '(' || field.back() != ')') {
    return false;
  }
  *operand = field.substr(name + 1, field.size() - name - 2);
  return true;
}

}  // namespace

Result<History> read_std_calls(std::string_view text, const std::string& name) {
  HistoryBuilder builder(name, text);
  Values values;
  uint64_t number = 0;
  while (!text.empty()) {
    const std::string_view line = take_line(&text);
    ++number;
    if (line.empty() || line.front() == '#' || trimmed(line).empty()) {
      continue;
    }
    const size_t bar = line.find('|');
    if (bar == std::string_view::npos || bar == 0) {
      return builder.error(number, "THREAD|OP|LOCATION", line);
    }
    const std::string_view thread = line.substr(0, bar);
    const std::string_view rest = line.substr(bar + 1);
    const std::string_view field = rest.substr(0, rest.find('|'));
    const std::string_view op = field.substr(0, field.find('('));
    if (op != "call" && op != "ret") {
      if (thread != "-" &&
          (op.size() > 8 || std_trace::find_op(std_trace::op_word(op)) == nullptr)) {
        return builder.error(number, "an operation", field);
      }
      continue;
    }
    std::string_view operand;
    if (!operand_of(field, op.size(), &operand)) {
      return builder.error(number, op == "call" ? "call(op,args)" : "ret(values)", field);
    }
    if (op == "ret") {
      if (builder.open(thread) == nullptr) {
        return builder.error(number, "a return of an operation that the thread has called", field);
      }
      if (!builder.returned(thread, values_of(operand, &builder.history(), &values), number)) {
        return builder.error(number);
      }
      continue;
    }
    const size_t comma = std::min(operand.find(','), operand.size());
    const std::string_view called = trimmed(operand.substr(0, comma));
    const size_t dot = called.rfind('.');
    const std::string_view object =
        dot == std::string_view::npos ? std::string_view() : called.substr(0, dot);
    const std::string_view operation =
        dot == std::string_view::npos ? called : called.substr(dot + 1);
    if (operation.empty()) {
      return builder.error(number, "call(op,args)", field);
    }
    values_of(operand.substr(std::min(comma + 1, operand.size())), &builder.history(), &values);
    if (!builder.call(thread, object, operation, values, number)) {
      return builder.error(number);
    }
  }
  return builder.take();
}

}  // namespace tsomon::histories
