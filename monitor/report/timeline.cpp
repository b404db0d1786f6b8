#include "monitor/report/timeline.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "monitor/report/render.h"

namespace tsomon::report {
namespace {

// The rows of an event: where it is issued, and where it commits late.
struct EventRows {
  size_t issue = Diagram::kNone;
  size_t commit = Diagram::kNone;
};

// T2 comes before T10.
bool lane_before(const std::string& a, const std::string& b) {
  return std::tuple(a.size(), std::string_view(a)) < std::tuple(b.size(), std::string_view(b));
}

std::set<uint64_t> cycle_events(const Finding& finding) {
  std::set<uint64_t> events;
  for (const Unit& unit : finding.cycle) {
    events.insert(unit.from);
    events.insert(unit.to);
  }
  return events;
}

// Orders within a thread begin and end where the events are issued, the others where stores take effect.
size_t edge_row(const std::unordered_map<uint64_t, EventRows>& rows, uint64_t event,
                bool within_thread) {
  const auto found = rows.find(event);
  if (found == rows.end()) {
    return Diagram::kNone;
  }
  return within_thread || found->second.commit == Diagram::kNone ? found->second.issue
                                                                 : found->second.commit;
}

Diagram witness_diagram(const Finding& finding) {
  const std::vector<std::string> lanes = lanes_of(finding);
  const std::set<uint64_t> on_cycle = cycle_events(finding);
  const std::vector<size_t> units = units_of(finding);
  Diagram diagram;
  diagram.lanes = lanes;
  std::unordered_map<uint64_t, EventRows> rows;
  std::vector<std::pair<size_t, size_t>> bars(finding.cycle.size(),
                                              {Diagram::kNone, Diagram::kNone});
  const std::vector<Step> steps = steps_of(finding);
  size_t late = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.commit && i > 0 && !steps[i - 1].commit && steps[i - 1].event == step.event) {
      continue;  // at once
    }
    const Access& access = *finding.access(step.event);
    const size_t at = diagram.rows.size();
    Diagram::Row row;
    row.lane = lane_of(lanes, access.thread);
    row.label = step.commit ? fmt::format("#{} commits", access.event) : step_text(access, step);
    row.below = access.place.text;
    row.marked = on_cycle.count(access.event) != 0;
    EventRows& known = rows[access.event];
    if (step.commit) {
      ++late;
      row.mark = Diagram::Mark::kCommit;
      row.issued_at = known.issue;
      known.commit = at;
      if (known.issue != Diagram::kNone) {
        diagram.rows[known.issue].commits_at = at;
      }
    } else {
      known.issue = at;
      const size_t unit = units[static_cast<size_t>(&access - finding.accesses.data())];
      if (unit != kNoUnit && finding.cycle[unit].is_unit) {
        auto& [first, last] = bars[unit];
        first = first == Diagram::kNone ? at : first;
        last = at;
      }
    }
    diagram.rows.push_back(std::move(row));
  }
  for (size_t i = 0; i < bars.size(); ++i) {
    if (bars[i].first != Diagram::kNone) {
      const Unit& unit = finding.cycle[i];
      diagram.bars.push_back(
          {lane_of(lanes, unit.thread), bars[i].first, bars[i].second,
           fmt::format("{}, #{} to #{}", unit_words(unit), unit.first, unit.last),
           unit.label.empty() ? "unit" : unit.label});
    }
  }
  for (size_t i = 0; i < finding.cycle.size(); ++i) {
    const Unit& unit = finding.cycle[i];
    const bool within_thread = unit.edge == "program-order" || unit.edge == "thread";
    const size_t from = edge_row(rows, unit.from, within_thread);
    const size_t to = edge_row(rows, unit.to, within_thread);
    if (from != Diagram::kNone && to != Diagram::kNone && from != to) {
      diagram.arrows.push_back({from, to, i + 1, edge_words(finding, unit)});
    }
  }
  diagram.title = finding.witness.empty() ? "The accesses, in the order of the recording"
                                          : "A witness: one execution that fits the recording";
  diagram.description = fmt::format(
      "{} steps of {} threads, downwards in order{}{}.", diagram.rows.size(), diagram.lanes.size(),
      late == 0 ? "" : fmt::format("; {} stores take effect late", late),
      diagram.arrows.empty() ? "" : "; arrows are the cycle");
  return diagram;
}

