// The consistency check against all executions of the abstract machine.
#include "offline/consistency/consistency.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tso/machine/explore.h"
#include "tso/model/location_table.h"

using namespace tsomon;
using tsomon::testing::mini_trace;
using tsomon::testing::show;

namespace {

using machine::Instruction;
using machine::MemoryEvent;
using machine::MemoryEventKind;

const int kRounds = rounds(4'000, 60'000);
constexpr uint64_t kMaxStates = 5'000;

// One program, and what its accesses are said to have read and written.
struct Case {
  machine::Program program;
  Trace trace;
  std::vector<std::vector<uint32_t>> events;  // by thread
  std::vector<InitialValue> finals;
};

uint32_t below(std::mt19937_64& random, uint32_t bound) {
  return static_cast<uint32_t>(random() % bound);
}

// What one run of the machine shows: with the values of a random execution, some of them changed or
// left out.
Case random_case(std::mt19937_64& random) {
  Case made;
  const uint32_t threads = 2 + below(random, 3);
  const uint32_t locations = 1 + below(random, 3);
  const uint32_t longest = threads == 2 ? 5 : threads == 3 ? 3 : 2;
  const bool lazy = below(random, 2) == 0;  // stores commit late
  const bool unique = below(random, 3) == 0;
  const bool writers = below(random, 2) == 0;
  uint32_t fresh = 1;
  made.program.memory.assign(locations, 0);
  made.program.threads.resize(threads);
  for (auto& thread : made.program.threads) {
    const uint32_t length = 1 + below(random, longest);
    for (uint32_t i = 0; i < length; ++i) {
      const uint32_t location = below(random, locations);
      const auto value = machine::immediate(unique ? fresh++ : below(random, 3));
      const uint32_t choice = below(random, 20);
      const uint32_t loads = lazy ? (2 * i < length ? 2 : 16) : writers ? 6 : 10;
      if (choice < loads) {
        thread.instructions.push_back(Instruction::load(1, location));
      } else if (choice < 18) {
        thread.instructions.push_back(Instruction::store(location, value));
      } else if (choice < 19) {
        thread.instructions.push_back(Instruction::fence());
      } else {
        thread.instructions.push_back(
            Instruction::locked(machine::Operation::kExchange, location, value, 1));
      }
    }
  }
  const machine::Machine tso(made.program);
  machine::State state = tso.initial();
  std::vector<machine::Step> steps;
  for (tso.enabled_steps(state, steps); !steps.empty(); tso.enabled_steps(state, steps)) {
    const auto late = [](const machine::Step& step) {
      return step.kind == machine::Step::Kind::kCommit;
    };
    if (lazy && !std::all_of(steps.begin(), steps.end(), late)) {
      steps.erase(std::remove_if(steps.begin(), steps.end(), late), steps.end());
    }
    tso.apply(state, steps[below(random, static_cast<uint32_t>(steps.size()))]);
    steps.clear();
  }
  const bool disturbed = below(random, 3) == 0;
  const bool gaps = below(random, 4) == 0;
  const auto known = [&] { return !gaps || below(random, 3) != 0; };
  const auto seen = [&](uint64_t value) {
    return disturbed && below(random, 4) == 0 ? below(random, unique ? fresh : 4) : value;
  };
  Symbols& symbols = made.trace.symbols;
  symbols.initial_zero = below(random, 8) != 0;
  for (uint32_t location = 0; location < locations; ++location) {
    symbols.names.intern(fmt::format("x{}", location));
    if (below(random, 4) == 0) {
      made.finals.push_back({{location, 0}, seen(tso.memory(state, location))});
    }
  }
  // The threads one after the other: their order must not matter.
  for (uint16_t thread = 0; thread < threads; ++thread) {
    symbols.threads.intern(fmt::format("T{}", thread));
    made.events.emplace_back();
    for (const MemoryEvent& happened : state.threads[thread].events) {
      Event event;
      event.thread = thread;
      event.address = happened.location;
      std::optional<uint64_t> read;
      std::optional<uint64_t> written;
      switch (happened.kind) {
        case MemoryEventKind::kLoad:
          event.set_kind(EventKind::kRead);
          read = seen(happened.read);
          break;
        case MemoryEventKind::kStore:
          event.set_kind(EventKind::kWrite);
          written = happened.written;
          break;
        case MemoryEventKind::kLocked:
          event.set_kind(EventKind::kReadModifyWrite);
          read = seen(happened.read);
          written = happened.written;
          break;
        case MemoryEventKind::kFence:
          event.set_kind(EventKind::kFence);
          break;
      }
      const auto place = static_cast<int64_t>(made.trace.events.size());
      made.events.back().push_back(static_cast<uint32_t>(place));
      made.trace.add(event, place, place, known() ? read : std::nullopt,
                     known() ? written : std::nullopt);
    }
  }
  return made;
}

// The execution explains every value; what is not known may be anything, the same for all readers.
bool explains(const Case& made, const machine::State& state) {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> assumed;
  const auto agrees = [&](machine::WriteId write, uint32_t location, uint64_t value) {
    std::optional<uint64_t> known;
    std::pair<uint32_t, uint32_t> name = {write.thread, write.event};
    if (write.is_initial()) {
      name.second = location;
      if (made.trace.symbols.initial_zero) {
        known = 0;
      }
    } else {
      known = made.trace.write_value(made.trace.events[made.events[write.thread][write.event]]);
    }
    return (known ? *known : assumed.try_emplace(name, value).first->second) == value;
  };
  for (size_t thread = 0; thread < made.events.size(); ++thread) {
    for (size_t i = 0; i < made.events[thread].size(); ++i) {
      const MemoryEvent& happened = state.threads[thread].events[i];
      const auto read = made.trace.read_value(made.trace.events[made.events[thread][i]]);
      if (read && !agrees(happened.source, happened.location, *read)) {
        return false;
      }
    }
  }
  return std::all_of(made.finals.begin(), made.finals.end(), [&](const InitialValue& final_value) {
    const auto location = static_cast<uint32_t>(final_value.location.address);
    const auto& writes = state.coherence[location];
    return agrees(writes.empty() ? machine::WriteId() : writes.back(), location, final_value.value);
  });
}

// Nothing when there are too many.
std::optional<bool> has_execution(const Case& made, machine::Model model) {
  const machine::Machine machine(made.program, {model, 0xFFFFFFFF});
  bool found = false;
  const auto explored = machine::explore(
      machine, {.max_states = kMaxStates, .max_backward_jumps = 0},
      [&](const machine::State& state) { found = found || explains(made, state); });
  return found || explored.complete() ? std::optional(found) : std::nullopt;
}

// The witness, step by step on the machine, has the recorded values.
bool replays(const Case& made, const std::vector<Step>& witness, machine::Model model) {
  const machine::Machine machine(made.program, {machine::Model::kTso, 0xFFFFFFFF});
  machine::State state = machine.initial();
  for (size_t i = 0; i < witness.size(); ++i) {
    const auto thread = static_cast<uint16_t>(made.trace.events[witness[i].event].thread);
    const machine::Step step =
        witness[i].commit ? machine::Step::commit(thread) : machine::Step::execute(thread);
    if (!machine.is_enabled(state, step)) {
      return false;
    }
    const bool store =
        !witness[i].commit && made.trace.events[witness[i].event].kind() == EventKind::kWrite;
    if (model == machine::Model::kSc && store &&
        (i + 1 == witness.size() || !(witness[i + 1] == Step{true, witness[i].event}))) {
      return false;
    }
    machine.apply(state, step);
  }
  return machine.is_final(state) && explains(made, state);
}

ConsistencyVerdict verdict(const char* text, ConsistencyModel model = ConsistencyModel::kBoth) {
  ConsistencyOptions options;
  options.model = model;
  const auto report = check_consistency(mini_trace(text), options);
  REQUIRE(report);
  return report->verdict;
}

constexpr auto kSc = ConsistencyVerdict::kSc;
constexpr auto kTso = ConsistencyVerdict::kTso;
constexpr auto kInconsistent = ConsistencyVerdict::kInconsistent;
constexpr auto kInconclusive = ConsistencyVerdict::kInconclusive;

}  // namespace

