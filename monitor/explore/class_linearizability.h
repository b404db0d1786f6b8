// Whether every execution of a class is linearizable.
//
// Purpose     `tsomon explore --property linearizability`: the program says where operations of
//             its objects begin and end (tsomon_call, tsomon_return). The orders in time that a
//             class leaves open (offline/explore/real_time_orders.h) are histories, each of which
//             offline/linearizability judges.
// TSO         An operation returns when its thread says so, though its stores may still be in the
//             buffer: others may call later and not see them. That is not linearizable.
// Bounds      kMostOrders orders of a class, and those of the search for a linearization; past
//             either it is said to be open.
// Memory      The histories that were judged, at most kMostKept.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "offline/explore/execution_graph.h"
#include "offline/linearizability/check.h"

namespace tsomon::explore {

struct BadOrder {
  std::string object;
  std::vector<std::string> history;  // the smallest part that has no linearization
  std::string text;                  // the same without the threads
  std::vector<uint32_t> lines;       // of its calls, among those of the whole history, from 1
  std::vector<uint64_t> places;      // the same, in the program
  std::vector<Choice> schedule;      // of an execution that has it
};

class ClassLinearizability {
 public:
  static constexpr uint64_t kMostOrders = 100'000;
  static constexpr size_t kMostKept = 200'000;

  // `specification` may be nullptr, and has to outlive this.
  ClassLinearizability(std::optional<linearizability::ObjectKind> object,
                       linearizability::SequentialObject* specification) {
    options_.object = object;
    options_.specification = specification;
  }

  // Nothing: every execution of the class is linearizable, or why not all are known to be is in
  // open().
  std::optional<BadOrder> judge(const Graph& graph, Model model, const std::vector<Mark>& marks,
                                const std::function<std::string(uint32_t)>& label);
  // Why some execution is not judged; empty: all are.
  const std::string& open() const { return open_; }
  // Operations were called.
  bool any() const { return any_; }

 private:
  struct Judged {
    bool bad = false;
    BadOrder order;  // without places and schedule
  };
  const Judged& judge_history(const std::string& text);

  linearizability::Options options_;
  std::unordered_map<std::string, Judged> judged_;
  std::string open_;
  bool any_ = false;
};

}  // namespace tsomon::explore
