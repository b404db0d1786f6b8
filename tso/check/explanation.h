// What a finding is shown with: a short cycle, the events around it, and an execution that has it.
//
// Purpose     From a component of a trace and the orientation that a search found in it to the cycle,
//             slice and witness of a Violation. Every witness has been accepted by the witness
//             checker, which shares nothing with the searches.
// Complexity  As shortest_cycle() (tso/check/cycle.h) and minimal_witness() (tso/check/witness.h).
// Thread-safety: none; one explainer serves all findings of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tso/check/analysis.h"
#include "tso/check/class_graph.h"
#include "tso/check/cycle.h"
#include "tso/check/definitions.h"
#include "tso/order/open_pairs.h"

namespace tsomon {

// All of these outlive the explainer. `values`: there are values that witnesses have to return.
struct AnalysedTrace {
  const Trace& trace;
  const AnalysisOptions& options;
  const UnitTable& units;
  const Relation& relation;
  const RefinedGraph& graph;
  const ClassGraph& classes;
  bool values = false;
};

// What a search said of one component.
struct ViolatedComponent {
  const std::vector<uint32_t>& edges;  // of the ClassGraph
  const std::vector<uint32_t>& open;   // of these
  const OrientationResult& result;
  std::optional<Edge> closing;  // as in `result`, by events of the trace
  bool realised = false;        // the orientation is that of an execution with the recorded values
};

class Explainer {
 public:
  explicit Explainer(const AnalysedTrace& analysed) : in_(analysed) {}

  // Fills cycle, slice and witness of the finding. False: `why` says why there is no witness that
  // holds. True with `why`: there need not be one (the paper's relation).
  bool explain(const ViolatedComponent& component, Violation* finding, std::string* why);
  // The cycle that the search found, as short as that is known without an execution; what explain() shows may be shorter.
  std::vector<CycleEdge> plain_cycle(const ViolatedComponent& component) const;
  bool in_every_execution(const std::vector<CycleEdge>& cycle) const;
  // The edges of a short cycle that every execution has; empty: none was found.
  std::vector<uint32_t> cycle_of_every_execution(const ViolatedComponent& component) const;
  // Cycles that every execution has, but for the one that is shown (tso/check/further_cycles.h), each as edges of
  // the component.
  std::vector<std::vector<uint32_t>> further(const ViolatedComponent& component,
                                             const std::vector<CycleEdge>& shown) const;
  // SC-serializability with values: `steps` of an execution that returns them, in whose order of
  // issues there is a cycle. It replaces the witness, if the checker accepts it.
  void show_execution(const std::vector<Step>& steps, Violation* finding);

 private:
  struct Orientation {
    OpenPairs pairs;
    std::vector<bool> forward;
  };
  Orientation orientation_of(const ViolatedComponent& component) const;
  OrientationOracle oracle_of(const Orientation& chosen) const;
  std::vector<CycleEdge> plain_cycle(const ViolatedComponent& component,
                                     const OrientationOracle& before) const;
  std::optional<Orientation> orient_slice(const ViolatedComponent& component,
                                          const std::vector<uint32_t>& slice) const;
  std::vector<CycleEdge> cycle_in(const ViolatedComponent& component,
                                  const OrientationOracle& before) const;
  enum class Through : uint8_t { kConflicts, kAll };  // kAll: starts, joins and locks, too
  std::vector<std::vector<uint32_t>> certain_cycles(const ViolatedComponent& component,
                                                    Through through,
                                                    const std::vector<CycleEdge>& but) const;
  bool show(const ViolatedComponent& component, const OrientationOracle& before, Violation* finding,
            std::string* why);
  Order certain(uint32_t e, uint32_t f) const;
  EdgeKind directed_kind(const Edge& edge) const;
  const WitnessChecker& witness_checker();
  void keep_witness(std::vector<Step> witness, Violation* finding) const;
  void name_cycle(Violation* finding) const;
  void collect_window(Violation* finding) const;
  void complete(const std::vector<CycleEdge>& cycle, std::vector<uint32_t>* events) const;
  void add_supports(uint32_t from, uint32_t to, const ThreadDefinitions& known,
                    std::vector<uint32_t>* events) const;
  ThreadOrder program_order() const;

  AnalysedTrace in_;
  std::optional<WitnessChecker> witnesses_;  // made for the first one
};

// The events of a unit that are nodes of the event graph; of single events as classes none.
void add_members(const AnalysedTrace& analysed, uint32_t node, std::vector<uint32_t>* events);

}  // namespace tsomon
