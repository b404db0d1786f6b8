#include "offline/linearizability/check.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "offline/linearizability/decide.h"
#include "offline/linearizability/sequential.h"
#include "offline/linearizability/shrink.h"
#include "offline/linearizability/validate.h"
#include "tso/support/printable.h"

namespace tsomon::linearizability {
namespace {

std::string part_text(const History& history, const Part& part) {
  std::string text = kind_name(part.kind);
  if (const auto name = history.objects.text(part.object); !name.empty()) {
    text += fmt::format(" {}", printable(name));
  }
  return part.key ? fmt::format("{} at key {}", text, printable(history.text_of(*part.key))) : text;
}

Violation describe(const History& history, const Part& part, const Decision& decision,
                   const SearchBounds& bounds) {
  const Shrunk shrunk = shrink(history, part, decision.suspects, bounds);
  Violation violation;
  violation.object = history.objects.text(part.object);
  violation.kind = part.kind;
  violation.key = part.key;
  violation.smallest = shrunk.complete;
  // By process the last operation: the others have their returns, needed or not, as in a history.
  std::map<uint32_t, uint32_t> last;
  for (const Op& op : shrunk.ops) {
    last[history.operations[op.source].process] = op.source;
  }
  for (const Op& op : shrunk.ops) {
    const HistoryOperation& operation = history.operations[op.source];
    const bool returned = operation.outcome == OperationOutcome::kReturned;
    const bool without_return = op.pending && last[operation.process] == op.source;
    violation.operations.push_back(op.source);
    violation.without_return.push_back(returned && without_return);
    violation.perhaps_before.push_back(returned && op.pending && !without_return);
    violation.lines.push_back(operation.call_line);
    if (returned && !without_return) {
      violation.lines.push_back(operation.return_line);
    }
  }
  std::sort(violation.lines.begin(), violation.lines.end());
  violation.lines.erase(std::unique(violation.lines.begin(), violation.lines.end()),
                        violation.lines.end());
  return violation;
}

// Linearizations of the parts, put together: each operation has a moment, after its call and before
// its return, that is not before that of its part's operation before it. By these moments parts
// merge without an order in time being broken.
class Merged {
 public:
  void add(const Part& part, const std::vector<uint32_t>& order) {
    uint32_t moment = 0;
    for (const uint32_t i : order) {
      moment = std::max(moment, part.ops[i].call);
      operations_.emplace_back(moment, static_cast<uint32_t>(operations_.size()),
                               part.ops[i].source);
    }
  }
  std::vector<uint32_t> take() {
    std::sort(operations_.begin(), operations_.end());
    std::vector<uint32_t> result;
    result.reserve(operations_.size());
    for (const auto& [moment, number, source] : operations_) {
      result.push_back(source);
    }
    return result;
  }

 private:
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> operations_;
};

class Checker {
 public:
  Checker(const History& history, const Options& options) : history_(history), options_(options) {}

  Report run(const std::vector<Part>& parts) {
    report_.verdict = Verdict::kLinearizable;
    if (history_.operations.empty()) {
      report_.notes.emplace_back("no client called an operation: there is nothing to be wrong");
    }
    for (const Part& part : parts) {
      judge(part);
      if (report_.verdict == Verdict::kViolation) {
        return std::move(report_);
      }
    }
    if (report_.verdict == Verdict::kLinearizable && options_.want_linearization && ordered_) {
      report_.linearization = merged_.take();
    }
    return std::move(report_);
  }

 private:
  void judge(const Part& part) {
    Decision decision = decide(history_, part, options_.bounds, options_.want_linearization);
    switch (decision.answer) {
      case Answer::kViolation:
        report_.verdict = Verdict::kViolation;
        report_.violation = describe(history_, part, decision, options_.bounds);
        return;
      case Answer::kBound:
        report_.verdict = Verdict::kInconclusive;
        report_.notes.push_back(fmt::format(
            "the {} of {} operations: the search hit its bound on work or memory; it may be "
            "either",
            part_text(history_, part), part.ops.size()));
        return;
      case Answer::kLinearizable:
        break;
    }
    if (options_.want_linearization && ordered_) {
      add_order(part, std::move(decision.order));
    }
  }

  void add_order(const Part& part, std::vector<uint32_t> order) {
    if (order.empty()) {
      order = search(history_, part, options_.bounds).order;
    }
    const std::string wrong = refused(history_, part, order);
    if (wrong.empty()) {
      merged_.add(part, order);
      return;
    }
    ordered_ = false;
    report_.notes.push_back(fmt::format("the {}: no linearization was found within the bounds",
                                        part_text(history_, part)));
  }

  const History& history_;
  const Options& options_;
  Report report_;
  Merged merged_;
  bool ordered_ = true;
};

}  // namespace

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kLinearizable:
      return "linearizable";
    case Verdict::kViolation:
      return "violation";
    case Verdict::kInconclusive:
      break;
  }
  return "inconclusive";
}

Result<Report> check(const History& history, const Options& options) {
  if (options.specification != nullptr) {
    return check_sequentially(history, options);
  }
  auto parts = parts_of(history, options.object);
  if (!parts) {
    return tl::unexpected<Error>(std::move(parts.error()));
  }
  Report report = Checker(history, options).run(parts->parts);
  report.operations = history.operations.size();
  report.pending = parts->pending;
  report.failed = parts->failed;
  report.parts = parts->parts.size();
  report.kinds = std::move(parts->kinds);
  return report;
}

}  // namespace tsomon::linearizability