// What is one row of a schedule: a turn, or an access that the finding is about.
struct Entry {
  std::string thread;
  uint64_t first = 0;
  uint64_t last = 0;
  bool commit = false;
  const Access* access = nullptr;
  bool blocked = false;  // it is where the thread would wait
};

// The accesses are entries of their own, and part the turns that they are in.
std::vector<Entry> entries_of(const Finding& finding) {
  std::vector<Entry> entries;
  std::set<uint64_t> seen;
  for (const Turn& turn : finding.turns) {
    uint64_t from = turn.first;
    if (turn.commit) {
      entries.push_back({turn.thread, turn.first, turn.first, true, nullptr, false});
      continue;
    }
    bool ended = false;
    for (const Access& access : finding.accesses) {
      if (access.thread != turn.thread || access.event < turn.first || access.event > turn.last) {
        continue;
      }
      if (access.event > from) {
        entries.push_back({turn.thread, from, access.event - 1, false, nullptr, false});
      }
      entries.push_back({turn.thread, access.event, access.event, false, &access, false});
      seen.insert(access.event);
      ended = access.event == turn.last;
      from = ended ? from : access.event + 1;
    }
    if (!ended) {
      entries.push_back({turn.thread, from, turn.last, false, nullptr, false});
    }
  }
  for (const Access& access : finding.accesses) {
    if (seen.count(access.event) == 0 &&
        ((finding.turns_before == 0 && !finding.turns_in_part) || finding.rule == "deadlock")) {
      entries.push_back(
          {access.thread, access.event, access.event, false, &access, finding.rule == "deadlock"});
    }
  }
  return entries;
}

Diagram schedule_diagram(const Finding& finding, const std::vector<Entry>& entries,
                         const std::vector<std::string>& lanes, bool recorded) {
  Diagram diagram;
  diagram.lanes = lanes;
  diagram.cut_front = true;
  diagram.rows_before = finding.turns_before;
  for (const Entry& entry : entries) {
    Diagram::Row row;
    row.lane = lane_of(lanes, entry.thread);
    if (entry.access != nullptr) {
      row.label = (entry.blocked && !recorded ? "waits: " : "") +
                  step_text(*entry.access, {entry.access->event, false});
      row.below = entry.access->place.text;
      row.marked = true;
    } else if (entry.commit) {
      row.mark = Diagram::Mark::kCommit;
      row.label = fmt::format("#{} commits", entry.first);
    } else {
      row.mark = Diagram::Mark::kTurn;
      row.label = entry.first == entry.last ? fmt::format("#{}", entry.first)
                                            : fmt::format("#{} to #{}", entry.first, entry.last);
    }
    diagram.rows.push_back(std::move(row));
  }
  diagram.title = recorded ? "As it was recorded" : "The predicted order";
  diagram.description = recorded
                            ? "The same events in the order in which they happened, downwards."
                            : "An order of the recorded events in which it goes wrong, downwards.";
  return diagram;
}

