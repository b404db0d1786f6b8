// One operation a line: `OP VALUES... BEGIN END`, `PROCESS OP VALUES... BEGIN END` or
// `PROCESS BEGIN END OP VALUES...`.
#include <algorithm>
#include <tuple>

#include "decoders/histories/builder.h"

namespace tsomon::histories {
namespace {

struct Times {
  int64_t begin = 0;
  int64_t end = 0;
};

struct Moment {
  int64_t time = 0;
  uint8_t phase = 0;  // 0: an end, 1: a beginning, 2: the end of what began at the same time
  uint32_t operation = 0;

  bool operator<(const Moment& other) const {
    return std::tie(time, phase, operation) < std::tie(other.time, other.phase, other.operation);
  }
};

bool number(std::string_view word, History* history, int64_t* value) {
  *value = history->value_of(word);
  return history_values::is_number(*value);
}

// The words of a line as operation, values and times; false when they are none of the forms.
bool take_apart(std::vector<std::string_view> words, History* history, std::string_view* process,
                std::string_view* operation, Values* values, Times* times) {
  int64_t ignored = 0;
  if (!words.empty() && number(words[0], history, &ignored)) {
    *process = words[0];
    words.erase(words.begin());
  }
  if (words.size() >= 3 && number(words[0], history, &times->begin) &&
      number(words[1], history, &times->end)) {
    std::rotate(words.begin(), words.begin() + 2, words.end());
  } else if (words.size() < 3 || !number(words[words.size() - 2], history, &times->begin) ||
             !number(words.back(), history, &times->end)) {
    return false;
  }
  *operation = words[0];
  if (number(*operation, history, &ignored) || times->end < times->begin) {
    return false;
  }
  for (size_t i = 1; i + 2 < words.size(); ++i) {
    const HistoryValue value = history->value_of(words[i]);
    values->push_back(value == -1 ? history_values::kNil : value);
  }
  return true;
}

// The positions of the events from their times.
void put_in_order(const std::vector<Times>& times, History* history) {
  std::vector<Moment> moments;
  moments.reserve(2 * times.size());
  for (uint32_t i = 0; i < times.size(); ++i) {
    const bool instant = times[i].begin == times[i].end;
    moments.push_back({times[i].begin, 1, i});
    moments.push_back({times[i].end, static_cast<uint8_t>(instant ? 2 : 0), i});
  }
  std::sort(moments.begin(), moments.end());
  std::vector<HistoryOperation>& operations = history->operations;
  for (uint32_t position = 0; position < moments.size(); ++position) {
    const Moment& moment = moments[position];
    (moment.phase == 1 ? operations[moment.operation].call : operations[moment.operation].ret) =
        position;
  }
  std::sort(operations.begin(), operations.end(),
            [](const auto& a, const auto& b) { return a.call < b.call; });
}

}  // namespace

Result<History> read_interval_log(std::string_view text, const std::string& name) {
  HistoryBuilder builder(name, text);
  History& history = builder.history();
  std::vector<Times> times;
  std::vector<std::string_view> words;
  for (uint64_t line_number = 1; !text.empty(); ++line_number) {
    const std::string_view line = trimmed(take_line(&text));
    if (line.empty() || line.front() == '#') {
      std::string_view rest = line.substr(line.empty() ? 0 : 1);
      const std::string_view word = take_word(&rest);
      if (rest.empty() && !word.empty() && history.declared_object.empty()) {
        history.declared_object =
            word == "pqueue" || word == "priorityqueue" ? "priority-queue" : std::string(word);
      }
      continue;
    }
    words.clear();
    for (std::string_view rest = line; !rest.empty();) {
      words.push_back(take_word(&rest));
    }
    std::string_view process;
    std::string_view operation;
    Values values;
    Times when;
    if (!take_apart(words, &history, &process, &operation, &values, &when)) {
      return builder.error(line_number, "'operation values... begin end'", line);
    }
    // A second value is the result.
    Values results;
    if (values.size() > 1) {
      results.push_back(values.back());
      values.pop_back();
    }
    const std::string own = process.empty() ? std::to_string(times.size()) : std::string(process);
    if (!builder.call(own, "", operation, values, line_number) ||
        !builder.returned(own, results, line_number)) {
      return builder.error(line_number);
    }
    times.push_back(when);
  }
  put_in_order(times, &history);
  return builder.take();
}

}  // namespace tsomon::histories
