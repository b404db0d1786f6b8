// Values along a path, known or not: equal ones are recognised, and what becomes known of one
// settles the others, forwards and backwards.
//
// Purpose     What a register or a word of memory holds is a term: a node plus a constant. Node 0
//             is zero, so terms of it are known values. Other nodes are values that nothing gives
//             (leaves) or results of operations on terms.
// Facts       A sample, the target of an indirect branch or a comparison that a branch was taken on
//             says that two terms are equal. learn() carries that into operands as far as the
//             operations can be reversed, solve() to a fixed point, as in REPT (OSDI 2018).
// Contract    What is known is what the processor had, provided that the facts are true. Where
//             facts contradict each other the first counts.
// Complexity  make: O(1). solve: O(nodes), as often as something new came out.
// Memory      64 bytes a node; forget_before() drops the definitions of old ones.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "decoders/x86/instruction.h"

namespace tsomon::pt {

// How a value was come by, beyond registers carried along; or-ed together.
enum Via : uint32_t {
  kViaFact = 1,    // a sample, a PTWRITE, a branch
  kViaStack = 2,   // words of the thread's stack
  kViaMemory = 4,  // other words of memory that may change
};

struct SymbolicValue {
  uint64_t offset = 0;
  uint32_t node = 0;
  uint32_t via = 0;

  bool known() const { return node == 0; }
  SymbolicValue plus(uint64_t more) const { return {offset + more, node, via}; }

  // In two words. A processor that reads a word of which the halves have just been written apart
  // waits until they have left its store buffer.
  static SymbolicValue read(const SymbolicValue& from) {
    std::array<uint64_t, 2> words;
    std::memcpy(words.data(), &from, sizeof words);
    return {words[0], static_cast<uint32_t>(words[1]), static_cast<uint32_t>(words[1] >> 32)};
  }
  void write(SymbolicValue& to) const {
    const std::array<uint64_t, 2> words{offset, uint64_t{via} << 32 | node};
    std::memcpy(static_cast<void*>(&to), words.data(), sizeof words);
  }
};
static_assert(sizeof(SymbolicValue) == 16 && std::is_trivially_copyable_v<SymbolicValue>);

class SymbolicValues {
 public:
  struct Node {
    SymbolicValue a;
    SymbolicValue b;
    uint64_t value = 0;
    uint64_t most = ~uint64_t{0};                         // the value is not above it
    x86::Operation operation = x86::Operation::kClobber;  // kClobber: a leaf; kMove: a, cut
    uint8_t size = 8;                                     // bytes of the operands
    uint8_t result = 8;                                   // bytes of the result
    uint8_t via = 0;
    bool known = false;
    bool used = false;   // by another node
    bool named = false;  // stays what it is in resolve()
    bool done = false;   // known, and says nothing more of its operands
  };

  SymbolicValues() { clear(); }
  void clear() {
    nodes_.assign(1, {});
    nodes_[0].known = true;
    count_ = 1;
  }

  SymbolicValue leaf(unsigned size) {
    add().most = most_of(size);
    return {0, count_ - 1, 0};
  }
  static SymbolicValue constant(uint64_t value) { return {value, 0, 0}; }

  // The term with what has been found out since; settled(): also of named nodes.
  SymbolicValue resolve(SymbolicValue term) const {
    return term.node == 0 || nodes_[term.node].named ? term : settled(term);
  }
  SymbolicValue settled(SymbolicValue term) const {
    if (term.node != 0 && nodes_[term.node].known) {
      const Node& node = nodes_[term.node];
      return {term.offset + node.value, 0, term.via | node.via};
    }
    return term;
  }
  // The result of an operation of `size` bytes, zero-extended. kMoveSigned: of an operand of
  // `operand` bytes.
  SymbolicValue make(x86::Operation operation, SymbolicValue a, SymbolicValue b, unsigned size,
                     unsigned operand = 0) {
    a = resolve(a);
    b = resolve(b);
    if ((a.node | b.node) == 0) {
      return known(operation, a, b, size, operand);
    }
    const uint32_t via = a.via | b.via;
    if (size == 8) {
      if (operation == x86::Operation::kAdd && (a.known() || b.known())) {
        return {a.offset + b.offset, a.node | b.node, via};
      }
      if (operation == x86::Operation::kSub && (b.known() || a.node == b.node)) {
        return {a.offset - b.offset, b.known() ? a.node : 0, via};
      }
    }
    nodes_[a.node].used = true;
    nodes_[b.node].used = true;
    Node& node = add();
    node.a = a;
    node.b = b;
    node.operation = operation;
    node.size = static_cast<uint8_t>(operation == x86::Operation::kMoveSigned ? operand : size);
    node.result = static_cast<uint8_t>(size);
    node.most = most_of(size);
    if (operation == x86::Operation::kAnd && b.known()) {
      node.most = node.most < b.offset ? node.most : b.offset;
    }
    return {0, count_ - 1, via};
  }
  // Likewise, of known operands.
  SymbolicValue known(x86::Operation operation, SymbolicValue a, SymbolicValue b, unsigned size,
                      unsigned operand = 0) {
    const uint64_t mask = most_of(size);
    const uint32_t via = a.via | b.via;
    switch (operation) {  // the usual ones at once
      case x86::Operation::kAdd:
        return {(a.offset + b.offset) & mask, 0, via};
      case x86::Operation::kSub:
        return {(a.offset - b.offset) & mask, 0, via};
      case x86::Operation::kAnd:
        return {a.offset & b.offset & mask, 0, via};
      case x86::Operation::kOr:
        return {(a.offset | b.offset) & mask, 0, via};
      case x86::Operation::kXor:
        return {(a.offset ^ b.offset) & mask, 0, via};
      case x86::Operation::kMultiply:
        return {a.offset * b.offset & mask, 0, via};
      default:
        return known_other(operation, a, b, size, operand);
    }
  }
  // The low bytes.
  SymbolicValue cut(SymbolicValue term, unsigned size) {
    term = resolve(term);
    if (term.known()) {
      return {term.offset & most_of(size), 0, term.via};
    }
    if (size >= 8 || (term.offset == 0 && nodes_[term.node].most <= most_of(size))) {
      return term;
    }
    nodes_[term.node].used = true;
    Node& node = add();
    node.a = term;
    node.operation = x86::Operation::kMove;
    node.size = static_cast<uint8_t>(size);
    node.result = node.size;
    node.most = most_of(size);
    return {0, count_ - 1, term.via};
  }

