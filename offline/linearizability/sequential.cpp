#include "offline/linearizability/sequential.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon::linearizability {
namespace {

constexpr uint64_t kWorkOfACall = 1000;

struct SequentialOp {
  std::string call;
  uint32_t source = 0;  // index in History::operations
  uint32_t called = 0;
  uint32_t returned = HistoryOperation::kNever;
};

std::string call_text(const History& history, const HistoryOperation& operation) {
  std::string text(history.names.text(operation.name));
  text += '(';
  for (uint8_t i = 0; i < operation.argument_count; ++i) {
    text += i == 0 ? "" : ",";
    text += history.raw_text(operation.arguments[i]);
  }
  return text + ')';
}

// What an operation returned, as the specification would say it.
bool is_result(const History& history, const HistoryOperation& operation, const std::string& said) {
  if (operation.result_count == 0) {
    return said.empty();
  }
  if (operation.result_count == 1 && operation.results[0] == history_values::kOk && said.empty()) {
    return true;
  }
  std::string text;
  for (uint8_t i = 0; i < operation.result_count; ++i) {
    text += i == 0 ? "" : ",";
    text += history.raw_text(operation.results[i]);
  }
  return text == said;
}

// The operations of one object up to a moment; what returns later is pending.
class SequentialSearch {
 public:
  SequentialSearch(const History& history, const std::vector<SequentialOp>& all, uint32_t end,
                   SequentialObject* object, uint64_t* left)
      : history_(history), object_(object), left_(left) {
    for (const SequentialOp& op : all) {
      if (op.called < end) {
        ops_.push_back(op);
        ops_.back().returned = op.returned < end ? op.returned : HistoryOperation::kNever;
      }
    }
    std::stable_sort(ops_.begin(), ops_.end(), [](const SequentialOp& a, const SequentialOp& b) {
      return a.returned < b.returned;
    });
    taken_.assign(ops_.size(), false);
  }

  Result<Answer> run() {
    // By place in the order: the operation that is there, and where to go on when it is given up.
    std::vector<size_t> next = {0};
    while (!next.empty()) {
      spend(1);
      const size_t first_return = first_to_return();
      if (first_return == ops_.size() || ops_[first_return].returned == HistoryOperation::kNever) {
        return Answer::kLinearizable;
      }
      const auto candidate = next_candidate(next.back(), ops_[first_return].returned);
      if (!candidate) {
        next.pop_back();
        if (!order_.empty()) {
          taken_[order_.back()] = false;
          order_.pop_back();
          calls_.pop_back();
        }
        continue;
      }
      next.back() = *candidate + 1;
      if (*left_ == 0) {
        return Answer::kBound;
      }
      --*left_;
      calls_.push_back(ops_[*candidate].call);
      const auto said = object_->result_of(calls_);
      if (!said) {
        return tl::unexpected<Error>(said.error());
      }
      if (ops_[*candidate].returned != HistoryOperation::kNever &&
          !is_result(history_, history_.operations[ops_[*candidate].source], *said)) {
        calls_.pop_back();
        continue;
      }
      taken_[*candidate] = true;
      order_.push_back(*candidate);
      next.push_back(0);
    }
    return Answer::kViolation;
  }

  std::vector<uint32_t> order() const {
    std::vector<uint32_t> sources;
    for (const size_t op : order_) {
      sources.push_back(ops_[op].source);
    }
    return sources;
  }

 private:
  size_t first_to_return() const {
    return static_cast<size_t>(std::find(taken_.begin(), taken_.end(), false) - taken_.begin());
  }
  // Nothing that has not been taken returned before it was called.
  std::optional<size_t> next_candidate(size_t from, uint32_t first_return) const {
    for (size_t op = from; op < ops_.size(); ++op) {
      if (!taken_[op] && ops_[op].called < first_return) {
        return op;
      }
    }
    return std::nullopt;
  }

