// A violation: the cycle, an execution that shows it, and the events that both are made of.
//
// Purpose     The one form in which analyses, the detector's judges and the exploration of programs say what they have
//             found; reports are made from it (monitor/findings).
// Thread-safety: plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tso/model/outcome.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"

namespace tsomon {

// How two neighbours on a cycle are ordered.
enum class EdgeKind : uint8_t {
  kProgramOrder,
  kConflict,    // the trace shows the order
  kValues,      // the recorded values (or a chain of certain orders) imply it
  kReordering,  // the execution of the witness chooses it
  kThread,      // fork or join
  kOverlap,     // of an atomic set: the intervals overlap, this one begins first
  kHandOver,    // post and take, send and receive
};

// "program-order", "conflict", "implied", "reordering", "thread", "overlap", "hand-over".
const char* edge_name(EdgeKind kind);

struct CycleEdge {
  UnitId unit = 0;    // that the edge leaves
  uint32_t from = 0;  // the two events behind the edge
  uint32_t to = 0;
  EdgeKind kind = EdgeKind::kConflict;
};

// A step of an execution.
struct Step {
  bool commit = false;  // false: the event is issued (loads and locked operations: performed)
  uint32_t event = 0;
  bool operator==(const Step&) const = default;
};

// Violations that are like one that is shown: the same cycle of places (kind_of()), and as grave.
struct Repeats {
  Violations found;
  uint64_t first =
      UINT64_MAX;  // where they begin: the first event of a cycle, of the first and the last one
  uint64_t last = 0;

  void add(Verdict verdict, uint64_t begin) {
    found.add(verdict);
    first = std::min(first, begin);
    last = std::max(last, begin);
  }
  void add(const Repeats& more) {
    found.add(more.found);
    first = std::min(first, more.first);
    last = std::max(last, more.last);
  }
};

// In positions of a trace.
struct Violation {
  Verdict verdict = Verdict::kPossible;
  bool complete = true;          // false: whether it is definite was not decided
  std::vector<CycleEdge> cycle;  // ends where it begins
  // Events of the witness, in trace order: as few as show the cycle, and the stores that the loads
  // among them may be forwarded from. Without a witness (the plain relation): all of the units.
  std::vector<uint32_t> slice;
  std::vector<Step> witness;  // empty: no execution shows it (paper relation only)
  Repeats repeats;            // further ones, where not each is shown
};

inline Verdict verdict_of(const Violation& violation) { return violation.verdict; }
inline Violations violations_of(const Violation& violation) {
  Violations all = violation.repeats.found;
  all.add(violation.verdict);
  return all;
}
// Its first event.
uint32_t begin_of(const std::vector<CycleEdge>& cycle);

// The same for violations with the same fingerprint but for what the source says of places: units' labels, source
// locations, kinds of accesses, names of what is accessed; and the verdict. Locations with an address have no name.
// `names`: how many names the trace has (Symbols::names).
std::string kind_of(const Violation& violation, const std::vector<CycleEdge>& cycle,
                    const EventBlock& events, const UnitTable& units, size_t names);

// The trace itself shows every order of the cycle; no value, no choice of an execution is needed.
bool has_certain_orders(const Violation& violation);

// A violation with the events that it is explained by, cut out of the input.
struct Finding {
  Violation violation;          // in positions of `events`
  Trace events;                 // without symbols
  std::vector<uint64_t> index;  // of each of them, in the input
  // `violation.repeats` is in events of the input.
  // Of these events. The part of a unit that follows a condition wait begins with the wait, which
  // belongs to the part before it.
  UnitTable units;
};

inline Verdict verdict_of(const Finding& finding) { return finding.violation.verdict; }
inline Violations violations_of(const Finding& finding) { return violations_of(finding.violation); }
// Of the input.
inline uint64_t begin_of(const Finding& finding) {
  return finding.violation.cycle.empty() ? 0 : finding.index[begin_of(finding.violation.cycle)];
}

// Cuts out the units on the cycle whole, the events of the witness, and what the edges lead to. `violation` in
// positions of `events`, which are numbered by `index` (nullptr: as they stand). O(size of these units) times its
// logarithm.
Finding make_finding(Violation violation, const EventBlock& events, const UnitTable& units,
                     const std::vector<uint64_t>* index);

}  // namespace tsomon