TEST_CASE("verdicts equal those of all executions of the machine") {
  constexpr uint64_t kSeed = 20161003;
  std::mt19937_64 random(kSeed);
  int verdicts[3] = {};
  int decided = 0;
  int judged = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Case made = random_case(random);
    INFO("seed " << kSeed << " round " << round << "\n" << show(made.trace));
    ConsistencyOptions options;
    options.final_values = made.finals;
    const auto report = check_consistency(made.trace, options);
    REQUIRE(report);
    REQUIRE(report->complete);
    const auto in_sc = has_execution(made, machine::Model::kSc);
    const auto in_tso = in_sc == true ? in_sc : has_execution(made, machine::Model::kTso);
    if (!in_sc || !in_tso) {
      continue;
    }
    ++judged;
    const bool sc = *in_sc;
    const bool tso = *in_tso;
    REQUIRE(report->verdict == (sc ? kSc : tso ? kTso : kInconsistent));
    if (tso) {
      REQUIRE(replays(made, report->witness, sc ? machine::Model::kSc : machine::Model::kTso));
    }
    ++verdicts[sc ? 0 : tso ? 1 : 2];
    decided += report->decisions > 0 ? 1 : 0;
  }
  MESSAGE(judged << " cases: " << verdicts[0] << " sc, " << verdicts[1] << " tso, " << verdicts[2]
                 << " inconsistent; " << decided << " needed decisions");
  CHECK(judged > kRounds * 9 / 10);
  CHECK(verdicts[1] > kRounds / 200);
  CHECK(verdicts[2] > kRounds / 20);
  CHECK(decided > kRounds / 200);
}

