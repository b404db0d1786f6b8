// All executions of small traces under TSO, one state of the abstract machine after another.
//
// Each thread has a buffer of stores, first in first out. A load is forwarded the youngest store
// there to its bytes, which has to cover it whole. Everything else is as NaivePlayer has it.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "offline/predict/branches.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"

namespace tsomon::testing {

class NaiveBuffers {
 public:
  // `late_releases`: a release is a store that waits in the buffer. Otherwise it drains it.
  NaiveBuffers(const Trace& trace, predict::Branches branches, bool late_releases);

  std::set<std::pair<uint32_t, uint32_t>> races() const;
  std::set<std::vector<uint32_t>> deadlocks() const;
  // Accesses that close a cycle of units as the last thing that happens, stores when they commit.
  struct Closing {
    std::set<uint32_t> all;
    std::set<uint32_t> news;  // of two units that had no order
  };
  Closing closing(const UnitTable& units) const;
  // Whether these steps can happen in this order; the first `start` events have, and committed at
  // once. Entries as in a witness (offline/predict/witness.h).
  bool allows(const std::vector<uint32_t>& entries, size_t free_tail) const;

 private:
  struct State {
    std::vector<uint32_t> done;       // issued, of each thread
    std::vector<uint32_t> committed;  // stores of each thread
    std::vector<int> memory;          // write to each byte; -1: none
    std::vector<bool> strayed;        // threads whose loads since the last branch saw other writes
    std::vector<bool> forwarded;      // loads, by event
    std::vector<uint64_t> after;      // units that come after a unit, a bit each
    bool operator<(const State& other) const {
      return std::tie(done, committed, memory, strayed, forwarded, after) <
             std::tie(other.done, other.committed, other.memory, other.strayed, other.forwarded,
                      other.after);
    }
  };
  struct Earlier {
    uint64_t all = 0;
    uint64_t news = 0;
  };

  State start(uint32_t units) const;
  std::vector<uint32_t> buffer(const State& state, uint32_t thread) const;
  bool enabled(const State& state, uint32_t event) const;
  bool keeps_out(const State& state, uint32_t thread, const Event& event, bool committed) const;
  int holds(const State& state, uint32_t thread, const Event& lock, EventKind from, EventKind to,
            bool committed) const;
  bool started(const State& state, uint32_t event) const;
  int forwarding(const State& state, uint32_t event) const;
  // False: it cannot. `strays`: a load that has to see another write does so all the same.
  bool issue(State& state, uint32_t event, bool strays) const;
  bool commit(State& state, uint32_t thread) const;
  Earlier order(State& state, uint32_t event, const UnitTable& units) const;
  void close(const State& state, const UnitTable& units, int other_than, Closing* found) const;
  template <typename Visit>
  void visit_states(const Visit& visit) const;

  const Trace& trace_;
  predict::Branches branches_;
  bool late_releases_;
  std::vector<std::vector<uint32_t>> threads_;
  std::vector<std::vector<uint32_t>> stores_;  // of each thread
  std::vector<uint32_t> place_;                // in its thread
  std::vector<uint32_t> store_;                // number among those of its thread
  std::vector<std::vector<int>> source_;       // of a load, the writes that it saw
};

}  // namespace tsomon::testing
