// Operations as the checkers take them: what the names of a history mean for an object.
//
// Purpose     The sequential specifications know few steps. All objects that hold one value (a
//             register, a counter, one key of a map or set, a mutex) share those of a cell; all
//             that hold many share those of a container. This is where names, arguments and results
//             become steps, and where it shows that a history means nothing for an object.
// Partitions  Objects are independent, and so are the keys of sets, maps and kv-append: a history
//             is linearizable iff each part is (Herlihy and Wing, TOPLAS 1990, locality; Horn and
//             Kroening, FORTE 2015, P-compositionality).
// Dropped     Failed operations; pending ones that only look.
// Pending     A pending operation is optional, and its result is unknown.
// Complexity  O(operations), plus a sort by key. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tso/model/history.h"
#include "tso/support/result.h"

namespace tsomon::linearizability {

enum class ObjectKind : uint8_t {
  kRegister,
  kCasRegister,
  kCounter,
  kSet,
  kMap,
  kKvAppend,
  kQueue,
  kStack,
  kPriorityQueue,
  kDeque,
  kMutex,
  kSequential,  // what a specification that is run says (sequential.h); it has no name to ask for
};
inline constexpr int kObjectKinds = 11;  // without it

const char* kind_name(ObjectKind kind);
std::optional<ObjectKind> object_kind(std::string_view name);

enum class Step : uint8_t {
  // Of a cell, whose value is s.
  kRead,    // s is a
  kNot,     // s is not a
  kWrite,   // s becomes a
  kCas,     // s is a and becomes b
  kUnless,  // s is not a and becomes b
  kAdd,     // s grows by a
  kAppend,  // text a is put to the end of s
  // Of a container; values are pushed to and taken from one of two ends. A priority queue has one
  // way in (kPushBack), its largest value in front and its smallest at the back.
  kPushFront,
  kPushBack,
  kPopFront,
  kPopBack,
  kPeekFront,
  kPeekBack,
  kIsEmpty,  // nothing is in it: what a pop or a peek without a value has seen
};

// Looks and changes nothing, wherever it takes effect.
inline constexpr bool is_observer(Step step) {
  return step == Step::kRead || step == Step::kNot || step == Step::kPeekFront ||
         step == Step::kPeekBack || step == Step::kIsEmpty;
}
inline constexpr bool is_push(Step step) {
  return step == Step::kPushFront || step == Step::kPushBack;
}
inline constexpr bool is_pop(Step step) {
  return step == Step::kPopFront || step == Step::kPopBack;
}
inline constexpr bool is_container(ObjectKind kind) {
  return kind == ObjectKind::kQueue || kind == ObjectKind::kStack ||
         kind == ObjectKind::kPriorityQueue || kind == ObjectKind::kDeque;
}

struct Op {
  HistoryValue a = 0;
  HistoryValue b = 0;
  uint32_t call = 0;
  uint32_t ret = HistoryOperation::kNever;
  uint32_t source = 0;  // index in History::operations
  Step step = Step::kRead;
  bool pending = false;  // of a pop: `a` is not known either
};
static_assert(sizeof(Op) == 32, "operations are stored by the million");

// The operations of one object, or of one key of it, by `call`.
struct Part {
  ObjectKind kind = ObjectKind::kRegister;
  uint32_t object = 0;
  std::optional<HistoryValue> key;
  HistoryValue initial = 0;  // of a cell
  std::vector<Op> ops;
};

struct Parts {
  std::vector<Part> parts;
  std::vector<ObjectKind> kinds;  // by object
  uint64_t pending = 0;
  uint64_t failed = 0;
};

// The operation as it is without its return: nothing when it then says nothing.
std::optional<Op> as_pending(const History& history, ObjectKind kind, const Op& op);

// `kind`: of all objects; nothing: as the history declares, or as the names say. An error names the
// line of an operation that means nothing for the object.
Result<Parts> parts_of(const History& history, std::optional<ObjectKind> kind);

}  // namespace tsomon::linearizability
