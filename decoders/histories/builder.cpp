#include "decoders/histories/builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "decoders/std/text.h"

namespace tsomon::histories {

HistoryBuilder::HistoryBuilder(std::string input, std::string_view text)
    : input_(std::move(input)) {
  // Two lines an operation, mostly; of empty lines there may be any number.
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  history_.operations.reserve(std::min(lines / 2, text.size() / 16) + 1);
}

bool HistoryBuilder::event() {
  if (history_.positions >= HistoryOperation::kNever - 2) {
    message_ = "expected fewer than 2^32 events, found more";
    return false;
  }
  ++history_.positions;
  return true;
}

bool HistoryBuilder::call(std::string_view process, std::string_view object,
                          std::string_view operation, const Values& arguments, uint64_t line) {
  HistoryOperation made;
  if (arguments.size() > made.arguments.size()) {
    message_ = fmt::format("expected at most {} arguments, found {}", made.arguments.size(),
                           arguments.size());
    return false;
  }
  if (!event()) {
    return false;
  }
  made.process = history_.processes.intern(process);
  made.object = history_.objects.intern(object);
  made.name = history_.names.intern(operation);
  made.call = history_.positions - 1;
  made.call_line = static_cast<uint32_t>(line);
  std::copy(arguments.begin(), arguments.end(), made.arguments.begin());
  made.argument_count = static_cast<uint8_t>(arguments.size());
  if (made.process >= open_.size()) {
    open_.resize(made.process + 1);
  }
  open_[made.process].push_back(static_cast<uint32_t>(history_.operations.size()));
  history_.operations.push_back(made);
  return true;
}

HistoryOperation* HistoryBuilder::open(std::string_view process) {
  const uint32_t id = history_.processes.find(process);
  return id == Interner::kNone || open_[id].empty() ? nullptr
                                                    : &history_.operations[open_[id].back()];
}

uint32_t HistoryBuilder::close(std::string_view process) {
  std::vector<uint32_t>& open = open_[history_.processes.find(process)];
  const uint32_t index = open.back();
  open.pop_back();
  return index;
}

bool HistoryBuilder::returned(std::string_view process, const Values& results, uint64_t line) {
  HistoryOperation& operation = history_.operations[close(process)];
  if (results.size() > operation.results.size()) {
    message_ = fmt::format("expected at most {} results, found {}", operation.results.size(),
                           results.size());
    return false;
  }
  if (!event()) {
    return false;
  }
  operation.outcome = OperationOutcome::kReturned;
  operation.ret = history_.positions - 1;
  operation.return_line = static_cast<uint32_t>(line);
  std::copy(results.begin(), results.end(), operation.results.begin());
  operation.result_count = static_cast<uint8_t>(results.size());
  return true;
}

void HistoryBuilder::failed(std::string_view process, uint64_t line) {
  HistoryOperation& operation = history_.operations[close(process)];
  operation.outcome = OperationOutcome::kFailed;
  operation.return_line = static_cast<uint32_t>(line);
}

void HistoryBuilder::crashed(std::string_view process) { close(process); }

tl::unexpected<Error> HistoryBuilder::error(uint64_t line) const {
  return tl::unexpected<Error>(
      Error{ErrorKind::kMalformed, input_, fmt::format("line {}", line), message_});
}

tl::unexpected<Error> HistoryBuilder::error(uint64_t line, const std::string& expected,
                                            std::string_view found) const {
  return tl::unexpected<Error>(
      Error{ErrorKind::kMalformed, input_, fmt::format("line {}", line),
            fmt::format("expected {}, found {}", expected, std_trace::quoted(found))});
}

Result<History> HistoryBuilder::take() {
  if (history_.operations.empty() && !any_entry_) {
    return tl::unexpected<Error>(Error{
        ErrorKind::kMalformed, input_, {}, "expected calls and returns of operations, found none"});
  }
  return std::move(history_);
}

std::string_view take_line(std::string_view* text) {
  const size_t end = text->find('\n');
  std::string_view line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  return line;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string_view take_word(std::string_view* text) {
  *text = trimmed(*text);
  const std::string_view word = text->substr(0, text->find_first_of(" \t\f\v"));
  *text = trimmed(text->substr(word.size()));
  return word;
}

const Values& values_of(std::string_view text, History* history, Values* values) {
  values->clear();
  text = trimmed(text);
  if (text.empty()) {
    return *values;
  }
  if (text.find_first_of(",\"([<") == std::string_view::npos) {
    values->push_back(history->value_of(text));
    return *values;
  }
  size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '(' || c == '[' || c == '<')) {
      ++depth;
    } else if (!quoted && (c == ')' || c == ']' || c == '>')) {
      --depth;
    }
    if (i == text.size() || (c == ',' && depth <= 0 && !quoted)) {
      values->push_back(history->value_of(trimmed(text.substr(begin, i - begin))));
      begin = i + 1;
    }
  }
  return *values;
}

}  // namespace tsomon::histories
