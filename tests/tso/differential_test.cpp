// The checkers, their brute-force twins and the machine against each other, on random traces that
// really happened.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/executions.h"
#include "tests/tso/machine_replay.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/naive_checker.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(4000, 102000);

constexpr uint64_t kMaxSteps = 20'000;  // of executions that are enumerated for one trace

RelationOptions relation_of(const AnalysisOptions& options) {
  RelationOptions relation = options.relation;
  if (options.property == Property::kScSerializability) {
    relation.model = MemoryModel::kSc;
  }
  return relation;
}

// Every verdict that `narrow` may have when `wide` allows at least its executions.
bool refines(Verdict narrow, Verdict wide) { return wide == Verdict::kPossible || narrow == wide; }

Analysis run(const Trace& trace, const AnalysisOptions& options) {
  auto result = analyse(trace, options);
  REQUIRE_MESSAGE(result.has_value(), result.error().to_string());
  if (options.relation.semantics == Semantics::kExact) {
    // No bound is near on traces this small, and every violation has a witness.
    for (const std::string& note : result->notes) {
      INFO(note);
      REQUIRE(result->complete());
    }
    for (const Violation& finding : result->findings) {
      REQUIRE(!finding.witness.empty());
    }
  }
  return *result;
}

// Every witness is an execution of the abstract machine, which sees the cycle as well.
void replay_witnesses(const Trace& trace, const AnalysisOptions& options, const Analysis& analysis,
                      int* replayed) {
  for (const Violation& violation : analysis.findings) {
    if (violation.witness.empty()) {
      continue;
    }
    ++*replayed;
    const MachineReplay replay =
        replay_on_machine(trace, relation_of(options), options.property, violation.witness);
    REQUIRE_MESSAGE(replay.refusal.empty(), replay.refusal);
    REQUIRE(replay.cyclic);
  }
}

// The execution that the trace was made from; SC-serializability looks at its issues only.
std::vector<Step> seen_by(const AnalysisOptions& options, const RandomTrace& happened) {
  if (options.property != Property::kScSerializability) {
    return happened.execution;
  }
  std::vector<Step> steps;
  for (const Step& step : happened.execution) {
    if (!step.commit) {
      steps.push_back(step);
      if (is(happened.trace.events[step.event], kinds::kBuffered)) {
        steps.push_back({true, step.event});
      }
    }
  }
  return steps;
}

struct Tally {
  int verdicts[4] = {};
  int twins = 0;
  int executions = 0;
  int constraints_too_weak = 0;
  int replayed = 0;
  int further = 0;
  int definite_findings = 0;
};

// Not the verdict alone: what is definite is so of each finding: its units are violated in every execution.
void compare_findings(const Analysis& analysis, const Executions::Violated& truth, Tally* tally) {
  for (const Violation& finding : analysis.findings) {
    const auto hits = [&](const std::vector<bool>& violated) {
      return std::any_of(finding.cycle.begin(), finding.cycle.end(),
                         [&](const CycleEdge& edge) { return violated[edge.from]; });
    };
    REQUIRE(std::any_of(truth.begin(), truth.end(), hits));
    if (finding.verdict == Verdict::kDefinite) {
      ++tally->definite_findings;
      REQUIRE(std::all_of(truth.begin(), truth.end(), hits));
    }
  }
}

