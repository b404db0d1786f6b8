#include "monitor/judge/check.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "monitor/events/read_ahead.h"
#include "monitor/judge/check_parts.h"
#include "monitor/judge/losses.h"
#include "offline/check/crossing_units.h"
#include "offline/check/orientation_search.h"
#include "tso/model/hand_over.h"
#include "tso/model/units.h"
#include "tso/support/work.h"

namespace tsomon {
uint32_t threads_with_events(const Trace& trace) {
  std::vector<bool> seen;
  uint32_t count = 0;
  for (const Event& event : trace.events) {
    if (event.thread >= seen.size()) {
      seen.resize(event.thread + 1, false);
    }
    count += seen[event.thread] ? 0 : 1;
    seen[event.thread] = true;
  }
  return count;
}

std::optional<SetChoice> set_choice(std::string_view name) {
  return name == "auto"        ? std::optional(SetChoice::kAuto)
         : name == "annotated" ? std::optional(SetChoice::kDeclared)
         : name == "objects"   ? std::optional(SetChoice::kObjects)
                               : std::nullopt;
}

size_t FindingKinds::add(Finding&& finding, CheckReport* report) {
  std::vector<Finding>& findings = report->findings;
  if (told_ == Told::kEachKind) {
    const auto [known, is_new] =
        known_.try_emplace(kind_of(finding.violation, finding.violation.cycle, finding.events,
                                   finding.units, symbols_->names.size()),
                           findings.size());
    if (!is_new) {
      const uint64_t begin = begin_of(finding);
      Repeats& repeats = findings[known->second].violation.repeats;
      repeats.add(finding.violation.verdict, begin);
      repeats.add(finding.violation.repeats);
      return known->second;
    }
  }
  findings.push_back(std::move(finding));
  return findings.size() - 1;
}

std::vector<TakenFinding> add_analysis(Analysis&& analysis, const Trace& trace,
                                       const std::vector<uint64_t>* index, FindingKinds* kinds,
                                       FenceQuestions* fences, CheckReport* report) {
  const WorkPause outside;  // what was found is kept, whoever asks for a stop
  const UnitTable units(trace);
  report->components += analysis.components;
  report->open_edges += analysis.open_edges;
  report->more.add(analysis.more);
  report->notes.add(analysis.notes);
  add_fence_advice(analysis, trace, units, index, fences, &report->unfenced);
  std::vector<TakenFinding> taken;
  for (Violation& violation : analysis.findings) {
    TakenFinding& one = taken.emplace_back();
    one.definite = violation.verdict == Verdict::kDefinite;
    for (const CycleEdge& edge : violation.cycle) {
      one.accesses.emplace_back(trace.events[edge.from].thread,
                                index == nullptr ? edge.from : (*index)[edge.from]);
    }
    one.finding = kinds->add(make_finding(std::move(violation), trace, units, index), report);
  }
  return taken;
}

void keep_more(std::vector<Finding>&& others, const Symbols& symbols, CheckReport* report) {
  const auto by_kind = [&](const std::vector<Finding>& findings,
                           std::unordered_map<std::string, uint64_t>* counts) {
    std::vector<std::string> kinds;
    for (const Finding& finding : findings) {
      kinds.push_back(kind_of(finding.violation, finding.violation.cycle, finding.events,
                              finding.units, symbols.names.size()));
      (*counts)[kinds.back()] += violations_of(finding).all();
    }
    return kinds;
  };
  if (others.empty()) {
    return;
  }
  std::unordered_map<std::string, uint64_t> counts;
  std::unordered_map<std::string, uint64_t> other_counts;
  const std::vector<std::string> kinds = by_kind(report->findings, &counts);
  const std::vector<std::string> other_kinds = by_kind(others, &other_counts);
  std::vector<Finding> kept;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (other_counts[kinds[i]] <= counts[kinds[i]]) {
      kept.push_back(std::move(report->findings[i]));
    }
  }
  for (size_t i = 0; i < others.size(); ++i) {
    if (other_counts[other_kinds[i]] > counts[other_kinds[i]]) {
      kept.push_back(std::move(others[i]));
    }
  }
  report->findings = std::move(kept);
}

Result<Analysis> analyse_property(const Trace& trace, const CheckOptions& options, Extent extent) {
  if (options.property == Property::kAtomicSets) {
    return analyse_atomic_sets(trace, {options.sets, true, options.analysis.values,
                                       options.analysis.relation, options.analysis.max_undirected});
  }
  AnalysisOptions analysis = options.analysis;
  analysis.property = options.property;
  analysis.threads = options.jobs != 0 ? options.jobs : usable_processors();
  analysis.progress = options.progress;
  return extent == Extent::kWhole ? analyse_in_steps(trace, analysis)
                                  : analyse_exactly(trace, analysis);
}

Result<CheckReport> check_trace(const Trace& trace, const CheckOptions& options) {
  CheckReport report;
  report.property = options.property;
  report.semantics = options.analysis.relation.semantics;
  report.events = trace.events.size();
  if (options.progress != nullptr) {
    options.progress->events += report.events;
  }
  report.threads = threads_with_events(trace);
  report.lost_events = trace.lost_events;
  auto result = analyse_property(trace, options, Extent::kWhole);
  if (!result) {
    return tl::unexpected<Error>(result.error());
  }
  report.units = result->units;
  FindingKinds kinds(options.analysis.told, trace.symbols);
  FenceQuestions fences(options.analysis);
  add_analysis(std::move(*result), trace, nullptr, &kinds, &fences, &report);
  if (!trace.complete) {
    distrust_losses(&report);
  }
  const RelationOptions& relation = options.analysis.relation;
  if (options.property != Property::kAtomicSets &&
      has_open_hand_overs(trace, relation.order == TraceOrder::kIssue && relation.lock_order)) {
    report.missing(OpenHandOvers::kWhy);
  }
  report.arrange(options.most_findings());
  EventCount count;
  count.add(trace);
  report.basis = basis_of(count, trace.symbols, trace.selection, options.source);
  return report;
}

void keep_judged(const CheckOptions& options, const std::function<std::optional<Trace>()>& read,
                 CheckReport* report) {
  if (!is_about_buffers(options.property) || report->violations() == 0 || !report->complete() ||
      report->events > kMostJudgedKept) {
    return;
  }
  if (std::optional<Trace> trace = read()) {
    trace->symbols = {};
    auto judged = std::make_shared<JudgedInput>();
    judged->trace = std::move(*trace);
    judged->analysis = options.analysis;
    judged->analysis.property = options.property;
    judged->analysis.told = Told::kFirst;
    judged->analysis.progress = nullptr;
    report->judged = std::move(judged);
  }
}

std::string selection_text(const Selection& selection) {
  std::string text;
  for (const std::string_view name : selection.names()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text.empty() ? text : text + ": the verdict is about what was chosen to be recorded";
}

}  // namespace tsomon
