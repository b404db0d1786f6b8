// Verdicts over whole traces: serializability, robustness, SC-serializability, by a search inside
// the components of the mixed conflict graph.
//
// Source      Theory sections 3, 5 and 6.
// Purpose     The ground truth of the project, and enough for recorded runs whose components are small.
// Verdicts    kClean: no valid orientation is bad. kDefinite: every one is. kPossible: some are, or
//             some are and whether all are was not decided (then `complete` is false).
//             kInconclusive: a bound was hit, or events were lost, and nothing bad was found.
// Findings    One for each violated component, at most `max_findings` of them with cycle and witness; or, as `told` says,
//             one for each kind of them, by the cycle that the search found, or all; then also what
//             else every execution has (tso/check/further_cycles.h).
//             Every witness has passed check_witness(); one that does not is an internal error that
//             makes the analysis inconclusive instead of being reported.
// Exactness   Under Semantics::kExact an orientation counts only if realise() finds an execution
//             for it that returns the recorded values. The forwarding constraints (theory 5.1) are a part of
//             that and prune the search; alone they admit slightly more (6 of 100,000 random traces
//             in the tests). A component of more than 1,500 events is too large to be realised as a
//             whole: there forwarding constraints and the fixed point of the values decide, and the events of the
//             cycle that is shown are realised.
// Whole       Loads outside of a part may exclude executions that the search of the part finds. A
//             part that is violated in some executions and not in others is therefore asked about
//             once more with all events of the trace, if there are values and the trace is small
//             (1,000 events, 20,000 open edges, and bounds of its own).
// SC          Values are not those of an SC execution and are compared with none. What they show
//             about the order of the issues is used: what lies before a load from memory, or a
//             locked operation, in every TSO execution with these values, was issued before it; and
//             a load was issued after one of the stores that it may have read.
// Bounds      AnalysisOptions: a component is decided quickly while its open edges are a few dozen, or
//             its violations plain. For all together, up to the witness:
//             tso/check/analysis_budget.h.
// Complexity  Linear in the trace but for undirected edges; exponential inside a component, bounded in
//             decisions and in what they cost.
// Misses      What uninstrumented code does: its stores are invisible, and values that it wrote are
//             taken for initial values.
// Threads     Components are searched by AnalysisOptions::threads of them, and judged in their order;
//             each has the bounds it would have if they came one after the other. The bound on
//             memory is that of one component: as many components as there are threads may need it at once.
// Thread-safety: a pure function of its arguments; `search` is called from several threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tso/check/component_check.h"
#include "tso/check/indexed_trace.h"
#include "tso/check/witness.h"
#include "tso/model/finding.h"
#include "tso/model/outcome.h"
#include "tso/model/property.h"
#include "tso/model/relation.h"
#include "tso/model/units.h"
#include "tso/order/event_ranges.h"
#include "tso/order/execution.h"
#include "tso/order/orientations.h"
#include "tso/support/progress.h"
#include "tso/support/result.h"

namespace tsomon {

// A unit that does not end fenced, and its last store that may commit after it
// (tso/order/fences.h).
struct UnfencedUnit {
  UnitId unit = 0;
  uint32_t after = 0;
  uint32_t group = 0;  // of Analysis::unfenced_groups
};

// Which violations have a finding of their own. Others are counted.
enum class Told : uint8_t {
  kFirst,     // the first AnalysisOptions::max_findings
  kEachKind,  // one of each kind (tso/model/finding.h), whose Repeats the others are
  kAll,
};

struct AnalysisOptions {
  Property property = Property::kSerializability;
  RelationOptions relation;
  bool values = true;
  uint64_t max_undirected = 20'000'000;
  OrientationBounds bounds;
  OrientationSearch search = enumerate_orientations;  // of each component
  // Asked first about components whose units all end fenced, for serializability under exact semantics.
  ComponentCheck fenced;
  // Decisions, and their work (OrientationBounds), over all components; when either is used up, every
  // further component gets a small share.
  uint64_t max_total_steps = 200'000;
  uint64_t max_total_work = 2'000'000'000;
  uint32_t max_findings = 16;
  Told told = Told::kFirst;
  unsigned threads = 1;          // that search components; the result does not depend on it
  Progress* progress = nullptr;  // told what is searched, if there is one
  // Cycles are searched between units of these events; empty: between all. The whole trace is still
  // what orders and values are taken from.
  std::vector<EventRange> only;
};

// One finding for each violated component.
struct Analysis : Outcome<Violation> {
  uint64_t units = 0;
  uint64_t components = 0;  // that had to be searched
  uint64_t undecided_components = 0;
  uint64_t fenced_components = 0;  // of the searched ones: what AnalysisOptions::fenced decided
  uint64_t open_edges = 0;         // undirected edges left after refinement
  uint64_t work = 0;               // of the search
  bool values_contradict = false;  // the recorded values fit no execution, and were ignored
  // Serializability under TSO: of the components that are violated or not decided.
  std::vector<UnfencedUnit> unfenced;
  // The units of each of these components, fenced ones included.
  std::vector<std::vector<UnitId>> unfenced_groups;
};

// An error only for a trace whose stated order contradicts itself.
Result<Analysis> analyse(const Trace& trace, const AnalysisOptions& options);
// The same of a trace that was indexed with options.relation. Not for SC-serializability, which has
// a relation of its own.
Result<Analysis> analyse(const IndexedTrace& indexed, const AnalysisOptions& options);

}  // namespace tsomon
