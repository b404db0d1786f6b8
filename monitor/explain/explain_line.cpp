#include "monitor/explain/explain_line.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "decoders/std/reader.h"
#include "monitor/explain/explain.h"
#include "monitor/judge/check_parts.h"
#include "offline/explain/fenced_input.h"
#include "offline/explain/repairs.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

using FencePlaces = std::set<std::string>;  // as explain::location_of() has them

std::vector<NamedFence> named_fences(const explain::Repair& repair, const Finding& finding,
                                     const Symbols& symbols, const ReportNames& names) {
  std::vector<NamedFence> named;
  for (const explain::FencePlace& fence : repair.fences) {
    const ReportedAccess access = reported_access(
        finding.index[fence.after], finding.events.events[fence.after], symbols, names);
    named.push_back(
        {fence, access.index,
         fmt::format("{}{}{}",
                     printable(access.variable.empty() ? access.operand : access.variable),
                     access.place.text.empty() ? "" : " ", printable(access.place.text))});
  }
  return named;
}

FencePlaces fence_places(const std::vector<NamedFence>& fences) {
  FencePlaces places;
  for (const NamedFence& fence : fences) {
    places.insert(fence.at.location);
  }
  return places;
}

std::string block_line(const explain::BlockPlace& block, const Finding& finding,
                       const ReportNames& names) {
  const auto place = [&](const std::string& location) {
    return printable(names.place && !location.empty() ? names.place(location).text : location);
  };
  const std::string from = place(block.first_location);
  const std::string to = place(block.last_location);
  return fmt::format("unit {} atomic from {} to {} (#{} to #{})", printable(block.method), from, to,
                     finding.index[block.found.first], finding.index[block.found.last]);
}

std::vector<RepairLine> best_repairs(const Finding& finding, const Symbols& symbols,
                                     const ReportNames& names, Property property) {
  if (finding.violation.cycle.empty() || finding.events.events.size() > kMostEventsExplained ||
      (property != Property::kSerializability && property != Property::kRobustness &&
       property != Property::kScSerializability)) {
    return {};
  }
  Trace trace = finding.events;
  trace.symbols = symbols;
  const UnitTable units(trace);
  std::vector<CycleEdge> cycle = finding.violation.cycle;
  for (CycleEdge& edge : cycle) {
    edge.unit = units.of_event(edge.from);
  }
  explain::RepairOptions how;
  how.analysis.property = searched_as(property);
  how.max_repairs = 4;
  WorkMeter meter({.max_work = kMostWorkExplained});
  const WorkScope scope(&meter);
  explain::Repairs repairs =
      explain::find_repairs({{&trace, {std::move(cycle)}, places_of(names)}}, {}, how);
  std::vector<RepairLine> lines;
  for (explain::Repair& repair : repairs.repairs) {
    if (repair.verified != std::optional(true)) {
      continue;
    }
    std::vector<std::string> blocks;
    for (const explain::BlockPlace& block : repair.blocks) {
      blocks.push_back(block_line(block, finding, names));
    }
    RepairLine& line = lines.emplace_back();
    line.fences = named_fences(repair, finding, symbols, names);
    line.text = line.fences.empty() ? fmt::format("{}", fmt::join(blocks, " and "))
                                    : fences_line(line.fences, EventNumbers::kSaid);
    line.repair = std::move(repair);
  }
  return lines;
}

// The same finding in all events of the input instead of those of its witness.
Finding finding_in(const Finding& finding, const EventBlock& input) {
  Finding whole;
  static_cast<EventBlock&>(whole.events) = input;
  whole.index.resize(input.events.size());
  std::iota(whole.index.begin(), whole.index.end(), 0);
  whole.violation.verdict = finding.violation.verdict;
  whole.violation.cycle = finding.violation.cycle;
  for (CycleEdge& edge : whole.violation.cycle) {
    edge.from = static_cast<uint32_t>(finding.index[edge.from]);
    edge.to = static_cast<uint32_t>(finding.index[edge.to]);
  }
  return whole;
}

// Fences, and what the whole input says of them.
class FencedWhole {
 public:
  FencedWhole(const JudgedInput* input, const Symbols& symbols)
      : input_(input), symbols_(symbols), meter_({.max_work = kMostWorkAsked}) {}

  // No violation of the input is left with them.
  bool is_clean_with(const FencePlaces& places) {
    if (input_ == nullptr) {
      return false;
    }
    const auto [known, is_new] = known_.try_emplace(places, false);
    if (is_new) {
      try {
        const WorkScope scope(&meter_);
        known->second = ask(places);
      } catch (const WorkEnded&) {
        input_ = nullptr;  // nothing is said any more
      }
    }
    return known->second;
  }

