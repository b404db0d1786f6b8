// A finding in words: what `check`, `run`, `attach` and the embedded monitor say of one violation, in text and in JSON.
//
// Purpose     The one way from a Finding (tso/model/finding.h) to a report. Names are looked up when it is made.
// Complexity  O(size) times its logarithm. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "monitor/findings/reported_cycle.h"
#include "monitor/findings/text_shape.h"
#include "tso/model/finding.h"
#include "tso/model/property.h"
#include "tso/model/trace.h"

namespace tsomon {

// Which accesses of a unit on the cycle are listed.
enum class ListedAccesses : uint8_t {
  kAll,      // up to ReportedCycle::kMaxAccesses
  kOnCycle,  // those by which the cycle comes in and goes out
};

// A unit that does not end fenced, in JSON and as a line; no line where a fence would not help.
struct ReportedFence {
  nlohmann::ordered_json json;
  std::string line;
};

struct ReportedFinding {
  uint64_t number = 0;  // from 1
  Property property = Property::kSerializability;
  Verdict verdict = Verdict::kPossible;  // kPossible or kDefinite
  ReportedCycle cycle;
  // Where fences are missing in the units that were judged together.
  std::vector<ReportedFence> unfenced;
  std::string repair;  // what would rule it out; empty: nothing is known
  uint64_t like = 0;   // of TornParts; 0: none that was told before

  bool definite() const { return verdict == Verdict::kDefinite; }
  // By itself, as it is found.
  nlohmann::ordered_json json() const;
  std::string text(const TextShape& shape = {}) const;  // several lines
  // As a part of a report: what describes the violation (`cycle`, `witness`, `accesses`, `fingerprint`, `repair`,
  // `unfenced_units`), and the lines below a headline that has size_text().
  void add_to(nlohmann::ordered_json* object) const;
  std::string body(const TextShape& shape = {}) const;
  std::string size_text() const;  // "cycle of 2 units"
  std::string like_text() const;  // "as violation 1, ..." in a line, or empty
};

ReportedFinding reported(const Finding& finding, Property property, const Symbols& symbols,
                         const ReportNames& names, ListedAccesses listed);

// Several lines; empty: none is missing.
std::string unfenced_text(const std::vector<ReportedFence>& unfenced,
                          const std::string& indent = {});

// The same cycle, with the same labels and source locations, has the same key, wherever it begins.
std::string key_of(const ReportedCycle& cycle);

}  // namespace tsomon