  const History& history_;
  SequentialObject* object_;
  uint64_t* left_;
  std::vector<SequentialOp> ops_;  // by return
  std::vector<bool> taken_;
  std::vector<size_t> order_;
  std::vector<std::string> calls_;
};

// The shortest beginning that is a violation: every longer one is.
Result<Violation> shortest(const History& history, const std::vector<SequentialOp>& ops,
                           SequentialObject* object, uint64_t max_calls) {
  std::vector<uint32_t> returns;
  for (const SequentialOp& op : ops) {
    if (op.returned != HistoryOperation::kNever) {
      returns.push_back(op.returned);
    }
  }
  std::sort(returns.begin(), returns.end());
  Violation violation;
  violation.kind = ObjectKind::kSequential;
  size_t good = 0;  // so many returns are none
  size_t bad = returns.size();
  while (bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    uint64_t left = max_calls;
    const auto answer =
        SequentialSearch(history, ops, returns[middle - 1] + 1, object, &left).run();
    if (!answer) {
      return tl::unexpected<Error>(answer.error());
    }
    // Past the bound it may be either.
    violation.smallest = violation.smallest && *answer != Answer::kBound;
    (*answer == Answer::kViolation ? bad : good) = middle;
  }
  const uint32_t end = returns[bad - 1] + 1;
  for (const SequentialOp& op : ops) {
    if (op.called >= end) {
      continue;
    }
    const HistoryOperation& operation = history.operations[op.source];
    const bool returned = op.returned < end;
    violation.operations.push_back(op.source);
    violation.without_return.push_back(!returned && op.returned != HistoryOperation::kNever);
    violation.perhaps_before.push_back(false);
    violation.lines.push_back(operation.call_line);
    if (returned) {
      violation.lines.push_back(operation.return_line);
    }
  }
  std::sort(violation.lines.begin(), violation.lines.end());
  violation.lines.erase(std::unique(violation.lines.begin(), violation.lines.end()),
                        violation.lines.end());
  return violation;
}

}  // namespace

Result<Report> check_sequentially(const History& history, const Options& options) {
  Report report;
  report.verdict = Verdict::kLinearizable;
  report.operations = history.operations.size();
  std::map<uint32_t, std::vector<SequentialOp>> objects;  // by call
  for (uint32_t i = 0; i < history.operations.size(); ++i) {
    const HistoryOperation& operation = history.operations[i];
    report.pending += operation.outcome == OperationOutcome::kPending ? 1 : 0;
    report.failed += operation.outcome == OperationOutcome::kFailed ? 1 : 0;
    if (operation.outcome != OperationOutcome::kFailed) {
      objects[operation.object].push_back({call_text(history, operation), i, operation.call,
                                           operation.outcome == OperationOutcome::kReturned
                                               ? operation.ret
                                               : HistoryOperation::kNever});
    }
  }
  report.parts = objects.size();
  report.kinds.assign(objects.size(), ObjectKind::kSequential);
  if (history.operations.empty()) {
    report.notes.emplace_back("no client called an operation: there is nothing to be wrong");
  }
  const uint64_t max_calls = std::max<uint64_t>(options.bounds.max_work / kWorkOfACall, 1);
  for (const auto& [number, ops] : objects) {
    uint64_t left = max_calls;
    SequentialSearch search(history, ops, HistoryOperation::kNever, options.specification, &left);
    const auto answer = search.run();
    if (!answer) {
      return tl::unexpected<Error>(answer.error());
    }
    const std::string name(history.objects.text(number));
    if (*answer == Answer::kViolation) {
      auto violation = shortest(history, ops, options.specification, max_calls);
      if (!violation) {
        return tl::unexpected<Error>(violation.error());
      }
      report.verdict = Verdict::kViolation;
      report.violation = std::move(*violation);
      report.violation->object = name;
      report.linearization.clear();
      return report;
    }
    if (*answer == Answer::kBound) {
      report.verdict = Verdict::kInconclusive;
      report.notes.push_back(
          fmt::format("the object{}{} of {} operations: the search asked for {} calls of the "
                      "specification, its bound; it may be either",
                      name.empty() ? "" : " ", printable(name), ops.size(), max_calls));
    } else if (options.want_linearization && objects.size() == 1) {
      report.linearization = search.order();
    }
  }
  return report;
}

}  // namespace tsomon::linearizability
