// The order in which operations take effect in memory, as far as it is certain, kept closed under
// what values imply.
//
// Source      The axioms of TSO (SPARC V9; Owens, Sarkar, Sewell 2009 show that they are those of
//             the x86-TSO machine): one total order over loads and commits that keeps load -> all
//             and store -> store of each thread, in which a load returns the latest store to its
//             location that comes before it in that order or in its own thread. SC: program order
//             whole. The inference is that of TSOtool (Hangal et al., ISCA 2004; Manovit 2006).
// Inference   A load L that reads store S, and another store W to the location: W before L implies
//             W before S; S before W implies L before W. Applied until nothing changes.
// Method      One clock per thread and kind: the last operation that orders like a load, and the
//             last that orders like a store, that come before. Both kinds are chains, so a query is
//             O(1). New edges propagate as far as they change a clock.
// Complexity  8 * threads bytes an operation; to settle, O(n * threads) a round and few rounds.
// Undo        Everything since a Mark can be taken back, in the time that it took.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "offline/consistency/value_problem.h"
#include "tso/model/relation.h"

namespace tsomon {

class MemoryOrder {
 public:
  static constexpr uint32_t kNone = Operation::kNone;

  // The problem must outlive the order.
  MemoryOrder(const ValueProblem& problem, MemoryModel model);
  static size_t bytes(const ValueProblem& problem);

  // Program order, the edges of the problem, and the sources of loads that can have only one.
  // False: no order of the operations has these values.
  bool settle();

  // from comes before to.
  bool reaches(uint32_t from, uint32_t to) const;
  // The store a load has certainly read (ValueProblem::initial_store for the initial value).
  uint32_t source(uint32_t load) const { return source_[load]; }
  // The value of a store or of an initial value, given or assumed by set_source().
  std::optional<uint64_t> value_of(uint32_t store) const;

  // Each adds what follows; false: a contradiction. Then only undo() may be called.
  bool insert(uint32_t from, uint32_t to);
  bool set_source(uint32_t load, uint32_t store);
  // Sets the sources of all loads that have one candidate left.
  bool determine();

  // Stores that the load may have read; at most `limit` of them are listed.
  std::vector<uint32_t> candidates(uint32_t load, size_t limit) const;
  // Loads with a value that may have read more than one store, or that are not looked at yet.
  const std::vector<uint32_t>& undetermined() const { return undetermined_; }

  struct Mark {
    size_t clocks = 0;
    size_t edges = 0;
    size_t sources = 0;
    size_t readers = 0;
    size_t assumed = 0;
    std::vector<uint32_t> undetermined;
  };
  Mark mark();  // from now on changes are remembered
  void undo(const Mark& mark);

  // What was added since the mark, directly or as a consequence. O(additions).
  template <typename Function>
  void for_each_edge_since(const Mark& mark, const Function& function) const {
    for (size_t i = mark.edges; i < edge_trail_.size(); ++i) {
      function(edge_trail_[i]);
    }
  }
  template <typename Function>
  void for_each_source_since(const Mark& mark, const Function& function) const {
    for (size_t i = mark.sources; i < source_trail_.size(); ++i) {
      function(source_trail_[i]);
    }
  }

  // Loads that have certainly read a store or an initial value: of each thread the last one.
  struct Reader {
    uint32_t thread;
    uint32_t load;
  };
  const std::vector<Reader>& readers(uint32_t store) const { return readers_[store]; }

  // What comes before an operation: for each thread 1 more than the position of the last operation
  // that orders like a load, and of the last that orders like a store; 0 is none.
  const uint32_t* clock(uint32_t operation) const { return &clocks_[operation * width_]; }

  // Operations on a cycle of the edges whose insertion failed, in order.
  std::vector<uint32_t> contradiction() const;

 private:
  template <typename Function>
  void for_each_successor(uint32_t operation, const Function& function) const {
    if (next_load_[operation] != kNone) {
      function(next_load_[operation]);
    }
    if (next_store_[operation] != kNone && next_store_[operation] != next_load_[operation]) {
      function(next_store_[operation]);
    }
    for (const uint32_t next : successors_[operation]) {
      function(next);
    }
  }

  struct ClockChange {
    size_t entry;
    uint32_t old;
  };
  struct ReaderChange {
    uint32_t store;
    uint32_t index;
    uint32_t old;  // kNone: the entry is new
  };

  // In clocks_, as clock() says.
  size_t entry(uint32_t operation, uint32_t thread, bool store) const {
    return static_cast<size_t>(operation) * width_ + 2 * static_cast<size_t>(thread) +
           (store ? 1 : 0);
  }
  void link_threads();
  bool propagate_all();
  bool drain();
  bool merge(uint32_t from, uint32_t to);
  void take_over(uint32_t from, uint32_t to);
  void raise(size_t entry, uint32_t value);
  void infer_from(uint32_t operation, uint32_t thread, uint32_t old);
  void infer_source(uint32_t load);
  bool remember_source(uint32_t load, uint32_t store);
  void add_reader(uint32_t store, uint32_t load);
  void add_edge(uint32_t from, uint32_t to);
  bool possible(uint32_t load, uint32_t store) const;
  const ValueProblem::ThreadStores* writers(uint32_t location, uint32_t thread) const;
  // The newest of the stores that comes before an operation / the oldest that comes after; kNone.
  uint32_t newest_before(const ValueProblem::ThreadStores& list, uint32_t operation) const;
  uint32_t oldest_after(const ValueProblem::ThreadStores& list, uint32_t operation) const;
  std::vector<uint32_t> path(uint32_t from, uint32_t to) const;
  void index_values();

  const ValueProblem& problem_;
  MemoryModel model_;
  size_t width_;
  std::vector<uint32_t> clocks_;
  std::vector<uint32_t> next_load_;
  std::vector<uint32_t> next_store_;
  std::vector<std::vector<uint32_t>> successors_;  // beyond program order
  std::vector<uint32_t> source_;
  std::vector<std::vector<Reader>> readers_;  // by store or initial value
  std::vector<std::optional<uint64_t>> assumed_;
  std::vector<uint32_t> undetermined_;
  std::vector<uint32_t> remaining_;
  // Stores by location and value, for loads that only one store can explain.
  struct Provided {
    uint32_t first = kNone;
    bool several = false;
  };
  std::vector<std::vector<std::pair<uint64_t, Provided>>> provided_;  // sorted, by location
  std::vector<bool> unknown_values_;                                  // by location

  std::vector<Edge> pending_;
  std::vector<uint32_t> work_;
  bool remember_ = false;
  std::vector<ClockChange> clock_trail_;
  std::vector<Edge> edge_trail_;
  std::vector<uint32_t> source_trail_;
  std::vector<ReaderChange> reader_trail_;
  std::vector<uint32_t> assumed_trail_;
  Edge failed_{kNone, kNone};
  std::vector<uint32_t> cycle_;  // of a first settle() that failed
};

}  // namespace tsomon
