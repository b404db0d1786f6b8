// Random small traces, and all that can be said about them by trying everything.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "offline/predict/branches.h"
#include "offline/predict/query.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"

namespace tsomon::testing {

struct SmallTraceShape {
  uint32_t threads = 2;
  uint32_t events = 12;
  uint32_t locks = 2;
  uint32_t variables = 2;
  bool branches = true;
  bool forks = false;      // the first thread starts the others and joins one
  bool exchanges = false;  // atomic read-modify-writes
  bool reader_locks = false;
  bool mostly_locks = false;
  bool upgrades = false;  // readers ask for their lock alone
  bool units = false;
  bool wide = false;  // accesses of one byte or two, at bytes with these numbers
  bool fences = false;
  bool waits = false;       // for one of two condition variables, and notifications
  bool messages = false;    // sent and received, of two kinds
  bool tries = false;       // some acquisitions do not block
  bool semaphores = false;  // two, one of which may have a count at first
};

// Each event has a source location of its own.
Trace random_small_trace(std::mt19937& random, const SmallTraceShape& shape);

// An event a line, for messages.
std::string text(const Trace& trace);

// From two nodes on in every other round; the last ones are the whole trace.
predict::Windows small_windows(int round);

// What there is according to NaivePlayer, and how much of it was not found.
struct Tally {
  uint64_t feasible = 0;
  uint64_t refused = 0;
  uint64_t invalid = 0;
};

// Plays traces by the definition of a reordering, one state after another.
class NaivePlayer {
 public:
  NaivePlayer(const Trace& trace, predict::Branches branches);

  // Pairs of conflicting accesses that are next in some state that can be reached.
  std::set<std::pair<uint32_t, uint32_t>> races();
  // Acquisitions that wait for each other in a circle, in some state; sorted.
  std::set<std::vector<uint32_t>> deadlocks();
  // Waits that can begin when all notifications have been, one at least, that can be without what
  // their threads do later.
  std::set<uint32_t> lost();
  // Accesses that, as the last event of some order, have a conflict on a cycle of units, which is
  // of conflicts and program order; `news`: of two units that had no order. What the last event
  // reads is free, and what the one before it reads if that is of another thread.
  struct Closing {
    std::set<uint32_t> all;
    std::set<uint32_t> news;
  };
  Closing closing(const UnitTable& units);
  // Whether the events can happen in this order, nothing after them.
  bool allows(const std::vector<uint32_t>& order) const;

 private:
  struct State {
    std::vector<uint32_t> done;  // of each thread
    std::vector<int> last;       // write to each variable, by address; -1: none
    std::vector<bool> strayed;   // threads whose reads since the last branch saw other writes
    bool operator<(const State& other) const {
      return std::tie(done, last, strayed) < std::tie(other.done, other.last, other.strayed);
    }
  };

  struct UnitState;
  struct Earlier {  // units, a bit each
    uint64_t all = 0;
    uint64_t news = 0;
  };
  void close_all(const UnitState& state, const UnitTable& units, int other_than,
                 Closing* found) const;
  Earlier play(UnitState& state, uint32_t event, const UnitTable& units) const;

  bool started(const State& state, uint32_t event) const;
  struct Holds {
    int exclusive = 0;
    int shared = 0;
  };
  Holds holds(const State& state, uint32_t thread, uint64_t lock) const;
  bool keeps_out(const State& state, uint32_t thread, const Event& event) const;
  bool may_take(const State& state, const Event& event) const;
  template <typename Visit>
  void visit_states(const Visit& visit) const;
  bool enabled(const State& state, uint32_t event) const;
  bool step(State& state, uint32_t event) const;
  State start() const;

  const Trace& trace_;
  predict::Branches branches_;
  std::vector<std::vector<uint32_t>> threads_;
  std::vector<uint32_t> place_;  // in its thread
  std::vector<int> source_;      // of a read, the write that it saw
};

}  // namespace tsomon::testing
