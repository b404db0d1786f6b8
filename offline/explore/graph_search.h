// Every class of executions once, by growing execution graphs.
//
// Source      Kokologiannakis, Marmanis, Gladstein, Vafeiadis: Truly Stateless, Optimal Dynamic
//             Partial Order Reduction (POPL 2022), algorithms 1 and 2.
// Method      A run adds the operations of the program to a graph, each thread as far as it goes,
//             the thread with the smallest number first, each load reading the newest write, each
//             store written last. For every event that was added there are others of the same kind:
//             a load may read any write that is there; a store may come before others, and loads
//             that are there may read it instead (a backward revisit). Then what was added after
//             the load, and the store does not depend on, is taken away; only if it was added
//             maximally, so that one of all the graphs that differ in it goes on. Each alternative
//             is the beginning of another run.
// Locked      A locked operation is a load and a write right behind it, in one event. When a revisit
//             changes what it reads, its write is a new one, added last, and revisits loads in
//             turn (docs/design/explore.md).
// Locks       An operation that has to wait is a load that reads what makes it wait;
//             its thread adds no more. A later write that lets it go on revisits it.
//             So does a loop that waits. Graphs that end with a thread that only waits
//             for what has happened since are counted as blocked: no execution ends
//             so.
// Complexity  One run for every class, and for every blocked graph; no class twice. What the
//             alternatives of a graph cost says offline/explore/alternatives.h.
// Memory      The graphs along a path of the search, O(n) each; of sixteen paths, as so many runs are
//             made ready at a time (Program::expect).
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "offline/explore/alternatives.h"
#include "offline/explore/execution_graph.h"

namespace tsomon::explore {

class GraphSearch {
 public:
  GraphSearch(Program& program, GraphBuilder& builder, Model model)
      : program_(program), builder_(builder), model_(model), alternatives_(model) {}

  // Graphs that one alternative begins, to be searched by another.
  struct Subtree {
    std::shared_ptr<const Graph> graph;  // nullptr: the whole search
    Alternative alternative;
  };
  // Searches this instead of all. Before the first run.
  void begin(const Subtree& subtree);
  // Gives away the alternative nearest to the root, if there are two or more. No class is in both
  // parts: the subtrees of a search are disjoint and know nothing of each other.
  std::optional<Subtree> give();

  // Nothing is left.
  bool done() const { return started_ && stack_.empty() && ready_.empty(); }
  // The next run: its graph, and whether all that it did fits. Requires !done().
  struct Result {
    const Graph* graph = nullptr;
    const Run* run = nullptr;
    std::vector<Choice> schedule;  // of the whole run
    bool stale = false;            // a thread waits for what has happened since
  };
  Result next();
  size_t pending() const;  // alternatives on the path
  size_t depth() const { return stack_.size(); }

 private:
  struct Node {
    std::shared_ptr<const Graph> graph;
    std::vector<Alternative> alternatives;
  };

  // A graph that is to be run.
  struct Ready {
    std::shared_ptr<Graph> graph;
    Request request;
    int32_t revisited = -1;  // Alternative::revisited
  };
  void make_ready();
  void add_alternatives(const std::shared_ptr<const Graph>& graph, uint32_t from,
                        int32_t revisited);

  Program& program_;
  GraphBuilder& builder_;
  const Model model_;
  Alternatives alternatives_;
  bool started_ = false;
  std::vector<Node> stack_;
  std::vector<Ready> ready_;  // the last first
  std::shared_ptr<Graph> last_;
};

}  // namespace tsomon::explore
