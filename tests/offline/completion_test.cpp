// Completion and its execution model against all orientations of small problems.
#include "offline/check/completion.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "offline/check/execution_model.h"
#include "tests/rounds.h"

using namespace tsomon;

namespace {

const int kRounds = rounds(2'000, 40'000);

// Events with certain orders that have no cycle, and open pairs among the rest.
OrientationProblem random_problem(std::mt19937_64& random) {
  OrientationProblem problem;
  const auto n = static_cast<uint32_t>(3 + random() % 5);
  problem.event_order = PartialOrder(n);
  uint64_t work = 0;
  std::vector<uint32_t> shuffled(n);
  for (uint32_t e = 0; e < n; ++e) {
    problem.events.push_back(e);
    problem.class_of.push_back(e);
    shuffled[e] = e;
  }
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t j = i + 1; j < n; ++j) {
      const uint64_t kind = random() % 6;
      if (kind == 0) {
        REQUIRE(problem.event_order.insert(shuffled[i], shuffled[j], &work));
      } else if (kind < 4) {
        problem.open.push_back({shuffled[i], shuffled[j], true});
        problem.hint.push_back(static_cast<uint32_t>(random() % 2));
      }
    }
  }
  problem.class_count = n;
  const PartialOrder order = problem.event_order;
  problem.before = [order](uint32_t i, uint32_t j) { return order.reaches(i, j); };
  // Sometimes only some of the orientations are those of an execution.
  const uint64_t wanted = random() % 8;
  problem.accept = [wanted, some = random() % 3 == 0](const std::vector<bool>& orientation) {
    uint64_t bits = 0;
    for (size_t i = 0; i < orientation.size() && i < 3; ++i) {
      bits |= uint64_t{orientation[i]} << i;
    }
    return !some || bits == wanted;
  };
  return problem;
}

// By going through all of them.
bool any_valid(const OrientationProblem& problem) {
  for (uint64_t bits = 0; bits < uint64_t{1} << problem.open.size(); ++bits) {
    std::vector<bool> orientation;
    for (size_t i = 0; i < problem.open.size(); ++i) {
      orientation.push_back((bits >> i & 1) != 0);
    }
    if (is_valid(problem, orientation)) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("completion: finds an orientation that is valid exactly where there is one") {
  std::mt19937_64 random(20261125);
  int found = 0;
  int none = 0;
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    const OrientationProblem problem = random_problem(random);
    if (problem.open.size() > 12) {
      continue;
    }
    const bool exists = any_valid(problem);
    auto model = make_execution_model(problem, 1'000'000);
    if (!model) {
      REQUIRE_FALSE(exists);
      continue;
    }
    Completion completion(problem, &*model, nullptr, problem.class_of);
    uint64_t steps = 0;
    const Answer answer = completion.run(&steps, 1'000'000);
    REQUIRE(answer == (exists ? Answer::kYes : Answer::kNo));
    if (exists) {
      REQUIRE(is_valid(problem, completion.found()));
    }
    (exists ? found : none) += 1;
  }
  CHECK(found > kRounds / 4);
  CHECK(none > 0);
}

TEST_CASE("completion: out of steps it does not know") {
  std::mt19937_64 random(7);
  int unknown = 0;
  for (int round = 0; round < 200; ++round) {
    const OrientationProblem problem = random_problem(random);
    auto model = make_execution_model(problem, 1'000'000);
    if (!model) {
      continue;
    }
    Completion completion(problem, &*model, nullptr, problem.class_of);
    uint64_t steps = 0;
    const Answer answer = completion.run(&steps, 1);
    unknown += answer == Answer::kUnknown ? 1 : 0;
    REQUIRE((answer != Answer::kYes || is_valid(problem, completion.found())));
  }
  CHECK(unknown > 0);
}
