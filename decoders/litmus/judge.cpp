#include "decoders/litmus/judge.h"

#include <algorithm>

namespace tsomon::litmus {

namespace {

struct Run {
  ModelJudgement judgement;
  std::set<std::string> classes;
};

Run run(const LitmusTest& test, machine::Model model, const machine::Limits& limits) {
  const machine::Machine machine(test.program, {.model = model});
  const auto observe = [&](const machine::State& state) {
    std::vector<machine::Value> values;
    values.reserve(test.observed.size());
    for (const Observable& observable : test.observed) {
      const machine::Value value =
          observable.is_register ? state.threads[observable.thread].registers[observable.number]
                                 : machine.memory(state, observable.location);
      values.push_back(machine::truncate(value, observable.width));
    }
    return values;
  };
  machine::Outcomes found = machine::outcomes(machine, limits, observe);

  Run result;
  ModelJudgement& judgement = result.judgement;
  judgement.exploration = found.exploration;
  judgement.executions = found.classes.size();
  for (const auto& values : found.final_states) {
    if (!test.filter || holds(*test.filter, test.observed, values)) {
      judgement.states.insert(values);
    }
  }
  result.classes = std::move(found.classes);
  const auto satisfying = std::count_if(
      judgement.states.begin(), judgement.states.end(),
      [&](const auto& values) { return holds(test.proposition, test.observed, values); });
  const bool all = static_cast<size_t>(satisfying) == judgement.states.size();
  if (satisfying > 0 && !all) {
    judgement.verdict = Verdict::kSometimes;
  } else if (judgement.exploration.complete()) {
    judgement.verdict = satisfying > 0 ? Verdict::kAlways : Verdict::kNever;
  }
  return result;
}

}  // namespace

Judgement judge_litmus(const LitmusTest& test, const machine::Limits& limits) {
  Run sc = run(test, machine::Model::kSc, limits);
  Run tso = run(test, machine::Model::kTso, limits);
  Judgement judgement;
  judgement.sc = std::move(sc.judgement);
  judgement.tso = std::move(tso.judgement);
  const bool included =
      std::includes(sc.classes.begin(), sc.classes.end(), tso.classes.begin(), tso.classes.end());
  if (judgement.complete()) {
    judgement.robust = included;
  } else if (!included && !judgement.sc.exploration.state_limit_hit) {
    // A class says how often each thread jumps back, and the limit is the same in both models.
    judgement.robust = false;
  }
  return judgement;
}

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNever:
      return "Never";
    case Verdict::kSometimes:
      return "Sometimes";
    case Verdict::kAlways:
      return "Always";
    case Verdict::kInconclusive:
      break;
  }
  return "inconclusive";
}

std::string_view quantifier_text(Quantifier quantifier) {
  switch (quantifier) {
    case Quantifier::kExists:
      return "Allowed";
    case Quantifier::kNotExists:
      return "Forbidden";
    case Quantifier::kForall:
      break;
  }
  return "Required";
}

}  // namespace tsomon::litmus
