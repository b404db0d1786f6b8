// Histories: which operations of concurrent objects were called and returned, in which order.
//
// Purpose     The common currency of the readers of histories (decoders/histories) and of the
//             checkers of linearizability (offline/linearizability).
// Order       `call` and `ret` are positions: dense, one per event, in the order of time. An
//             operation comes before another when its `ret` is below the other's `call`; otherwise
//             the two are concurrent. Lines are for people, positions are for checkers.
// Outcomes    A pending operation has no return: it may have taken effect at any time after its
//             call, or never. A failed one is known not to have taken effect.
// Values      64 bits: numbers as they are, `nil` (also "nothing there"), everything else a text
//             of History::texts. Two values are equal iff their bits are.
// Memory      72 bytes an operation, and every distinct text once.
// Thread-safety: const access is safe; building is not.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tso/support/interner.h"

namespace tsomon {

using HistoryValue = int64_t;

namespace history_values {
inline constexpr HistoryValue kNil = std::numeric_limits<int64_t>::min();
inline constexpr HistoryValue kFirstText = kNil + 1;  // the id of the text is added
inline constexpr HistoryValue kTrue = kFirstText;
inline constexpr HistoryValue kFalse = kFirstText + 1;
inline constexpr HistoryValue kOk = kFirstText + 2;
inline constexpr HistoryValue kEmptyText = kFirstText + 3;
inline constexpr HistoryValue kMaxNumber = int64_t{1} << 62;  // above, and below minus this: text

inline bool is_text(HistoryValue value) { return value >= kFirstText && value < -kMaxNumber; }
inline bool is_number(HistoryValue value) { return value >= -kMaxNumber && value <= kMaxNumber; }
}  // namespace history_values

enum class OperationOutcome : uint8_t { kPending, kReturned, kFailed };

struct HistoryOperation {
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

  std::array<HistoryValue, 3> arguments{};
  std::array<HistoryValue, 2> results{};
  uint32_t process = 0;  // in History::processes
  uint32_t object = 0;   // in History::objects
  uint32_t name = 0;     // in History::names
  uint32_t call = 0;
  uint32_t ret = kNever;
  uint32_t call_line = 0;    // from 1
  uint32_t return_line = 0;  // 0: none
  uint8_t argument_count = 0;
  uint8_t result_count = 0;
  OperationOutcome outcome = OperationOutcome::kPending;
};
static_assert(sizeof(HistoryOperation) == 72, "operations are stored by the million");

struct History {
  History();

  std::vector<HistoryOperation> operations;  // by `call`, ascending
  Interner processes;
  Interner objects;
  Interner names;  // of operations, as the input spells them
  Interner texts;
  std::string declared_object;  // what the input says that its objects are; may be empty
  uint32_t positions = 0;       // events
  // The format repeats the arguments in the place of results where there are no results.
  bool echoes_arguments = false;
  // Objects start with `nil`; otherwise with 0 where they hold numbers.
  bool starts_nil = false;

  // Decimal numbers, nil and its synonyms (null, none, empty), texts; quotes are taken off, and
  // what they enclose is a text.
  HistoryValue value_of(std::string_view text);
  HistoryValue text_value(std::string_view text);
  std::string text_of(HistoryValue value) const;  // for people
  std::string raw_text(HistoryValue value) const;
  // "push(3) = 4", "pop() pending".
  std::string describe(const HistoryOperation& operation) const;
};

}  // namespace tsomon
