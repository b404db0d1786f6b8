// Results in JSON, read back: what `check`, `run`, `attach`, `predict`, `explore`, `critical-races` and embedded monitors wrote.
//
// Purpose     The one form that reports for other tools are made of (render.h). Names are as in docs/formats/json.md.
// Input       One object a line, as they were written, whatever else stands between them: the output of a program that
//             ran is passed over. A line that begins as an object and is none, or is no result, is a problem; the rest
//             is still read.
// Same ones   Findings of one rule with one fingerprint are one finding, which counts them.
// Complexity  O(size) times its logarithm; memory some ten times the longest line.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/report/decisions.h"

namespace tsomon::report {

// In the source.
struct Place {
  std::string text;  // as reports show it
  std::string function;
  std::string file;   // empty: not known
  uint64_t line = 0;  // from 1; 0: not known
};

struct Access {
  uint64_t event = 0;
  std::string thread;
  std::string what;  // "store counter = 1"
  std::string operation;
  std::string variable;  // its name, without the place in it; empty: it has none
  std::string read;      // values; empty: not known
  std::string written;
  Place place;
  std::vector<Place> called_from;  // the innermost first
};

struct Unit {
  std::string thread;
  std::string label;
  uint64_t first = 0;  // events
  uint64_t last = 0;
  bool is_unit = true;  // false: an event of its own
  uint64_t from = 0;    // the events that lead to the next unit of the cycle
  uint64_t to = 0;
  std::string edge;    // as in docs/formats/json.md
  std::string reason;  // the same in words
};

struct Step {
  uint64_t event = 0;
  bool commit = false;  // of a store that was issued before
};

// What a thread does of a predicted execution before another one goes on.
struct Turn {
  std::string thread;
  uint64_t first = 0;  // events
  uint64_t last = 0;
  bool commit = false;  // of the store `first`, late
};

// A thread that waits for ever.
struct Wait {
  std::string thread;
  std::vector<std::string> holds;
  std::string for_what;
  std::string held_by;     // threads; empty: not known
  std::string held_since;  // "#7 a.cpp:3", or empty
  uint64_t event = 0;
  Place place;
};

struct Finding {
  std::string rule;     // Rule::id
  std::string verdict;  // `definite`, `possible`, `predicted`, `explored`
  std::string headline;
  std::string fingerprint;
  std::string repair;
  std::string replay;                // for `--replay`, or empty
  std::string schedule;              // that was explored, or empty
  std::vector<std::string> details;  // lines
  std::vector<Unit> cycle;
  std::vector<Access> accesses;     // by event
  std::vector<Step> witness;        // of the accesses; empty: not known
  std::vector<Turn> turns;          // of a prediction; empty: not known
  uint64_t turns_before = 0;        // that are not listed
  bool turns_in_part = false;       // what comes before them is not known turn by turn
  std::vector<Wait> waits;          // of a deadlock
  std::vector<Place> places;        // where there are no accesses
  std::vector<std::string> inputs;  // the first ones that have it
  uint64_t times = 1;

  // nullptr: it is not described.
  const Access* access(uint64_t event) const;
  // Where it is to be looked at first; nullptr: nowhere.
  const Place* place() const;
  // Something that happened, or can.
  bool certain() const { return verdict != "possible"; }
};

struct Judged {
  std::string name;
  std::string tool;
  std::string question;  // property, kinds, or model
  std::string verdict;   // empty: it was not judged
  bool complete = true;
  uint64_t findings = 0;
  std::vector<std::pair<std::string, uint64_t>> counters;  // those of the object, by name
  std::vector<std::string> notes;
};

// A kind of finding.
struct Rule {
  const char* id;
  const char* name;
  const char* help;
};
const Rule& rule_of(std::string_view id);

class Results {
 public:
  static constexpr size_t kMostInputs = 16;  // that a finding names

  // `name` is that of the file, in messages. Reads to the end; an error of the stream stays in its state.
  void read(std::istream& input, const std::string& name);
  // One object of them. False: it is no result.
  bool add(const nlohmann::ordered_json& object, const std::string& name);
  // After the last one: those that matter most first.
  void finish();

  const std::vector<Finding>& findings() const { return findings_; }
  const std::vector<Judged>& judged() const { return judged_; }
  // Of programs whose races were looked at.
  const std::vector<Decisions>& decisions() const { return decisions_; }
  // "results.json: line 3: ...".
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void add_findings(const nlohmann::ordered_json& object, Judged* judged);
  bool asked_again() const;
  void add(Finding finding, const std::string& input);
  void add_input(size_t finding, const std::string& input);
  // It was seen so often in all. How often more than was known.
  uint64_t repeat(const std::string& fingerprint, uint64_t times);
  void name_waiting(const std::string& input);

  std::vector<Finding> findings_;
  std::map<std::pair<std::string, std::string>, size_t> known_;  // by rule and fingerprint
  std::vector<size_t> waiting_;  // findings whose input the result behind them names
  std::vector<Judged> judged_;
  std::vector<Decisions> decisions_;
  std::vector<std::string> problems_;
};

// Whether the beginning of a file is that of results.
bool are_results(std::string_view beginning);

}  // namespace tsomon::report
