// The operations of text traces, found by one multiplication and one compare.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "decoders/std/scan.h"
#include "tso/model/cancelled_units.h"
#include "tso/model/event.h"

namespace tsomon::std_trace {

enum class OpForm : uint8_t {
  kLocation,    // op(location), perhaps with values
  kThread,      // op(thread)
  kText,        // op(text)
  kBegin,       // begin, begin(label), begin(label;sets)
  kEnd,         // end; RAPID's end(text) too; cancel
  kBare,        // op without operand
  kObject,      // op(0xADDRESS+SIZE), and of a block op(0xADDRESS=SIZE)
  kAddress,     // op(0xADDRESS), op(0xADDRESS=SIZE)
  kAnyOperand,  // op(text), text without a meaning here
};

struct Op {
  uint64_t word = 0;  // the name's letters, padded with zeros
  EventKind kind = EventKind::kFence;
  OpForm form = OpForm::kBare;
  bool reads = false;   // may carry the value read
  bool writes = false;  // may carry the value written
};

constexpr uint64_t op_word(std::string_view name) {
  uint64_t word = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    word |= uint64_t{static_cast<unsigned char>(name[i])} << (8 * i);
  }
  return word;
}

// RAPID's enter, exit and dummy mark control flow in methods: as branches they order nothing, and
// they keep their place in the numbering of events.
inline constexpr std::array kOps = {
    Op{op_word("r"), EventKind::kRead, OpForm::kLocation, true, false},
    Op{op_word("w"), EventKind::kWrite, OpForm::kLocation, false, true},
    Op{op_word("rmw"), EventKind::kReadModifyWrite, OpForm::kLocation, true, true},
    Op{op_word("acq"), EventKind::kAcquire, OpForm::kLocation},
    Op{op_word("rel"), EventKind::kRelease, OpForm::kLocation},
    Op{op_word("racq"), EventKind::kAcquireShared, OpForm::kLocation},
    Op{op_word("rrel"), EventKind::kReleaseShared, OpForm::kLocation},
    Op{op_word("wait"), EventKind::kWait, OpForm::kLocation},
    Op{op_word("try"), EventKind::kTry, OpForm::kLocation},
    Op{op_word("notify"), EventKind::kNotify, OpForm::kLocation},
    Op{op_word("send"), EventKind::kSend, OpForm::kLocation},
    Op{op_word("receive"), EventKind::kReceive, OpForm::kLocation},
    Op{op_word("request"), EventKind::kRequest, OpForm::kLocation},
    Op{op_word("post"), EventKind::kPost, OpForm::kLocation},
    Op{op_word("take"), EventKind::kTake, OpForm::kLocation},
    Op{op_word("count"), EventKind::kCount, OpForm::kLocation, false, true},
    Op{op_word("destroy"), EventKind::kDestroy, OpForm::kLocation},
    Op{op_word("fork"), EventKind::kFork, OpForm::kThread},
    Op{op_word("join"), EventKind::kJoin, OpForm::kThread},
    Op{op_word("begin"), EventKind::kUnitBegin, OpForm::kBegin},
    Op{op_word("end"), EventKind::kUnitEnd, OpForm::kEnd},
    Op{op_word("cancel"), kUnitCancel, OpForm::kEnd},
    Op{op_word("fence"), EventKind::kFence, OpForm::kBare},
    Op{op_word("branch"), EventKind::kBranch, OpForm::kBare},
    Op{op_word("call"), EventKind::kCall, OpForm::kText},
    Op{op_word("ret"), EventKind::kReturn, OpForm::kText},
    Op{op_word("alloc"), EventKind::kAllocate, OpForm::kObject, false, true},
    Op{op_word("free"), EventKind::kFree, OpForm::kAddress, false, true},
    Op{op_word("enter"), EventKind::kBranch, OpForm::kAnyOperand},
    Op{op_word("exit"), EventKind::kBranch, OpForm::kAnyOperand},
    Op{op_word("dummy"), EventKind::kBranch, OpForm::kAnyOperand},
};

namespace op_table {
inline constexpr unsigned kBits = 6;
constexpr size_t slot(uint64_t word, uint64_t multiplier) {
  return (word * multiplier) >> (64 - kBits);
}
constexpr bool collides(uint64_t multiplier) {
  uint64_t used = 0;
  for (const Op& op : kOps) {
    const uint64_t bit = uint64_t{1} << slot(op.word, multiplier);
    if ((used & bit) != 0) {
      return true;
    }
    used |= bit;
  }
  return false;
}
constexpr uint64_t find_multiplier() {
  uint64_t multiplier = 0x9E3779B97F4A7C15ULL;
  while (collides(multiplier)) {
    multiplier = (multiplier * 6364136223846793005ULL + 1442695040888963407ULL) | 1U;
  }
  return multiplier;
}
inline constexpr uint64_t kMultiplier = find_multiplier();
constexpr std::array<Op, size_t{1} << kBits> make() {
  std::array<Op, size_t{1} << kBits> table{};
  for (const Op& op : kOps) {
    table[slot(op.word, kMultiplier)] = op;
  }
  return table;
}
inline constexpr std::array<Op, size_t{1} << kBits> kTable = make();
}  // namespace op_table

// Null for a word that is no operation.
inline const Op* find_op(uint64_t word) {
  const Op& op = op_table::kTable[op_table::slot(word, op_table::kMultiplier)];
  return op.word == word && word != 0 ? &op : nullptr;
}

// The second field of a line.
struct OpField {
  std::string_view all;
  const Op* op = nullptr;  // null: it names none
  bool has_operand = false;
  bool bracketed = true;     // its operand, if it has one
  std::string_view operand;  // what stands between the brackets
};

// Eight bytes from `begin` are readable.
[[gnu::always_inline]] inline OpField op_field(const char* begin, const char* end) {
  OpField field;
  field.all = {begin, static_cast<size_t>(end - begin)};
  const size_t length = field.all.size();
  const uint64_t word = load8(begin);
  const size_t name = std::min(leading_letters(word), length);
  field.op = name < 8 ? find_op(word & ((uint64_t{1} << (8 * name)) - 1)) : nullptr;
  field.has_operand = name != length;
  if (!field.has_operand) {
    field.operand = field.all.substr(length);
    return field;
  }
  field.bracketed = length >= name + 2 && begin[name] == '(' && end[-1] == ')';
  field.operand = field.bracketed ? field.all.substr(name + 1, length - name - 2) : "";
  return field;
}

}  // namespace tsomon::std_trace
