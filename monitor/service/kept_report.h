// Findings of a store, for people and for programs.
//
// Names       In text escaped (tso/support/printable.h); in JSON as they are (monitor/findings/result_json.h escapes them).
// Damage      A finding whose JSON is none has what the store knows of it, and no accesses.
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "monitor/service/store.h"

namespace tsomon::service {

// Microseconds since 1970: "2026-11-29T09:40:12Z".
std::string time_text(int64_t time);

// Two lines: how often, where, since when; what happened. `suppressed`: by what; empty: it is not.
std::string kept_lines(const KeptFinding& finding, const std::string& suppressed);
// All that is known: where it was seen, which slices show it, what became of analysing them, cause and repair, and the report of
// its best witness.
std::string kept_report(const KeptFinding& finding, const std::string& suppressed);

// `fingerprint`, `property`, `verdict`, `count`, `slices`, `first_seen`, `last_seen`, `summary`, `sightings`, `files`, `analyses`,
// and `explanation` where there is one.
nlohmann::ordered_json kept_json(const KeptFinding& finding, const std::string& suppressed);
// As `check`, of a prediction as `predict` writes a result, so that `tsomon report` reads it; the finding in it has what kept_json() says, too.
nlohmann::ordered_json kept_result_json(const KeptFinding& finding, const std::string& suppressed);

// One line, and one for each slice that is there.
std::string incident_lines(const Incident& incident);
// `incident`, `time`, `target`, `host`, `build`, `reason`, `slices`, `files`.
nlohmann::ordered_json incident_json(const Incident& incident);

}  // namespace tsomon::service