 private:
  bool ask(const FencePlaces& places) {
    if (!whole_) {
      trace_ = input_->trace;
      trace_.symbols = symbols_;
      whole_.emplace(trace_, input_->analysis);
    }
    const auto is_fenced = [&](const std::string& location) { return places.count(location) != 0; };
    return whole_->can_ask() && explain::removes(whole_->with_fences_at(
                                    is_fenced, explain::FenceTime::kOpen)) == Answer::kYes;
  }

  const JudgedInput* input_;
  const Symbols& symbols_;
  WorkMeter meter_;
  Trace trace_;
  std::optional<explain::FencedInput> whole_;
  std::map<FencePlaces, bool> known_;
};

// Fences of the whole input, where that is short.
std::vector<RepairLine> lines_in(const JudgedInput* input, const Finding& finding,
                                 const Symbols& symbols, const ReportNames& names,
                                 Property property) {
  std::vector<RepairLine> own = repair_lines(finding, symbols, names, property);
  const size_t events = input == nullptr ? 0 : input->trace.events.size();
  if (events == 0 || events > kMostEventsExplained ||
      std::any_of(finding.index.begin(), finding.index.end(),
                  [&](uint64_t index) { return index >= events; })) {
    return own;
  }
  std::vector<RepairLine> lines =
      repair_lines(finding_in(finding, input->trace), symbols, names, property);
  std::erase_if(lines, [](const RepairLine& line) { return line.fences.empty(); });
  lines.insert(lines.end(), std::make_move_iterator(own.begin()),
               std::make_move_iterator(own.end()));
  return lines;
}

}  // namespace

void add_fences(const std::vector<NamedFence>& fences, std::vector<NamedFence>* all) {
  const FencePlaces already = fence_places(*all);
  for (const NamedFence& fence : fences) {
    if (already.count(fence.at.location) == 0) {
      all->push_back(fence);
    }
  }
}

std::string fences_line(const std::vector<NamedFence>& fences, EventNumbers numbers) {
  std::string line;
  for (const NamedFence& fence : fences) {
    line += line.empty() ? "a fence after " : " and after ";
    line += numbers == EventNumbers::kSaid ? fmt::format("#{} ", fence.event) : std::string();
    line += "store " + fence.store;
  }
  return line;
}

std::vector<RepairLine> repair_lines(const Finding& finding, const Symbols& symbols,
                                     const ReportNames& names, Property property) {
  try {
    return best_repairs(finding, symbols, names, property);
  } catch (const WorkEnded&) {
    return {};  // the finding stands without it
  }
}

std::vector<RepairLine> repair_lines(const std::string& trace, Property property) {
  const auto read = read_std_text(trace, "execution");
  if (!read || read->events.size() > kMostEventsExplained) {
    return {};
  }
  CheckOptions how;
  how.property = property;
  how.analysis.max_findings = 1;
  try {
    const auto report = check_trace(*read, how);
    if (!report || report->findings.empty()) {
      return {};
    }
    return repair_lines(finding_in(report->findings.front(), *read), read->symbols, {}, property);
  } catch (const WorkEnded&) {
    return {};
  }
}

std::string repair_line(const Finding& finding, const Symbols& symbols, const ReportNames& names,
                        Property property) {
  for (RepairLine& line : repair_lines(finding, symbols, names, property)) {
    if (line.fences.empty()) {
      return std::move(line.text);
    }
    if (!line.repair.assumes_times) {
      return line.text + " (asked of these events alone)";
    }
  }
  return {};
}

std::vector<std::string> repair_lines(const CheckReport& report,
                                      const std::vector<const Finding*>& findings, bool others,
                                      const Symbols& symbols, const ReportNames& names) {
  std::vector<std::vector<RepairLine>> known;
  std::vector<NamedFence> together;  // the first that each finding asks for
  for (const Finding* const finding : findings) {
    known.push_back(lines_in(report.judged.get(), *finding, symbols, names, report.property));
    if (!known.back().empty()) {
      add_fences(known.back().front().fences, &together);
    }
  }
  FencedWhole whole(report.judged.get(), symbols);
  const char* const of_all =
      others || findings.size() > 1 ? " (no violation of the input is left then)" : "";
  const auto best = [&](const std::vector<RepairLine>& lines) -> std::string {
    const std::string* block = nullptr;
    for (const RepairLine& line : lines) {
      if (line.fences.empty()) {
        block = block == nullptr ? &line.text : block;
      } else if (whole.is_clean_with(fence_places(line.fences))) {
        return line.text + of_all;
      }
    }
    if (!lines.empty() && !lines.front().fences.empty() &&
        whole.is_clean_with(fence_places(together))) {
      return fences_line(together, EventNumbers::kSaid) + of_all;
    }
    return block == nullptr ? std::string() : *block;
  };
  std::vector<std::string> lines;
  for (const std::vector<RepairLine>& of_finding : known) {
    lines.push_back(best(of_finding));
  }
  return lines;
}

}  // namespace tsomon
