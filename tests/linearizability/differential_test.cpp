// Verdicts, linearizations and smallest violations against every order, on small random histories
// of every object.
#include <algorithm>
#include <map>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "decoders/histories/reader.h"
#include "offline/linearizability/check.h"
#include "offline/linearizability/monitors.h"
#include "offline/linearizability/validate.h"
#include "tests/linearizability/naive_history.h"
#include "tests/rounds.h"

using namespace tsomon;
using namespace tsomon::linearizability;
using tsomon::testing::naively_allowed;
using tsomon::testing::naively_linearizable;
using tsomon::testing::random_history;

namespace {

const uint64_t kRounds = rounds(200, 2'000);

History read(const std::string& text) {
  auto history = read_history(text, "test");
  REQUIRE_MESSAGE(history, history.error().to_string());
  return std::move(*history);
}

HistoryValue start_of(const History& history, ObjectKind kind) {
  const Parts parts = parts_of(history, kind).value();
  return kind == ObjectKind::kRegister || kind == ObjectKind::kCasRegister
             ? (parts.parts.empty() ? 0 : parts.parts[0].initial)
             : 0;
}

// The lines of a text with these numbers, ascending, and its header.
std::string only_lines(const std::string& text, const std::vector<uint32_t>& numbers) {
  std::string result = text.substr(0, text.find('\n') + 1);
  uint32_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin) + 1;
    if (std::binary_search(numbers.begin(), numbers.end(), ++number)) {
      result += text.substr(begin, end - begin);
    }
    begin = end;
  }
  return result;
}

std::vector<uint32_t> without(std::vector<uint32_t> lines, const std::vector<uint32_t>& gone) {
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [&](uint32_t line) {
                               return std::find(gone.begin(), gone.end(), line) != gone.end();
                             }),
              lines.end());
  return lines;
}

// Nobody knows better than by trying all values to begin with.
bool linearizable_from_some_start(const std::string& text, ObjectKind kind) {
  if (text.find('\n') + 1 == text.size()) {
    return true;  // nothing is left
  }
  for (HistoryValue start : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5},
                             int64_t{6}, int64_t{7}, history_values::kNil}) {
    History history = read(text);
    if (kind == ObjectKind::kSet || kind == ObjectKind::kMap) {
      return true;  // not one value
    }
    if (naively_linearizable(&history, kind, start)) {
      return true;
    }
    if (kind == ObjectKind::kCounter || kind == ObjectKind::kKvAppend || is_container(kind)) {
      return false;
    }
  }
  return false;
}

bool only_looks(const History& history, const HistoryOperation& operation) {
  const std::string_view name = history.names.text(operation.name);
  return name == "read" || name == "get" || name == "contains" || name == "peek" || name == "top" ||
         name == "peek_front" || name == "peek_back";
}

// What may have taken effect before the rest is pending in the proof, of a process of its own.
std::string with_open_begin(const std::string& text, const Violation& violation) {
  const History history = read(text);
  std::string result;
  uint32_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin) + 1;
    std::string line = text.substr(begin, end - begin);
    ++number;
    for (size_t i = 0; i < violation.operations.size(); ++i) {
      const HistoryOperation& operation = history.operations[violation.operations[i]];
      if (violation.perhaps_before[i] && operation.call_line == number) {
        line.replace(1, line.find(']') - 1, fmt::format("own{}", i));
      } else if (violation.perhaps_before[i] && operation.return_line == number) {
        line = "# it has returned\n";
      }
    }
    result += line;
    begin = end;
  }
  return result;
}

void check_minimal(const std::string& original, ObjectKind kind, const Violation& violation) {
  History small = read(only_lines(original, violation.lines));
  CHECK_FALSE(naively_linearizable(&small, kind, start_of(read(original), kind)));
  const std::string text = with_open_begin(original, violation);
  small = read(only_lines(text, violation.lines));
  CHECK_FALSE(naively_linearizable(&small, kind, start_of(read(original), kind)));
  const History whole = read(text);
  for (size_t i = 0; i < violation.operations.size(); ++i) {
    const HistoryOperation& operation = whole.operations[violation.operations[i]];
    const bool returns =
        operation.outcome == OperationOutcome::kReturned && !violation.without_return[i];
    const std::vector<uint32_t> gone =
        only_looks(whole, operation)
            ? std::vector<uint32_t>{operation.call_line, operation.return_line}
            : std::vector<uint32_t>{operation.return_line};
    bool goes_on = false;
    for (size_t later = i + 1; later < violation.operations.size(); ++later) {
      goes_on =
          goes_on || whole.operations[violation.operations[later]].process == operation.process;
    }
    if (returns && (gone.size() > 1 || !goes_on)) {
      CHECK_MESSAGE(
          linearizable_from_some_start(only_lines(text, without(violation.lines, gone)), kind),
          text, fmt::format("line {} is not needed", gone[0]));
    }
    // All of a value.
    if (is_container(kind) && operation.argument_count == 1) {
      std::vector<uint32_t> all;
      for (size_t other = 0; other < violation.operations.size(); ++other) {
        const HistoryOperation& same = whole.operations[violation.operations[other]];
        if ((same.argument_count == 1 && same.arguments[0] == operation.arguments[0]) ||
            (same.result_count == 1 && same.results[0] == operation.arguments[0] &&
             !violation.without_return[other])) {
          all.push_back(same.call_line);
          all.push_back(same.return_line);
        }
      }
      const std::vector<uint32_t> rest = without(violation.lines, all);
      CHECK_MESSAGE(linearizable_from_some_start(only_lines(text, rest), kind), text,
                    fmt::format("value of line {} is not needed", operation.call_line));
    }
  }
}

