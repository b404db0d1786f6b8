// What one execution shows: how it ended, and what properties it violates.
//
// Purpose     The strategies that run executions judge them alike, and report them in one way.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "monitor/findings/finding_places.h"
#include "monitor/process/symbols.h"
#include "offline/explore/execution_graph.h"

namespace tsomon::explore {

struct Found {
  std::string kind;
  std::string text;
  std::string message;                 // of the program
  std::vector<uint64_t> places;        // instruction pointers
  std::vector<std::string> history{};  // of linearizability: calls that have no order
  std::vector<Choice> schedule{};      // that shows it; empty: that of the run
  std::vector<uint32_t> labels{};      // of the units of a cycle
};

// By which findings are told apart: the same has the same text.
struct FoundKey {
  std::string text;
  std::vector<std::string> locations;  // each once
};
// `place`: the text of an instruction's place.
FoundKey key_of(const Found& found, const std::function<std::string(uint64_t)>& place);
std::string fingerprint(const FoundKey& key);
// `label`: the text of a unit's.
FindingPlaces places_of(const Found& found, const FoundKey& key, Symboliser& symbols,
                        const std::function<std::string(uint32_t)>& label);

// The runs ended so: End::kCrashed, kExited, kStuck.
Found found_crash(const Run& run, const std::string& error_output);
Found found_status(const Run& run);
Found found_stuck(const Run& run);
// Another execution of the class uses memory after it was freed.
std::optional<Found> found_early_free(const Graph& graph, const Run& run, Model model);
// What it came to, whatever the order in which it was said; empty: nothing was.
std::string outcome_text(const Run& run);
// A thread of a stuck run only has not been let (Request::waiting_is_final).
bool waits_for_scheduler(const Run& run);

// Why a run of another end is no execution that could be judged.
// Of a run with an asm statement whose accesses are not known.
std::string not_understood_text(const Run& run);
std::string not_judged_text(const Run& run, uint32_t max_steps,
                            const std::function<std::string(uint64_t)>& place);
// Accesses of different sizes to `variable`, which may be empty; `refused`: what was asked for
// cannot be done with them.
std::string mixed_text(const GraphBuilder::Mixed& mixed, bool refused, const std::string& variable,
                       const std::function<std::string(uint64_t)>& place);

struct JudgedProperties {
  bool serializability = false;
  bool robustness = false;
  bool operator==(const JudgedProperties&) const = default;
};
// `place`: the same for instructions that compilers made of the same code.
std::vector<Found> violated_properties(const Graph& graph, const Run& run, Model model,
                                       const JudgedProperties& asked,
                                       const std::function<std::string(uint64_t)>& place);

}  // namespace tsomon::explore
