#include "monitor/explore/class_linearizability.h"

#include <fmt/format.h>

#include "decoders/histories/reader.h"
#include "offline/explore/real_time_orders.h"

namespace tsomon::explore {
namespace {

BadOrder describe(const History& history, const linearizability::Violation& violation) {
  BadOrder bad;
  bad.object = linearizability::kind_name(violation.kind);
  if (!violation.object.empty()) {
    bad.object += " " + violation.object;
  }
  if (violation.key) {
    bad.object += ", key " + history.text_of(*violation.key);
  }
  for (size_t i = 0; i < violation.operations.size(); ++i) {
    const HistoryOperation& operation = history.operations[violation.operations[i]];
    bad.lines.push_back(operation.call_line);
    const std::string text =
        fmt::format("{}{}", history.describe(operation),
                    violation.without_return[i] ? ", whatever it returns" : "");
    bad.history.push_back(fmt::format("{} {}", history.processes.text(operation.process), text));
    bad.text += (bad.text.empty() ? "" : "; ") + text;
  }
  return bad;
}

}  // namespace

const ClassLinearizability::Judged& ClassLinearizability::judge_history(const std::string& text) {
  if (const auto known = judged_.find(text); known != judged_.end()) {
    return known->second;
  }
  if (judged_.size() >= kMostKept) {
    judged_.clear();
  }
  Judged& judged = judged_[text];
  const auto history = read_history(text, "the calls of the program", HistoryFormat::kStd);
  if (!history) {
    open_ = history.error().to_string();
    return judged;
  }
  const auto report = linearizability::check(*history, options_);
  if (!report) {
    open_ = report.error().to_string();
  } else if (report->verdict == linearizability::Verdict::kInconclusive) {
    open_ = report->notes.empty() ? "a history was not judged" : report->notes.front();
  } else if (report->violation) {
    judged = {true, describe(*history, *report->violation)};
  }
  return judged;
}

std::optional<BadOrder> ClassLinearizability::judge(
    const Graph& graph, Model model, const std::vector<Mark>& marks,
    const std::function<std::string(uint32_t)>& label) {
  const std::vector<CallMoment> moments = call_moments(graph, marks);
  if (moments.empty()) {
    return std::nullopt;
  }
  any_ = true;
  std::vector<std::string> lines;
  lines.reserve(moments.size());
  for (const CallMoment& moment : moments) {
    lines.push_back(fmt::format("T{}|{}({})|\n", moment.thread, moment.returns ? "ret" : "call",
                                label(moment.label)));
  }
  std::optional<BadOrder> bad;
  std::string text;
  const OrdersEnd end =
      for_each_order(graph, model, moments, kMostOrders, [&](const std::vector<uint32_t>& order) {
        text.clear();
        for (const uint32_t moment : order) {
          text += lines[moment];
        }
        if (const Judged& judged = judge_history(text); judged.bad) {
          bad = judged.order;
          for (const uint32_t line : bad->lines) {
            if (const uint32_t event = moments[order[line - 1]].event;
                event != CallMoment::kAtFirst) {
              bad->places.push_back(graph.events[event].pc);
            }
          }
          bad->schedule = schedule_of_order(graph, model, moments, order);
        }
        return !bad;
      });
  if (end == OrdersEnd::kBound) {
    open_ = fmt::format("a class has more than {} orders of calls and returns", kMostOrders);
  }
  return bad;
}

}  // namespace tsomon::explore