  // Both are the same value.
  void equal(SymbolicValue a, SymbolicValue b);
  // The low bytes of a term.
  void learn(SymbolicValue term, uint64_t value, unsigned size, uint32_t via);
  // What is said relative to the node stays so.
  void name(uint32_t node) { nodes_[node].named = true; }
  void bound(SymbolicValue term, uint64_t most);
  // The low bits of it that `mask` (one less than a power of two) has, where these are known.
  std::optional<uint64_t> low_bits(SymbolicValue term, uint64_t mask) const {
    return low_bits(term, mask, 0);
  }
  // The least and the greatest value that it may have; nothing where that is every value.
  std::optional<std::pair<uint64_t, uint64_t>> bounds(SymbolicValue term) const;
  // Until nothing new comes out.
  void solve();
  bool news() const { return news_; }

  const Node& node(uint32_t at) const { return nodes_[at]; }
  size_t size() const { return count_; }
  // Makes leaves of the nodes before `first` and drops those that nobody uses. `each_term(f)`
  // applies f to every SymbolicValue& that is in use outside; it is called twice.
  template <typename EachTerm>
  void forget_before(size_t first, EachTerm each_term);

  static uint64_t most_of(unsigned size) {
    return size >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
  }

 private:
  SymbolicValue known_other(x86::Operation operation, SymbolicValue a, SymbolicValue b,
                            unsigned size, unsigned operand);

  struct Equation {
    SymbolicValue a;
    SymbolicValue b;
  };

  Node& add() {
    ++count_;
    return nodes_.emplace_back();
  }
  std::pair<uint64_t, uint64_t> bounds(SymbolicValue term, unsigned depth) const;
  std::optional<uint64_t> low_bits(SymbolicValue term, uint64_t mask, unsigned depth) const;
  bool settle(SymbolicValue term, uint64_t value, unsigned size, uint32_t via);
  void reverse(uint32_t at);
  void forward(Node& node) const;

  std::vector<Node> nodes_;
  uint32_t count_ = 0;  // of nodes_
  std::vector<Equation> equations_;
  std::vector<uint32_t> settled_;  // not yet reversed
  bool news_ = false;
  size_t lowest_ = 0;  // of the nodes that are news
};

template <typename EachTerm>
void SymbolicValues::forget_before(size_t first, EachTerm each_term) {
  std::vector<uint32_t> renamed(count_, 0);
  const auto inside = [&](auto apply) {
    for (size_t i = first; i < count_; ++i) {
      apply(nodes_[i].a);
      apply(nodes_[i].b);
    }
    for (Equation& equation : equations_) {
      apply(equation.a);
      apply(equation.b);
    }
  };
  const auto mark = [&](SymbolicValue& term) { renamed[term.node] = 1; };
  each_term(mark);
  inside(mark);
  renamed[0] = 0;
  size_t kept = 1;
  size_t old = 1;
  for (size_t i = 1; i < count_; ++i) {
    if (i < first && renamed[i] == 0) {
      continue;
    }
    renamed[i] = static_cast<uint32_t>(kept);
    nodes_[kept] = nodes_[i];
    if (i < first) {
      nodes_[kept].operation = x86::Operation::kClobber;
      nodes_[kept].a = {};
      nodes_[kept].b = {};
      ++old;
    }
    ++kept;
  }
  nodes_.resize(kept);
  count_ = static_cast<uint32_t>(kept);
  first = old;
  const auto rename = [&](SymbolicValue& term) { term.node = renamed[term.node]; };
  each_term(rename);
  inside(rename);
}

}  // namespace tsomon::pt
