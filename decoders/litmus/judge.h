// Runs a litmus test on the abstract machine under SC and TSO.
//
// Answers     Per model: the distinct final values of what the test observes, without those that
//             its filter leaves out, the number of
//             distinct (reads-from, coherence) classes, and whether the proposition of the
//             condition holds never, sometimes or always. And whether the test is robust: every
//             TSO class is an SC class.
// Bounds      Those of tso/machine/explore.h. When one is hit, `complete` is false, states and
//             executions count what was seen, and only those verdicts are given that hold
//             nevertheless.
// Cost        That of two explorations, exponential in the number of accesses that race.
// Thread-safety: no shared state.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "decoders/litmus/test.h"
#include "tso/machine/explore.h"

namespace tsomon::litmus {

enum class Verdict : uint8_t { kNever, kSometimes, kAlways, kInconclusive };

struct ModelJudgement {
  std::set<std::vector<machine::Value>> states;  // values of LitmusTest::observed
  uint64_t executions = 0;
  Verdict verdict = Verdict::kInconclusive;
  machine::Exploration exploration;
};

struct Judgement {
  ModelJudgement sc;
  ModelJudgement tso;
  std::optional<bool> robust;  // absent when a bound keeps it open

  bool complete() const { return sc.exploration.complete() && tso.exploration.complete(); }
};

Judgement judge_litmus(const LitmusTest& test, const machine::Limits& limits = {});

std::string_view verdict_text(Verdict verdict);
std::string_view quantifier_text(Quantifier quantifier);  // herd: Allowed, Forbidden, Required

}  // namespace tsomon::litmus
