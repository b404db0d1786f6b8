#include "tso/model/history.h"

#include <charconv>

namespace tsomon {
namespace {

using namespace history_values;

// Only as it would be printed: "07" and "-0" are texts, so that equal bits mean equal spellings.
bool canonical_number(std::string_view text, HistoryValue* value) {
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > 19 || digits.front() < '0' || digits.front() > '9' ||
      (digits.front() == '0' && text.size() > 1)) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && is_number(*value);
}

bool spells_nil(std::string_view text) {
  for (const std::string_view nil : {"nil", "null", "none", "None", "empty", "EMPTY", "NULL"}) {
    if (text == nil) {
      return true;
    }
  }
  return false;
}

}  // namespace

History::History() {
  for (const std::string_view text : {"true", "false", "ok", ""}) {
    texts.intern(text);
  }
}

HistoryValue History::text_value(std::string_view text) {
  return kFirstText + static_cast<int64_t>(texts.intern(text));
}

HistoryValue History::value_of(std::string_view text) {
  HistoryValue value = 0;
  if (canonical_number(text, &value)) {
    return value;
  }
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return text_value(text.substr(1, text.size() - 2));
  }
  return spells_nil(text) ? kNil : text_value(text);
}

std::string History::text_of(HistoryValue value) const {
  return value == kEmptyText ? "\"\"" : raw_text(value);
}

std::string History::raw_text(HistoryValue value) const {
  if (value == kNil) {
    return "nil";
  }
  return is_text(value) ? std::string(texts.text(static_cast<uint32_t>(value - kFirstText)))
                        : std::to_string(value);
}

std::string History::describe(const HistoryOperation& operation) const {
  std::string text(names.text(operation.name));
  text += '(';
  for (uint8_t i = 0; i < operation.argument_count; ++i) {
    text += (i == 0 ? "" : ", ") + text_of(operation.arguments[i]);
  }
  text += ')';
  switch (operation.outcome) {
    case OperationOutcome::kPending:
      return text + " pending";
    case OperationOutcome::kFailed:
      return text + " failed";
    case OperationOutcome::kReturned:
      break;
  }
  for (uint8_t i = 0; i < operation.result_count; ++i) {
    text += (i == 0 ? " = " : ", ") + text_of(operation.results[i]);
  }
  return text;
}

}  // namespace tsomon
