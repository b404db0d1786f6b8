// Values along a path, known or not: equal ones are recognised, and what becomes known of one
// settles the others, forwards and backwards.
//
// Purpose     What a register or a word of memory holds is a term: a node plus a constant. Node 0
//             is zero, so terms of it are known values. Other nodes are values that nothing tells
//             (leaves) or results of operations on terms.
// Facts       A sample, the target of an indirect branch or a comparison that a branch was taken on
//             says that two terms are equal. learn() carries that into operands as far as the
//             operations can be reversed, solve() to a fixed point, as in REPT (OSDI 2018).
// Contract    What is known is what the processor had, provided that the facts are true. Of facts
//             that contradict each other the first counts.
// Complexity  make: O(1). solve: O(nodes), as often as something new came out.
// Memory      64 bytes a node; forget_before() drops the definitions of old ones.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
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

struct Term {
  uint64_t offset = 0;
  uint32_t node = 0;
  uint32_t via = 0;

  bool known() const { return node == 0; }
  Term plus(uint64_t more) const { return {offset + more, node, via}; }
};

class Terms {
 public:
  struct Node {
    Term a;
    Term b;
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

  Terms() { clear(); }
  void clear() {
    nodes_.assign(1, {});
    nodes_[0].known = true;
  }

  Term leaf(unsigned size) {
    add().most = most_of(size);
    return last(0);
  }
  static Term constant(uint64_t value) { return {value, 0, 0}; }

  // The term with what has been found out since; settled(): also of named nodes.
  Term resolve(Term term) const {
    return term.node != 0 && nodes_[term.node].named ? term : settled(term);
  }
  Term settled(Term term) const {
    if (term.node != 0 && nodes_[term.node].known) {
      const Node& node = nodes_[term.node];
      return {term.offset + node.value, 0, term.via | node.via};
    }
    return term;
  }
  // The result of an operation of `size` bytes, zero-extended. kMoveSigned: of an operand of
  // `operand` bytes.
  Term make(x86::Operation operation, Term a, Term b, unsigned size, unsigned operand = 0) {
    if ((a.node | b.node) == 0) {  // the usual ones at once
      const uint64_t mask = most_of(size);
      switch (operation) {
        case x86::Operation::kAdd:
          return {(a.offset + b.offset) & mask, 0, a.via | b.via};
        case x86::Operation::kSub:
          return {(a.offset - b.offset) & mask, 0, a.via | b.via};
        case x86::Operation::kAnd:
          return {a.offset & b.offset & mask, 0, a.via | b.via};
        case x86::Operation::kOr:
          return {(a.offset | b.offset) & mask, 0, a.via | b.via};
        case x86::Operation::kXor:
          return {(a.offset ^ b.offset) & mask, 0, a.via | b.via};
        case x86::Operation::kMultiply:
          return {a.offset * b.offset & mask, 0, a.via | b.via};
        default:
          break;
      }
    }
    return make_other(operation, a, b, size, operand);
  }
  // The low bytes.
  Term cut(Term term, unsigned size);

  // Both are the same value.
  void equal(Term a, Term b);
  // The low bytes of a term.
  void learn(Term term, uint64_t value, unsigned size, uint32_t via);
  // What is said relative to the node stays so.
  void name(uint32_t node) { nodes_[node].named = true; }
  void bound(Term term, uint64_t most);
  // Until nothing new comes out.
  void solve();
  bool news() const { return news_; }

  const Node& node(uint32_t at) const { return nodes_[at]; }
  size_t size() const { return nodes_.size(); }
  // Makes leaves of the nodes before `first` and drops those that nobody uses. `each_term(f)`
  // applies f to every Term& that is in use outside; it is called twice.
  template <typename EachTerm>
  void forget_before(size_t first, EachTerm each_term);

  static uint64_t most_of(unsigned size) {
    return size >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
  }

 private:
  Term make_other(x86::Operation operation, Term a, Term b, unsigned size, unsigned operand);

  struct Equation {
    Term a;
    Term b;
  };

  Node& add() { return nodes_.emplace_back(); }
  // Of the last node.
  Term last(uint32_t via) const { return {0, static_cast<uint32_t>(nodes_.size() - 1), via}; }
  bool settle(Term term, uint64_t value, unsigned size, uint32_t via);
  void reverse(uint32_t at);
  void forward(Node& node) const;

  std::vector<Node> nodes_;
  std::vector<Equation> equations_;
  std::vector<uint32_t> settled_;  // not yet reversed
  bool news_ = false;
  size_t lowest_ = 0;  // of the nodes that are news
};

template <typename EachTerm>
void Terms::forget_before(size_t first, EachTerm each_term) {
  std::vector<uint32_t> renamed(nodes_.size(), 0);
  const auto inside = [&](auto apply) {
    for (size_t i = first; i < nodes_.size(); ++i) {
      apply(nodes_[i].a);
      apply(nodes_[i].b);
    }
    for (Equation& equation : equations_) {
      apply(equation.a);
      apply(equation.b);
    }
  };
  const auto mark = [&](Term& term) { renamed[term.node] = 1; };
  each_term(mark);
  inside(mark);
  renamed[0] = 0;
  size_t kept = 1;
  size_t old = 1;
  for (size_t i = 1; i < nodes_.size(); ++i) {
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
  first = old;
  const auto rename = [&](Term& term) { term.node = renamed[term.node]; };
  each_term(rename);
  inside(rename);
}

}  // namespace tsomon::pt
