// Is a history linearizable?
//
// Purpose     What `tsomon check --property linearizability` says of one history: every object, and
//             every key of sets and maps, is judged by itself (operation.h); a history is
//             linearizable iff all are.
// Verdicts    kViolation: one of them has no linearization. kInconclusive: none is known to be a
//             violation, and a bound was hit. kLinearizable otherwise.
// Evidence    A violation comes with the smallest part of it that proves it (shrink.h), of the
//             first part that is one. A linearization, if asked for, was replayed (validate.h).
// Initially   A register holds 0, or nil where the format or a value says so; a counter 0; a map
//             nothing, which reads as nil or an empty text; a key of kv-append an empty text; the
//             others hold nothing, and a mutex is free. A priority queue gives the largest first,
//             names with "min" the smallest.
// Errors      Names, arguments or results that no object has (kMalformed, with the line).
// Misses      Sizes, iteration and other operations that look at more than a value or a key.
// Bounds      Work and memory of each part's search.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "offline/linearizability/operation.h"
#include "offline/linearizability/search.h"
#include "tso/model/history.h"
#include "tso/support/result.h"

namespace tsomon::linearizability {

class SequentialObject;

struct Options {
  std::optional<ObjectKind> object;  // of all; nothing: as declared, or by the operations' names
  SearchBounds bounds;
  bool want_linearization = false;
  SequentialObject* specification = nullptr;  // of all objects, instead (sequential.h)
};

enum class Verdict : uint8_t { kLinearizable, kViolation, kInconclusive };
const char* verdict_name(Verdict verdict);

struct Violation {
  std::string object;  // its name in the history; may be empty
  ObjectKind kind = ObjectKind::kRegister;
  std::optional<HistoryValue> key;
  std::vector<uint32_t> operations;  // by call; indices in History::operations
  std::vector<bool> without_return;  // of these, whose return is not needed
  std::vector<bool> perhaps_before;  // whose effect may be part of what the cell held at first
  std::vector<uint32_t> lines;       // of their calls and returns, ascending
  bool smallest = true;              // no bound was hit on the way
};

struct Report {
  Verdict verdict = Verdict::kInconclusive;
  uint64_t operations = 0;
  uint64_t pending = 0;
  uint64_t failed = 0;
  uint64_t parts = 0;
  std::vector<ObjectKind> kinds;  // by object
  std::optional<Violation> violation;
  // Indices in History::operations; empty if not asked for, and if none was found within bounds.
  std::vector<uint32_t> linearization;
  std::vector<std::string> notes;
};

Result<Report> check(const History& history, const Options& options);

}  // namespace tsomon::linearizability
