// A litmus test: a small program, what to look at when it has run, and a claim about it.
//
// Produced by parse_litmus() (decoders/litmus/parser.h), judged by judge_litmus()
// (decoders/litmus/judge.h). Terms as in herd: the condition has a quantifier and a proposition
// over the final values of registers and locations.
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tso/machine/program.h"

namespace tsomon::litmus {

// A register or location whose final value counts.
struct Observable {
  bool is_register = false;
  uint16_t thread = 0;           // of a register
  machine::Register number = 0;  // of a register
  machine::Location location = 0;
  uint8_t width = 4;  // bytes
  std::string name;   // "0:EAX" or "x"
};

struct Proposition {
  enum class Kind : uint8_t {
    kTrue,
    kFalse,
    kEqual,    // observable `left` has the value `value`
    kSame,     // observables `left` and `right` have the same value
    kNot,      // of the only part
    kAnd,      // of all parts
    kOr,       // of any part
    kImplies,  // the first part implies the second
  };
  Kind kind = Kind::kTrue;
  uint32_t left = 0;  // index in LitmusTest::observed
  uint32_t right = 0;
  machine::Value value = 0;
  std::vector<Proposition> parts;
};

enum class Quantifier : uint8_t {
  kExists,     // herd: Allowed
  kNotExists,  // herd: Forbidden
  kForall,     // herd: Required
};

struct LitmusTest {
  std::string name;
  machine::Program program;
  std::vector<std::string> locations;  // names, by machine::Location
  // What the condition and the `locations` list name, each once, in order of appearance there.
  std::vector<Observable> observed;
  Quantifier quantifier = Quantifier::kForall;
  Proposition proposition;
  std::optional<Proposition> filter;  // final states that do not satisfy it do not count
};

// Whether the proposition holds for the values of LitmusTest::observed, given in that order.
// O(size of the proposition).
bool holds(const Proposition& proposition, const std::vector<Observable>& observed,
           const std::vector<machine::Value>& values);

}  // namespace tsomon::litmus
