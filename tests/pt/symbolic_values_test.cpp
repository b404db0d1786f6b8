// SymbolicValues against the values that they stand for.
#include "decoders/pt/values/symbolic_values.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/x86/dataflow.h"

using namespace tsomon;
using pt::SymbolicValue;
using pt::SymbolicValues;
using x86::Operation;

namespace {

// Random operations on terms, each with the value that the processor would have had.
struct Twin {
  std::mt19937_64 random;
  SymbolicValues terms;
  std::vector<SymbolicValue> made;
  std::vector<uint64_t> values;

  explicit Twin(uint64_t seed) : random(seed) {}

  void add(SymbolicValue term, uint64_t value) {
    made.push_back(term);
    values.push_back(value);
  }

  void leaf() {
    static constexpr unsigned kSizes[] = {1, 2, 4, 8};
    const unsigned size = kSizes[random() % 4];
    add(terms.leaf(size), random() & SymbolicValues::most_of(size));
  }

  void operation() {
    static constexpr Operation kOperations[] = {
        Operation::kAdd,        Operation::kSub,        Operation::kAnd,
        Operation::kOr,         Operation::kXor,        Operation::kMultiply,
        Operation::kShiftLeft,  Operation::kShiftRight, Operation::kShiftRightSigned,
        Operation::kNot,        Operation::kNegate,     Operation::kSwapBytes,
        Operation::kRotateLeft, Operation::kRotateRight};
    static constexpr unsigned kSizes[] = {4, 8, 8, 8};
    const size_t a = random() % made.size();
    const size_t b = random() % made.size();
    const unsigned size = kSizes[random() % 4];
    switch (random() % 8) {
      case 0:
        add(made[a].plus(b), values[a] + b);
        return;
      case 1:
        add(terms.cut(made[a], 4), values[a] & SymbolicValues::most_of(4));
        return;
      case 2:
        add(terms.make(Operation::kMoveSigned, made[a], {}, size, 1 + a % 2),
            *x86::combine(Operation::kMoveSigned, values[a], 0, 1 + a % 2) &
                SymbolicValues::most_of(size));
        return;
      case 3: {
        const uint64_t constant =
            random() % 4 == 0 ? 0 - (uint64_t{1} << random() % 16) : random() % 64;
        const Operation operation = kOperations[random() % std::size(kOperations)];
        add(terms.make(operation, made[a], SymbolicValues::constant(constant), size),
            *x86::combine(operation, values[a], constant, size) & SymbolicValues::most_of(size));
        return;
      }
      default: {
        const Operation operation = kOperations[random() % std::size(kOperations)];
        add(terms.make(operation, made[a], made[b], size),
            *x86::combine(operation, values[a], values[b], size) & SymbolicValues::most_of(size));
      }
    }
  }

  void fact() {
    const size_t a = random() % made.size();
    switch (random() % 3) {
      case 0:
        terms.learn(made[a], values[a], 8, pt::kViaFact);
        break;
      case 1:
        terms.learn(made[a], values[a] & SymbolicValues::most_of(4), 4, pt::kViaFact);
        break;
      default:
        for (size_t b = 0; b < made.size(); ++b) {
          if (b != a && values[a] == values[b]) {
            terms.equal(made[a], made[b]);
          }
        }
    }
  }

  // Of what is not known: how often less than every value is possible, and the last bits are known.
  void limits(size_t& bounded, size_t& aligned) const {
    for (size_t i = 0; i < made.size(); ++i) {
      if (terms.settled(made[i]).known()) {
        continue;
      }
      if (const auto range = terms.bounds(made[i])) {
        ++bounded;
        CHECK(values[i] >= range->first);
        CHECK(values[i] <= range->second);
      }
      for (const uint64_t mask : {0x1, 0xF, 0xFFF}) {
        if (const auto low = terms.low_bits(made[i], mask)) {
          ++aligned;
          CHECK(*low == (values[i] & mask));
        }
      }
    }
  }

  // How many are known; all of them rightly.
  size_t known() const {
    size_t count = 0;
    for (size_t i = 0; i < made.size(); ++i) {
      const SymbolicValue term = terms.settled(made[i]);
      if (term.known()) {
        ++count;
        CHECK(term.offset == values[i]);
      }
    }
    return count;
  }
};

}  // namespace

TEST_CASE("what facts settle is what the values are") {
  size_t more = 0;
  size_t bounded = 0;
  size_t aligned = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Twin twin(seed);
    for (int i = 0; i < 4; ++i) {
      twin.leaf();
    }
    for (int i = 0; i < 40; ++i) {
      twin.random() % 5 == 0 ? twin.leaf() : twin.operation();
      if (twin.random() % 8 == 0) {
        twin.fact();
      }
    }
    const size_t before = twin.known();
    twin.terms.solve();
    const size_t solved = twin.known();
    CHECK(solved >= before);
    twin.limits(bounded, aligned);
    more += solved > before ? 1 : 0;
    // Old definitions go, values stay.
    twin.terms.forget_before(twin.terms.size() / 2, [&](auto apply) {
      for (SymbolicValue& term : twin.made) {
        apply(term);
      }
    });
    CHECK(twin.known() == solved);
    for (int i = 0; i < 10; ++i) {
      twin.operation();
      twin.fact();
    }
    twin.terms.solve();
    CHECK(twin.known() >= solved);
  }
  CHECK(more > 100);
  CHECK(bounded > 1000);
  CHECK(aligned > 1000);
}

TEST_CASE("a chain as long as a path is settled from its end") {
  SymbolicValues terms;
  const SymbolicValue first = terms.leaf(4);
  std::vector<SymbolicValue> chain{first};
  for (int i = 0; i < 200000; ++i) {
    chain.push_back(terms.cut(chain.back().plus(3), 4));
  }
  terms.learn(chain.back(), 600005, 8, pt::kViaFact);
  terms.solve();
  CHECK(terms.settled(first).known());
  CHECK(terms.settled(first).offset == 5);
  CHECK(terms.settled(chain[1000]).offset == 3005);
}
