// Per-thread sequences of memory operations with values: what a consistency check is asked about.
//
// Source      Theory section 5.3 and 8; the question is Gibbons and Korach's "verifying sequential
//             consistency" and its twin for TSO.
// Purpose     Reduces a trace to what decides whether its values can be explained: no time stamps,
//             no units, only program order, values, and what fork and join order.
// Locks       acq(l) is a locked operation that reads 0 and writes 1, rel(l) a store of 0 (with
//             fenced_release a locked operation): exclusion is a question of values. What a thread
//             acquires again while it holds the lock, or releases before the last time, is a fence.
// Final       values are loads of one more thread, after every store.
// Weakened    What cannot be expressed is left out, which only allows more executions: values of
//             locations that are accessed with different ranges, and reader locks. `weakened` says
//             so: then "no execution" is still right, "there is one" is not known.
// Complexity  O(n). Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tso/model/trace.h"
#include "tso/order/event_graph.h"

namespace tsomon {

struct Operation {
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  enum class Kind : uint8_t {
    kLoad,  // without a location: a join, which orders like a load and reads nothing
    kStore,
    kLocked,
    kFence,
  };

  Kind kind = Kind::kFence;
  uint32_t thread = 0;
  uint32_t position = 0;  // in its thread
  uint32_t location = kNone;
  uint32_t event = kNone;  // in the trace; kNone: a final value
  std::optional<uint64_t> read;
  std::optional<uint64_t> written;

  bool loads() const { return kind != Kind::kStore; }  // ordered like a load
  bool stores() const { return kind != Kind::kLoad; }  // ordered like a store
  bool is_read() const { return kind == Kind::kLoad || kind == Kind::kLocked; }
  bool is_write() const { return kind == Kind::kStore || kind == Kind::kLocked; }
};

struct ValueProblem {
  struct ThreadStores {
    uint32_t thread = 0;
    std::vector<uint32_t> stores;  // operations that write the location, in program order
  };
  struct Location {
    std::optional<uint64_t> initial;  // nothing: not known
    std::vector<ThreadStores> writers;
  };

  std::vector<Operation> operations;
  std::vector<std::vector<uint32_t>> threads;  // operations of each, in program order
  std::vector<Location> locations;
  std::vector<Edge> order;  // of operations of different threads, whatever the model
  bool weakened = false;
  std::vector<std::string> notes;  // why

  // The newest store of the operation's own thread to its location before it; kNone: none.
  std::vector<uint32_t> own_store;

  // Stands for the initial value of a location where a store is named.
  uint32_t initial_store(uint32_t location) const {
    return static_cast<uint32_t>(operations.size()) + location;
  }
  bool is_initial(uint32_t store) const { return store >= operations.size(); }
  std::optional<uint64_t> value_of(uint32_t store) const {
    return is_initial(store) ? locations[store - operations.size()].initial
                             : operations[store].written;
  }
};

// `final_values`: what memory holds when everything has committed.
ValueProblem make_value_problem(const Trace& trace, bool fenced_release,
                                const std::vector<InitialValue>& final_values = {});

}  // namespace tsomon
