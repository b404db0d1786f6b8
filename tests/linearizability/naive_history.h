// Sequential objects written down once more, and linearizability by trying every order: the twin
// of offline/linearizability, from operations as their names say, without its steps and parts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "offline/linearizability/operation.h"
#include "tso/model/history.h"

namespace tsomon::testing {

using linearizability::ObjectKind;

// The state of one object of any kind; `run` gives what an operation returns.
struct NaiveObject {
  ObjectKind kind = ObjectKind::kRegister;
  HistoryValue value = 0;                        // of what holds one
  std::map<HistoryValue, HistoryValue> entries;  // of sets and maps
  std::map<HistoryValue, std::string> texts;     // of kv-append
  std::vector<HistoryValue> values;              // of containers, front to back

  // Nothing: the operation waits (a lock that is taken, an unlock of a free one).
  std::optional<HistoryValue> run(History* history, const HistoryOperation& operation);
};

// Whether some order of the operations, with some of the pending ones, gives the results. `start`:
// what an object that holds one value begins with.
bool naively_linearizable(History* history, ObjectKind kind, HistoryValue start);

// Whether this order does; every operation that returned has to be in it.
bool naively_allowed(History* history, ObjectKind kind, HistoryValue start,
                     const std::vector<uint32_t>& order);

// A random history of `operations` operations in the format `hist`. `distinct`: no value is put in
// twice. `faults`: in how many of ten operations another result than the right one is written.
std::string random_history(uint64_t seed, ObjectKind kind, int operations, bool distinct,
                           int faults);

}  // namespace tsomon::testing
