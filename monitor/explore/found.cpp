#include "monitor/explore/found.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "monitor/explore/idle_attempts.h"
#include "offline/explore/class_properties.h"
#include "tso/support/text_hash.h"

namespace tsomon::explore {
namespace {

std::vector<uint64_t> last_places(const Run& run) {
  for (size_t i = run.steps.size(); i-- > 0;) {
    if (run.steps[i].choice.commit == 0 && run.steps[i].pc != 0) {
      return {run.steps[i].pc};
    }
  }
  return {};
}

// The loads that read what is older than SC would have it, as far as their threads go on.
std::vector<uint64_t> writes_read_late(const Graph& graph) {
  std::vector<uint64_t> places;
  for (const GraphEvent& event : graph.events) {
    if (event.op == Op::kLoad && event.source != graph.newest(event.cell) && event.pc != 0) {
      places.push_back(event.pc);
    }
  }
  return places;
}

// The label of the outermost unit around the event; nothing if there is none.
std::optional<uint32_t> unit_label(const GraphEvent& event, const std::vector<Mark>& marks) {
  uint32_t depth = 0;
  uint32_t label = 0;
  for (const Mark& mark : marks) {
    if (mark.thread != event.thread || mark.operation > event.operation ||
        !is_unit_mark(mark.kind)) {
      continue;
    }
    if (mark.kind == MarkKind::kUnitBegin) {
      label = depth++ == 0 ? mark.value : label;
    } else if (depth > 0) {
      --depth;
    }
  }
  return depth > 0 ? std::optional(label) : std::nullopt;
}

Found found_cycle(const Graph& graph, const std::vector<Mark>& marks,
                  const std::vector<UnitEdge>& cycle) {
  Found found{"serializability", fmt::format("a cycle of {} units:", cycle.size()), {}, {}};
  for (const UnitEdge& edge : cycle) {
    found.places.push_back(graph.events[edge.from].pc);
    found.places.push_back(graph.events[edge.to].pc);
    if (const auto label = unit_label(graph.events[edge.from], marks)) {
      found.labels.push_back(*label);
    }
    found.text +=
        fmt::format(" T{} before T{} ({});", graph.events[edge.from].thread,
                    graph.events[edge.to].thread, edge.conflict ? "conflict" : "program order");
  }
  found.text.pop_back();
  return found;
}

}  // namespace

FoundKey key_of(const Found& found, const std::function<std::string(uint64_t)>& place) {
  FoundKey key;
  for (const uint64_t pc : found.places) {
    std::string text = place(pc);
    if (std::find(key.locations.begin(), key.locations.end(), text) == key.locations.end()) {
      key.locations.push_back(std::move(text));
    }
  }
  std::vector<std::string> sorted = key.locations;
  std::sort(sorted.begin(), sorted.end());
  key.text = fmt::format("{}\x1f{}\x1f{}", found.kind, found.message, fmt::join(sorted, "\x1f"));
  return key;
}

std::string fingerprint(const FoundKey& key) { return hash_name(key.text); }

FindingPlaces places_of(const Found& found, const FoundKey& key, Symboliser& symbols,
                        const std::function<std::string(uint32_t)>& label) {
  FindingPlaces places;
  places.fingerprint = fingerprint(key);
  for (const uint64_t pc : found.places) {
    if (pc != 0) {
      places.add(symbols.place(pc));
    }
  }
  for (const uint32_t number : found.labels) {
    places.units.push_back(label(number));
  }
  return places;
}

Found found_crash(const Run& run, const std::string& error_output) {
  if (run.signal == 0) {
    const bool read = run.detail.find("nothing was written") != std::string::npos;
    return {read ? "uninitialised" : "crash",
            run.detail,
            {},
            run.fault_pc == 0 ? last_places(run) : std::vector<uint64_t>{run.fault_pc}};
  }
  const bool aborted = run.signal == SIGABRT;
  std::string text = aborted ? "the program aborted"
                             : fmt::format("the program crashed with signal {} ({})", run.signal,
                                           strsignal(run.signal));
  return {aborted ? "assertion" : "crash", std::move(text),
          error_output.substr(0, error_output.find('\n')), last_places(run)};
}

std::optional<Found> found_early_free(const Graph& graph, const Run& run, Model model) {
  const auto early = early_free(graph, model, run.marks);
  if (!early) {
    return std::nullopt;
  }
  Found found{"crash", "memory is used after it was freed", {}, {graph.events[early->access].pc}};
  found.schedule = early->schedule;
  return found;
}

Found found_status(const Run& run) {
  return {"assertion",
          fmt::format("the program ended with status {}", run.status),
          {},
          last_places(run)};
}

std::string outcome_text(const Run& run) {
  std::vector<std::string> outcomes = run.outcomes;
  std::sort(outcomes.begin(), outcomes.end());
  return fmt::format("{}", fmt::join(outcomes, "; "));
}

bool waits_for_scheduler(const Run& run) {
  return std::any_of(run.waiting.begin(), run.waiting.end(),
                     [](const Waiting& waiting) { return waiting.can_go_on; });
}

Found found_stuck(const Run& run) {
  const bool loop = std::any_of(run.waiting.begin(), run.waiting.end(),
                                [](const Waiting& waiting) { return waiting.in_loop; });
  Found found{loop ? "livelock" : "deadlock",
              loop ? "threads wait in loops that nothing ends:" : "threads wait for ever:",
              {},
              {}};
  for (const Waiting& waiting : run.waiting) {
    found.text += fmt::format(" T{}{}", waiting.thread, waiting.op == Op::kJoin ? " (join)" : "");
    if (waiting.pc != 0) {
      found.places.push_back(waiting.pc);
    }
  }
  return found;
}

std::string mixed_text(const GraphBuilder::Mixed& mixed, bool refused, const std::string& variable,
                       const std::function<std::string(uint64_t)>& place) {
  return fmt::format(
      "accesses of {} and {} bytes share bytes at {}, at {} and {}: {}", mixed.size,
      mixed.other_size, variable.empty() ? fmt::format("{:#x}", mixed.address) : variable,
      place(mixed.pc), place(mixed.other_pc),
      refused ? "dpor cannot tell their orders apart; --strategy naive and random run them"
              : "classes are told apart by what was read");
}

std::string not_understood_text(const Run& run) {
  return fmt::format("executions with an asm statement that is not understood were not judged: {}",
                     run.not_understood);
}

std::string not_judged_text(const Run& run, uint32_t max_steps,
                            const std::function<std::string(uint64_t)>& place) {
  switch (run.end) {
    case End::kBound:
      return fmt::format("an execution has more than {} steps (--steps)", max_steps);
    case End::kDiverged:
      return "the program is not deterministic: a schedule could not be followed a second time";
    case End::kRefused:
      return fmt::format("the program calls {}, which cannot be controlled", run.detail);
    case End::kHung:
      return fmt::format("a thread runs on without an operation on shared memory{}",
                         run.steps.empty() || run.steps.back().pc == 0
                             ? ""
                             : ", after " + place(run.steps.back().pc));
    case End::kStopped:
      return "interrupted";
    case End::kFailed:
    case End::kFinished:
    case End::kStuck:
    case End::kCrashed:
    case End::kExited:
    case End::kInterrupted:
      break;
  }
  return run.detail;
}

std::vector<Found> violated_properties(const Graph& graph, const Run& run, Model model,
                                       const JudgedProperties& asked,
                                       const std::function<std::string(uint64_t)>& place) {
  std::vector<Found> all;
  if (asked.robustness && !is_robust(graph)) {
    all.push_back(
        {"robustness", "an execution that SC does not have", {}, writes_read_late(graph)});
  }
  if (asked.serializability) {
    const std::vector<uint32_t> units = units_of(graph, run.marks);
    auto cycle = unit_cycle(graph, model, units);
    if (cycle) {
      cycle = unit_cycle(without_idle_attempts(graph, units, place), model, units);
    }
    if (cycle) {
      all.push_back(found_cycle(graph, run.marks, *cycle));
    }
  }
  return all;
}

}  // namespace tsomon::explore
