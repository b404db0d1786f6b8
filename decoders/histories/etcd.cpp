// Lines `INFO  jepsen.util - PROCESS :type :operation value` of the logs of etcd tests.
#include "decoders/histories/builder.h"

namespace tsomon::histories {
namespace {

// "3", "[3 4]" or "nil"; an invocation's nil stands for no argument.
Values arguments_of(std::string_view text, History* history) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  Values values;
  while (!trimmed(text).empty()) {
    values.push_back(history->value_of(take_word(&text)));
  }
  return values;
}

}  // namespace

Result<History> read_etcd_log(std::string_view text, const std::string& name) {
  HistoryBuilder builder(name, text);
  builder.history().starts_nil = true;
  builder.history().echoes_arguments = true;
  builder.history().declared_object = "cas-register";
  for (uint64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(&text);
    if (trimmed(line).empty() || trimmed(line).front() == '#') {
      continue;
    }
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) {
      return builder.error(number, "'INFO  jepsen.util - PROCESS :type :operation value'", line);
    }
    std::string_view rest = line.substr(dash + 3);
    const std::string_view process = take_word(&rest);
    const std::string_view type = take_word(&rest);
    const std::string_view operation = take_word(&rest);
    if (!process.empty() && process.front() == ':') {
      builder.skip();  // the nemesis
      continue;
    }
    if (process.empty() || operation.size() < 2 || operation.front() != ':') {
      return builder.error(number, "a process, a type and an operation", line);
    }
    if (type == ":invoke") {
      Values arguments = arguments_of(rest, &builder.history());
      if (arguments.size() == 1 && arguments[0] == history_values::kNil) {
        arguments.clear();
      }
      if (builder.open(process) != nullptr) {
        return builder.error(number, "a process without an open operation", line);
      }
      if (!builder.call(process, "", operation.substr(1), arguments, number)) {
        return builder.error(number);
      }
      continue;
    }
    const HistoryOperation* const open = builder.open(process);
    if (type != ":ok" && type != ":fail" && type != ":info") {
      return builder.error(number, ":invoke, :ok, :fail or :info", type);
    }
    if (open == nullptr || builder.history().names.text(open->name) != operation.substr(1)) {
      return builder.error(number, "the end of the process's open operation", line);
    }
    if (type == ":info") {
      builder.crashed(process);
    } else if (type == ":fail" && (operation != ":cas" || rest == ":timed-out")) {
      builder.failed(process, number);
    } else if (!builder.returned(process,
                                 type == ":fail" ? Values{history_values::kFalse}
                                                 : arguments_of(rest, &builder.history()),
                                 number)) {
      return builder.error(number);
    }
  }
  return builder.take();
}

}  // namespace tsomon::histories