void compare(std::mt19937_64& random, Tally* tally) {
  const RandomTraceOptions made = random_options(random);
  const RandomTrace happened = random_trace(random, made);
  const Trace& trace = happened.trace;
  AnalysisOptions options = random_analysis(random, made);
  const RelationOptions relation = relation_of(options);
  const bool exact = options.relation.semantics == Semantics::kExact;
  INFO("property " << static_cast<int>(options.property) << " exact " << exact << " order "
                   << static_cast<int>(relation.order) << " store buffer " << relation.store_buffer
                   << "\n"
                   << show(trace));
  const Analysis analysis = run(trace, options);
  const Verdict verdict = analysis.verdict();
  ++tally->verdicts[static_cast<int>(verdict)];
  // Whatever is told of beside the first of each group changes no verdict.
  AnalysisOptions all = options;
  all.told = Told::kAll;
  const Analysis each = run(trace, all);
  REQUIRE(each.verdict() == verdict);
  REQUIRE(each.violations() >= analysis.violations());
  tally->further += static_cast<int>(each.violations() - analysis.violations());

  if (const auto twin = NaiveChecker(trace, relation).verdict(options.property)) {
    ++tally->twins;
    // The forwarding constraints of theory section 5.1 are necessary for an execution to exist, and nearly
    // sufficient: what they miss are orders that only issues and commits together exclude. The
    // executions below are the judge of that.
    REQUIRE(refines(verdict, *twin));
    if (!exact) {
      REQUIRE(verdict == *twin);
    } else if (verdict != *twin && !made.mixed_sizes) {
      ++tally->constraints_too_weak;
    }
  }
  const Executions executions(trace, relation);
  if (exact) {
    AnalysisOptions paper = options;
    paper.relation.semantics = Semantics::kPaper;
    REQUIRE(refines(verdict, run(trace, paper).verdict()));
    AnalysisOptions with_values = options;
    with_values.values = true;
    const Verdict refined = run(trace, with_values).verdict();
    REQUIRE(refines(refined, verdict));
    // Beyond the bound the twin is left out; the traces are small enough for most.
    if (const auto truth = executions.all_violated(options.property, false, kMaxSteps)) {
      ++tally->executions;
      REQUIRE(verdict == Executions::verdict(*truth));
      compare_findings(each, *truth, tally);
      const bool comparable = !made.mixed_sizes && options.property != Property::kScSerializability;
      if (made.values && comparable) {
        const auto with = executions.all_violated(options.property, true, kMaxSteps);
        REQUIRE(with.has_value());
        REQUIRE(refined == Executions::verdict(*with));
        with_values.told = Told::kAll;
        compare_findings(run(trace, with_values), *with, tally);
      }
    }
  }

  if (!made.mixed_sizes) {
    replay_witnesses(trace, options, each, &tally->replayed);
    const MachineReplay replay =
        replay_on_machine(trace, options.relation, Property::kSerializability, happened.execution);
    REQUIRE_MESSAGE(replay.refusal.empty(), replay.refusal);
    for (const auto& [load, value] : replay.loads) {
      REQUIRE((!made.values || trace.read_value(trace.events[load]) == value));
    }
  }

  // What really happened is one of the executions, also with its values.
  const bool bad = executions.violates(options.property, seen_by(options, happened));
  options.relation.semantics = Semantics::kExact;
  for (const bool values : {false, true}) {
    options.values = values;
    REQUIRE(run(trace, options).verdict() != (bad ? Verdict::kClean : Verdict::kDefinite));
  }
}

}  // namespace

TEST_CASE("verdicts equal those of all orientations and of all executions") {
  constexpr uint64_t kSeed = 20260521;
  std::mt19937_64 random(kSeed);
  Tally tally;
  for (int round = 0; round < kRounds; ++round) {
    INFO("seed " << kSeed << " round " << round);
    compare(random, &tally);
  }
  MESSAGE(kRounds << " traces: " << tally.verdicts[0] << " clean, " << tally.verdicts[1]
                  << " possible, " << tally.verdicts[2] << " definite; " << tally.twins
                  << " compared with all orientations, " << tally.executions
                  << " with all executions; " << tally.constraints_too_weak
                  << " with fewer executions than forwarding constraints allow; " << tally.replayed
                  << " witnesses replayed on the machine; " << tally.further
                  << " further violations of one group");
  CHECK(tally.twins > kRounds * 8 / 10);
  CHECK(tally.executions > kRounds / 3);
  CHECK(tally.replayed > kRounds / 20);
  CHECK(tally.further > 0);
  CHECK(tally.definite_findings > kRounds / 100);
  CHECK(tally.constraints_too_weak < kRounds / 1000);
  CHECK(tally.verdicts[1] > kRounds / 50);
  CHECK(tally.verdicts[2] > kRounds / 50);
}

TEST_CASE("the relation of two events equals its definition") {
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 5000; ++round) {
    const RandomTraceOptions made = random_options(random);
    const Trace trace = random_trace(random, made).trace;
    RelationOptions options = random_analysis(random, made).relation;
    options.model = random() % 4 == 0 ? MemoryModel::kSc : MemoryModel::kTso;
    options.fenced_release = random() % 4 == 0;
    options.lock_order = random() % 4 != 0;
    options.thread_order = random() % 4 != 0;
    const LocationTable locations(trace);
    const Relation relation(trace, locations, options);
    const NaiveChecker naive(trace, options);
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      for (uint32_t f = 0; f < trace.events.size(); ++f) {
        if (e != f && is(trace.events[e], kinds::kNodes) && is(trace.events[f], kinds::kNodes)) {
          INFO("seed " << kSeed << " round " << round << " events " << e << " " << f << "\n"
                       << show(trace));
          const Order order = relation.between(e, f);
          // Of what a thread has handed over to another one the latest stands for all.
          const bool may_follow =
              order == Order::kNone && trace.events[e].thread != trace.events[f].thread &&
              is(trace.events[e], kinds::kHandOvers) && is(trace.events[f], kinds::kHandOvers);
          REQUIRE((may_follow || order == naive.between(e, f)));
        }
      }
    }
  }
}