struct Counts {
  int violations = 0;
  int linearizable = 0;
  int monitored = 0;
};

void check_one(const std::string& text, ObjectKind kind, Counts* counts) {
  History history = read(text);
  if (history.operations.empty()) {
    return;
  }
  const HistoryValue start = start_of(history, kind);
  const bool expected = naively_linearizable(&history, kind, start);
  ++(expected ? counts->linearizable : counts->violations);
  Options options;
  options.want_linearization = true;
  const Report report = check(history, options).value();
  REQUIRE_MESSAGE(report.verdict == (expected ? Verdict::kLinearizable : Verdict::kViolation),
                  text);
  if (expected) {
    CHECK_MESSAGE(naively_allowed(&history, kind, start, report.linearization), text);
  } else {
    REQUIRE(report.violation);
    CHECK(report.violation->smallest);
    check_minimal(text, kind, *report.violation);
  }
  // Search and monitors agree part by part.
  bool searched = true;
  const Parts parts = parts_of(history, kind).value();
  for (const Part& part : parts.parts) {
    const Answer answer = search(history, part, {}).answer;
    searched = searched && answer == Answer::kLinearizable;
    if (const auto seen = monitor(part)) {
      ++counts->monitored;
      CHECK_MESSAGE(seen->linearizable == (answer == Answer::kLinearizable), text);
    }
  }
  CHECK_MESSAGE(searched == expected, text);
}

}  // namespace

TEST_CASE("linearizability: every order says the same of small histories of every object") {
  for (int i = 0; i < kObjectKinds; ++i) {
    const auto kind = static_cast<ObjectKind>(i);
    CAPTURE(kind_name(kind));
    Counts counts;
    for (uint64_t seed = 1; seed <= kRounds; ++seed) {
      const bool distinct = seed % 4 >= 2;
      const int faults = seed % 3 == 0 ? 0 : static_cast<int>(seed % 3);
      check_one(random_history(seed * 11 + static_cast<uint64_t>(i), kind,
                               2 + static_cast<int>(seed % 6), distinct, faults),
                kind, &counts);
    }
    MESSAGE(kind_name(kind), ": ", counts.linearizable, " linearizable, ", counts.violations,
            " violations, ", counts.monitored, " monitored");
    CHECK(counts.violations > static_cast<int>(kRounds / 20));
    CHECK(counts.linearizable > static_cast<int>(kRounds / 5));
    if ((is_container(kind) && kind != ObjectKind::kDeque) || kind == ObjectKind::kSet) {
      CHECK(counts.monitored > static_cast<int>(kRounds / 5));
    }
  }
}

// More values of one container than every order can be tried of: monitors against the search.
TEST_CASE("linearizability: monitors and search agree on histories of forty operations") {
  for (const ObjectKind kind :
       {ObjectKind::kQueue, ObjectKind::kStack, ObjectKind::kPriorityQueue, ObjectKind::kSet}) {
    CAPTURE(kind_name(kind));
    int compared = 0;
    int violations = 0;
    for (uint64_t seed = 1; seed <= kRounds; ++seed) {
      const std::string text = random_history(2 * seed + 1, kind, 40, true, seed % 16 == 0 ? 1 : 0);
      const History history = read(text);
      const Parts parts = parts_of(history, kind).value();
      for (const Part& part : parts.parts) {
        const auto seen = monitor(part, true);
        const bool ordered = kind == ObjectKind::kQueue || kind == ObjectKind::kStack;
        if (seen && seen->linearizable && ordered) {
          REQUIRE_MESSAGE(refused(history, part, seen->order).empty(), text);
        }
        const SearchResult found = search(history, part, {100'000, size_t{1} << 26});
        if (seen && found.answer != Answer::kBound) {
          ++compared;
          violations += seen->linearizable ? 0 : 1;
          REQUIRE_MESSAGE(seen->linearizable == (found.answer == Answer::kLinearizable), text);
        }
      }
    }
    MESSAGE(kind_name(kind), ": ", compared, " compared, ", violations, " violations");
    CHECK(compared > static_cast<int>(kRounds / 40));
  }
}
