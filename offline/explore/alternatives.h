// Where a graph of the search could have gone another way.
//
// Source      Kokologiannakis, Marmanis, Gladstein, Vafeiadis (POPL 2022), algorithm 2; see
//             offline/explore/graph_search.h.
// Complexity  of(): O(n) for each pair of a load and a store on the same cell that may not revisit,
//             O(n) for each place of the store in its order where it may; O(n^2) once for each store.
// Memory      That of one graph, which is used again for the next.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/explore/dependencies.h"
#include "offline/explore/execution_graph.h"
#include "offline/explore/step_graph.h"

namespace tsomon::explore {

// What another graph begins with.
struct Alternative {
  uint32_t event = 0;           // its write was added last, if it has one
  uint32_t end = 0;             // so many events of the graph are there
  int32_t source = kReadsNone;  // what it reads then
  uint32_t position = 0;        // of a store: in the order of its cell; of kAnswer: which one
  int32_t revisited = -1;       // the load that reads it then
};

class Alternatives {
 public:
  explicit Alternatives(Model model) : model_(model) {}

  // All of the events from `from` on. `revisited`: the event that the revisit changed by which the
  // graph began, or -1: if it writes, its write is new as well.
  std::vector<Alternative> of(const Graph& graph, uint32_t from, int32_t revisited);
  // The graph that `alternative` of `whole` is, and a schedule that runs it (may be nullptr).
  void make(const Graph& whole, const Alternative& alternative, Graph* made,
            std::vector<Choice>* schedule);

 private:
  void add_of_event(uint32_t e);
  // Of the write of `e`, which was added when there were `end` events.
  void add_revisits(uint32_t e, uint32_t end, int32_t source, uint32_t positions);
  void find_needed(uint32_t last, uint32_t end, int32_t source);
  bool is_there(int32_t e) const { return e != last_ && e < end_; }
  bool is_kept(int32_t e, int32_t load) const { return e < load || e == last_ || needed_.has(e); }
  bool added_maximally(int32_t e);
  bool is_maximal(int32_t e) const;
  bool may_revisit(int32_t load);
  void change_last(const Graph& whole, const Alternative& alternative, Graph* made) const;
  void revisit(const Graph& whole, const Alternative& alternative, Graph* made);
  void make_graph(const Graph& whole, const Alternative& alternative, Graph* made);
  // True: it is there.
  bool offer(const Alternative& alternative);

  const Model model_;
  const Graph* graph_ = nullptr;
  std::vector<Alternative> found_;
  // Of find_needed().
  int32_t last_ = 0;
  int32_t end_ = 0;
  Dependencies needed_;           // of the last event
  std::vector<uint8_t> maximal_;  // 0: not known yet; 1: no; 2: yes
  std::vector<int32_t> number_;
  Graph made_;
  StepGraph steps_;
};

}  // namespace tsomon::explore