std::vector<Diagram> prediction_diagrams(const Finding& finding) {
  std::vector<Entry> predicted = entries_of(finding);
  if (predicted.empty() || finding.turns.empty()) {
    return {witness_diagram(finding)};
  }
  const std::vector<std::string> lanes = lanes_of(finding);
  std::vector<Entry> recorded;
  std::copy_if(predicted.begin(), predicted.end(), std::back_inserter(recorded),
               [](const Entry& entry) { return !entry.commit; });
  std::stable_sort(recorded.begin(), recorded.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  return {schedule_diagram(finding, recorded, lanes, true),
          schedule_diagram(finding, predicted, lanes, false)};
}

// "0,1x6,1cx3": steps of threads, and commits, by number, as `explore` writes them. What is none ends it.
Diagram explored_diagram(const Finding& finding) {
  constexpr size_t kMostRuns = 4'000;
  constexpr uint64_t kMostThreads = 1'000;
  Diagram diagram;
  const char* at = finding.schedule.data();
  const char* const end = at + std::min(finding.schedule.find(';'), finding.schedule.size());
  uint64_t most = 0;
  uint64_t all = 0;
  const auto number = [&](uint64_t* value) {
    const auto result = std::from_chars(at, end, *value);
    at = result.ptr;
    return result.ec == std::errc();
  };
  const auto take = [&](char c) { return at != end && *at == c && ++at != nullptr; };
  while (at != end && diagram.rows.size() < kMostRuns) {
    uint64_t thread = 0;
    uint64_t answer = 0;
    uint64_t times = 1;
    if (!number(&thread) || thread > kMostThreads) {
      break;
    }
    Diagram::Row row;
    row.lane = thread;
    const bool commit = take('c');
    const bool answers = !commit && take('a');
    if ((answers && !number(&answer)) || (take('x') && !number(&times))) {
      break;
    }
    row.mark = commit ? Diagram::Mark::kCommit : Diagram::Mark::kTurn;
    row.label = commit ? fmt::format("{} store{} take{} effect", times, times == 1 ? "" : "s",
                                     times == 1 ? "s" : "")
                       : fmt::format("{} step{}", times, times == 1 ? "" : "s");
    if (answers) {
      row.label += fmt::format(", takes answer {}", answer);
    }
    all += times;
    most = std::max(most, thread);
    diagram.rows.push_back(std::move(row));
    if (!take(',')) {
      break;
    }
  }
  for (uint64_t thread = 0; thread <= most && !diagram.rows.empty(); ++thread) {
    diagram.lanes.push_back(fmt::format("thread {}", thread));
  }
  if (!diagram.rows.empty()) {
    diagram.rows.back().marked = true;
  }
  diagram.title = "The schedule that was explored";
  diagram.description =
      fmt::format("{} steps in {} turns, downwards in order; diamonds are stores that take effect.",
                  all, diagram.rows.size());
  return diagram;
}

}  // namespace

std::vector<std::string> lanes_of(const Finding& finding) {
  std::vector<std::string> lanes = Threads(finding).names();
  for (const Turn& turn : finding.turns) {
    lanes.push_back(turn.thread);
  }
  std::sort(lanes.begin(), lanes.end(), lane_before);
  lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
  return lanes;
}

size_t lane_of(const std::vector<std::string>& lanes, const std::string& thread) {
  return static_cast<size_t>(std::lower_bound(lanes.begin(), lanes.end(), thread, lane_before) -
                             lanes.begin());
}

std::string unit_words(const Unit& unit) {
  return fmt::format("{} of {}",
                     !unit.is_unit        ? "an access"
                     : unit.label.empty() ? "a unit"
                                          : "unit " + unit.label,
                     unit.thread);
}

std::string edge_words(const Finding& finding, const Unit& unit) {
  const Access* const from = finding.access(unit.from);
  const Access* const to = finding.access(unit.to);
  std::string_view words = "before";
  if (from != nullptr && to != nullptr && unit.edge != "program-order" && unit.edge != "thread") {
    const bool reads = to->operation == "load" || to->operation == "locked";
    const bool writes = to->operation == "store" || to->operation == "locked";
    if (reads && !from->written.empty() && from->written == to->read) {
      words = "read by";
    } else if (writes && from->operation != "acquire" && from->operation != "release") {
      words = "overwritten by";
    }
  }
  return fmt::format("#{} {} #{}{}{}", unit.from, words, unit.to, unit.reason.empty() ? "" : ", ",
                     unit.reason);
}

std::vector<Diagram> diagrams_of(const Finding& finding) {
  if (finding.verdict == "predicted") {
    return prediction_diagrams(finding);
  }
  if (!finding.schedule.empty()) {
    return {explored_diagram(finding)};
  }
  if (!finding.waits.empty() || finding.accesses.empty()) {
    return {};
  }
  return {witness_diagram(finding)};
}

}  // namespace tsomon::report
