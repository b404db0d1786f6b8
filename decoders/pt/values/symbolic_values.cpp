#include "decoders/pt/values/symbolic_values.h"

#include <algorithm>
#include <optional>

#include "decoders/x86/dataflow.h"

namespace tsomon::pt {

using x86::Operation;

SymbolicValue SymbolicValues::known_other(Operation operation, SymbolicValue a, SymbolicValue b,
                                          unsigned size, unsigned operand) {
  const auto value = x86::combine(operation, a.offset, b.offset,
                                  operation == Operation::kMoveSigned ? operand : size);
  return value ? SymbolicValue{*value & most_of(size), 0, a.via | b.via} : leaf(size);
}

void SymbolicValues::equal(SymbolicValue a, SymbolicValue b) {
  a = settled(a);
  b = settled(b);
  if (b.known()) {
    learn(a, b.offset, 8, b.via);
  } else if (a.known()) {
    learn(b, a.offset, 8, a.via);
  } else if (a.node != b.node) {
    equations_.push_back({a, b});
  }
}

void SymbolicValues::learn(SymbolicValue term, uint64_t value, unsigned size, uint32_t via) {
  if (!settle(term, value, size, via) || nodes_[term.node].operation == Operation::kClobber) {
    return;
  }
  // Chains are as long as the path: no recursion.
  settled_.push_back(term.node);
  while (!settled_.empty()) {
    const uint32_t at = settled_.back();
    settled_.pop_back();
    reverse(at);
  }
}

bool SymbolicValues::settle(SymbolicValue term, uint64_t value, unsigned size, uint32_t via) {
  if (term.node == 0 || nodes_[term.node].known) {
    return false;
  }
  Node& node = nodes_[term.node];
  uint64_t found = value - term.offset;
  if (size < 8) {
    if (node.most > most_of(size)) {
      return false;  // the rest is not known
    }
    found &= most_of(size);
  }
  if (found > node.most) {
    return false;  // contradicts what is known
  }
  node.value = found;
  node.known = true;
  node.via = static_cast<uint8_t>(node.via | via | term.via | kViaFact);
  if (node.used) {
    lowest_ = news_ ? std::min<size_t>(lowest_, term.node) : term.node;
    news_ = true;
  }
  return true;
}

void SymbolicValues::bound(SymbolicValue term, uint64_t most) {
  if (term.node != 0 && term.offset == 0) {
    nodes_[term.node].most = std::min(nodes_[term.node].most, most);
  }
}

std::optional<uint64_t> SymbolicValues::low_bits(SymbolicValue term, uint64_t mask,
                                                 unsigned depth) const {
  constexpr unsigned kDeepest = 6;
  term = settled(term);
  if (term.known()) {
    return term.offset & mask;
  }
  const Node& node = nodes_[term.node];
  if (depth == kDeepest || node.size < 8) {
    return std::nullopt;
  }
  const SymbolicValue b = settled(node.b);
  std::optional<uint64_t> low;
  if (node.operation == Operation::kAdd || node.operation == Operation::kSub) {
    const auto left = low_bits(node.a, mask, depth + 1);
    const auto right = left ? low_bits(b, mask, depth + 1) : std::nullopt;
    if (right) {
      low = node.operation == Operation::kAdd ? *left + *right : *left - *right;
    }
  } else if (node.operation == Operation::kAnd && b.known()) {
    if ((b.offset & mask) == 0) {
      low = 0;
    } else if (const auto left = low_bits(node.a, mask, depth + 1)) {
      low = *left & b.offset;
    }
  } else if (node.operation == Operation::kShiftLeft && b.known() &&
             (mask >> (b.offset & 63U)) == 0) {
    low = 0;
  }
  return low ? std::optional((*low + term.offset) & mask) : std::nullopt;
}

std::optional<std::pair<uint64_t, uint64_t>> SymbolicValues::bounds(SymbolicValue term) const {
  const auto range = bounds(term, 0);
  return range.first == 0 && range.second == ~uint64_t{0} ? std::nullopt : std::optional(range);
}

std::pair<uint64_t, uint64_t> SymbolicValues::bounds(SymbolicValue term, unsigned depth) const {
  constexpr unsigned kDeepest = 6;
  constexpr std::pair<uint64_t, uint64_t> kAll{0, ~uint64_t{0}};
  term = settled(term);
  if (term.known()) {
    return {term.offset, term.offset};
  }
  const Node& node = nodes_[term.node];
  std::pair<uint64_t, uint64_t> range{0, node.most};
  const SymbolicValue b = settled(node.b);
  if (depth < kDeepest && node.result == 8) {
    if (node.operation == Operation::kShiftLeft && b.known()) {
      const auto a = bounds(node.a, depth + 1);
      const unsigned shift = b.offset & 63U;
      if (a.second << shift >> shift == a.second) {
        range = {a.first << shift, std::min(range.second, a.second << shift)};
      }
    } else if (node.operation == Operation::kAdd) {
      const auto a = bounds(node.a, depth + 1);
      const auto c = bounds(node.b, depth + 1);
      if (c.second <= ~uint64_t{0} - a.second) {
        range = {a.first + c.first, std::min(range.second, a.second + c.second)};
      }
    }
  }
  // The constant may go around, but both ends then do.
  range.first += term.offset;
  range.second += term.offset;
  return range.first <= range.second ? range : kAll;
}

// What a known result says of the operands.
void SymbolicValues::reverse(uint32_t at) {
  Node& node = nodes_[at];
  const SymbolicValue a = settled(node.a);
  const SymbolicValue b = settled(node.b);
  const uint32_t via = node.via | (a.known() ? a.via : b.via);
  const unsigned size = node.size;
  node.done = a.known() && b.known();
  const auto tell = [this](SymbolicValue term, uint64_t value, unsigned bytes, uint32_t by) {
    if (settle(term, value, bytes, by)) {
      settled_.push_back(term.node);
    }
  };
  switch (node.operation) {
    case Operation::kMove:
    case Operation::kMoveSigned:
      tell(a, node.value, size, via);
      return;
    case Operation::kNot:
      tell(a, ~node.value, size, via);
      return;
    case Operation::kNegate:
      tell(a, 0 - node.value, size, via);
      return;
    case Operation::kSwapBytes:
      if (const auto back = x86::combine(node.operation, node.value, 0, size)) {
        tell(a, *back, size, via);
      }
      return;
    case Operation::kAdd:
      if (b.known()) {
        tell(a, node.value - b.offset, size, via);
      } else if (a.known()) {
        tell(b, node.value - a.offset, size, via);
      }
      return;
    case Operation::kSub:
      if (b.known()) {
        tell(a, node.value + b.offset, size, via);
      } else if (a.known()) {
        tell(b, a.offset - node.value, size, via);
      }
      return;
    case Operation::kXor:
      if (b.known()) {
        tell(a, node.value ^ b.offset, size, via);
      } else if (a.known()) {
        tell(b, node.value ^ a.offset, size, via);
      }
      return;
    case Operation::kRotateLeft:
    case Operation::kRotateRight:
      if (b.known()) {
        const auto back =
            x86::combine(node.operation == Operation::kRotateLeft ? Operation::kRotateRight
                                                                  : Operation::kRotateLeft,
                         node.value, b.offset, size);
        tell(a, *back, size, via);
      }
      return;
    default:
      node.done = true;
      return;
  }
}

// Both operands are known.
void SymbolicValues::forward(Node& node) const {
  const SymbolicValue a = settled(node.a);
  const SymbolicValue b = settled(node.b);
  std::optional<uint64_t> value = a.offset;
  if (node.operation != Operation::kMove) {
    value = x86::combine(node.operation, a.offset, b.offset, node.size);
  }
  if (!value) {
    return;
  }
  node.value = *value & most_of(node.result);
  node.known = true;
  node.done = true;
  node.via = static_cast<uint8_t>(node.via | a.via | b.via | kViaFact);
}

void SymbolicValues::solve() {
  while (news_) {
    news_ = false;
    // Users have higher numbers.
    for (size_t i = lowest_ + 1; i < count_; ++i) {
      Node& node = nodes_[i];
      if (node.operation == Operation::kClobber || node.done) {
        continue;
      }
      if (node.known) {
        reverse(static_cast<uint32_t>(i));
        while (!settled_.empty()) {
          const uint32_t at = settled_.back();
          settled_.pop_back();
          reverse(at);
        }
      } else if (nodes_[node.a.node].known && nodes_[node.b.node].known) {
        forward(node);
      }
    }
    const auto open = std::exchange(equations_, {});
    for (const Equation& equation : open) {
      equal(equation.a, equation.b);
    }
  }
}

}  // namespace tsomon::pt
