// The search inside one component of the mixed conflict graph: which of its cycles some execution has, and whether one has
// none.
//
// Purpose     Makes the question for AnalysisOptions::search (or, where all units end fenced, ::fenced) out of a component:
//             its events, open edges and rules, what recorded values and forwarded loads add to them, and whether an
//             orientation is that of an execution.
// Complexity  That of the search within its bounds; O(events^2) of the component in front of it.
// Source      Theory sections 3, 5 and 6.
// Thread-safety: search() may be called from several threads once prepare() is done.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tso/check/explanation.h"
#include "tso/order/fences.h"
#include "tso/order/issue_order.h"
#include "tso/order/open_pairs.h"
#include "tso/order/values.h"
#include "tso/support/flat_map.h"

namespace tsomon {

struct WantedComponent {
  std::vector<uint32_t> edges;  // positions in ClassGraph::edges()
  // All of the trace: every event has its say, not only those of the component's units, and what comes
  // with them. Its edges are all there are.
  bool whole = false;
  std::vector<uint32_t> among;  // sorted; of `whole`: classes whose cycles count; empty: all
};

struct SearchedComponent {
  OrientationBounds bounds;
  std::vector<uint32_t> open;   // edges of the component, and those tied to it
  std::vector<uint32_t> tied;   // the latter
  std::vector<UnitId> members;  // its units, or events
  bool fenced = false;          // decided without the search
  OrientationResult result;
  std::optional<Edge> closing;  // as in `result`, by events of the trace
  bool realised = false;        // the orientation is that of an execution with the recorded values
  bool by_executions = false;   // orientations that no execution has were refused
  uint64_t steps = 0;
  uint64_t work = 0;
};

class ComponentSearch {
 public:
  // `values`: that loads have to return, if they count; `sources`: what they may have read, for SC-serializability.
  // All that is passed in must outlive the search.
  ComponentSearch(const AnalysedTrace& in, const AccessIndex& accesses, const Fences& fences,
                  const std::optional<RecordedValues>& values,
                  const std::optional<RecordedValues>& sources)
      : in_(&in),
        trace_(in.trace),
        options_(in.options),
        units_(in.units),
        relation_(in.relation),
        graph_(&in.graph),
        classes_(&in.classes),
        accesses_(accesses),
        fences_(fences),
        values_(values),
        sources_(sources) {}

  // Looks for the open edges of all components, before the first search.
  void prepare();
  SearchedComponent search(const WantedComponent& component, const std::vector<ReadsFrom>& rules,
                           const OrientationBounds& left) const;
  // Whether all of the trace is little enough for WantedComponent::whole.
  bool fits_whole() const;

 private:
  static void take(OrientationResult by_fences, SearchedComponent* searched);
  std::optional<OrientationResult> ask_fenced(const WantedComponent& component,
                                              const std::vector<ReadsFrom>& rules,
                                              SearchedComponent* searched) const;
  static uint64_t work_of_order(uint64_t events);
  bool fits_memory(uint64_t events, uint64_t open) const;
  void add_steps(const std::vector<uint32_t>& open, const std::vector<uint32_t>& slice,
                 const SliceSteps& steps, OrientationProblem* problem) const;
  static int32_t in_choice(Order known);
  bool reads_known_value(uint32_t e) const;
  std::vector<LoadSources> sources_of(const std::vector<uint32_t>& loads) const;
  std::vector<uint32_t> tied_edges(const std::vector<uint32_t>& open,
                                   const std::vector<uint32_t>& own) const;
  std::vector<uint32_t> forwarding_edges(const std::vector<uint32_t>& open) const;
  std::optional<uint32_t> open_edge_between(uint32_t e, uint32_t f) const;
  std::pair<uint32_t, uint32_t> ends_of(uint32_t edge) const;
  void add_choices(const OpenPairs& places, const std::vector<uint32_t>& own,
                   OrientationProblem* problem) const;
  OpenPairs places_of(const std::vector<uint32_t>& open) const;
  Order oriented(const OpenPairs& places, const std::vector<bool>& orientation, uint32_t e,
                 uint32_t f) const;
  Order certain(uint32_t e, uint32_t f) const;
  std::vector<uint32_t> realisable_events(const FlatMap<uint32_t, uint32_t>& classes,
                                          std::vector<uint32_t>* own) const;
  std::vector<uint32_t> all_events() const;
  void add_overtaken(uint32_t load, std::vector<uint32_t>* events) const;

  const AnalysedTrace* in_;
  const Trace& trace_;
  const AnalysisOptions& options_;
  const UnitTable& units_;
  const Relation& relation_;
  const RefinedGraph* graph_;
  const ClassGraph* classes_;
  const AccessIndex& accesses_;
  const Fences& fences_;
  const std::optional<RecordedValues>& values_;
  const std::optional<RecordedValues>& sources_;
  std::vector<uint32_t> open_edges_;  // of all components and of none, by the events behind them
};

}  // namespace tsomon