TEST_CASE("classical cases") {
  CHECK(verdict("T0:W(x=1) T0:R(y=0) T1:W(y=1) T1:R(x=0)") == kTso);
  CHECK(verdict("T0:W(x=1) T0:F T0:R(y=0) T1:W(y=1) T1:F T1:R(x=0)") == kInconsistent);
  CHECK(verdict("T0:W(x=1) T0:W(y=1) T1:R(y=1) T1:R(x=0)") == kInconsistent);
  CHECK(verdict("T0:W(x=1) T1:W(x=2) T2:R(x=1) T2:R(x=2) T3:R(x=2) T3:R(x=1)") == kInconsistent);
  CHECK(verdict("T0:U(x=0,1) T1:U(x=0,2)") == kInconsistent);
  CHECK(verdict("T0:U(x=0,1) T1:U(x=1,2)") == kSc);
  CHECK(verdict("T0:R(x=7)") == kInconsistent);
}

TEST_CASE("one model at a time") {
  const char* buffering = "T0:W(x=1) T0:R(y=0) T1:W(y=1) T1:R(x=0)";
  CHECK(verdict(buffering, ConsistencyModel::kSc) == kInconsistent);
  CHECK(verdict(buffering, ConsistencyModel::kTso) == kTso);
  CHECK(verdict("T0:W(x=1)", ConsistencyModel::kTso) == kTso);
}

TEST_CASE("locks exclude, forks and joins order") {
  CHECK(
      verdict("T0:acq(l) T0:R(x=0) T0:W(x=1) T0:rel(l) T1:acq(l) T1:R(x=0) T1:W(x=2) T1:rel(l)") ==
      kInconsistent);
  CHECK(
      verdict("T0:acq(l) T0:R(x=0) T0:W(x=1) T0:rel(l) T1:acq(l) T1:R(x=1) T1:W(x=2) T1:rel(l)") ==
      kSc);
  CHECK(verdict("T0:acq(l) T0:acq(l) T0:rel(l) T0:rel(l) T1:acq(l) T1:rel(l)") == kSc);
  CHECK(verdict("T0:W(x=1) T0:fork(T1) T1:R(x=0)") == kInconsistent);
  CHECK(verdict("T0:W(x=1) T0:fork(T1) T1:R(x=1) T1:W(x=2) T0:join(T1) T0:R(x=1)") ==
        kInconsistent);
  CHECK(verdict("T0:W(x=1) T0:fork(T1) T1:R(x=1) T1:W(x=2) T0:join(T1) T0:R(x=2)") == kSc);
  const auto circle = check_consistency(mini_trace("T0:join(T1) T0:W(x) T0:fork(T1) T1:R(x)"), {});
  REQUIRE(!circle);
  CHECK(circle.error().kind == ErrorKind::kMalformed);
}

TEST_CASE("a clean answer needs all events and all values") {
  Trace trace = mini_trace("T0:W(x=1) T1:R(x=1)");
  trace.complete = false;
  auto report = check_consistency(trace, {});
  REQUIRE(report);
  CHECK(report->verdict == kInconclusive);
  CHECK(!report->complete);

  CHECK(verdict("T0:racq(l) T0:R(x=0) T0:rrel(l)") == kInconclusive);
  CHECK(verdict("T0:racq(l) T0:R(x=1) T0:rrel(l)") == kInconsistent);
}

TEST_CASE("a contradiction is named") {
  const auto report = check_consistency(mini_trace("T0:W(x=1) T0:W(y=1) T1:R(y=1) T1:R(x=0)"), {});
  REQUIRE(report);
  std::vector<uint32_t> cycle = report->contradiction;
  REQUIRE(cycle.size() == 4);
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  CHECK(cycle == std::vector<uint32_t>{0, 1, 2, 3});
}

TEST_CASE("a bound makes the answer inconclusive") {
  // All stores write the same two values: inference says nothing.
  std::string text;
  for (int i = 0; i < 6; ++i) {
    text += fmt::format("T{0}:W(x={1}) R(y=0) W(y={1}) R(x={2}) R(x={1}) ", i, i % 2 + 1,
                        (i + 1) % 2 + 1);
  }
  const Trace trace = mini_trace(text);
  const auto whole = check_consistency(trace, {});
  REQUIRE(whole);
  REQUIRE(whole->complete);
  ConsistencyOptions options;
  options.max_decisions = 1;
  const auto report = check_consistency(trace, options);
  REQUIRE(report);
  CHECK(report->verdict == kInconclusive);
  CHECK(!report->complete);
  options = {};
  options.max_bytes = 10;
  CHECK(check_consistency(trace, options)->verdict == kInconclusive);
}
