// What recorded values say about SC-serializability, against all TSO executions that return them:
// the question is in which order their accesses were issued.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/plain_units.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(2250, 15'000);

// All orders of issues of TSO executions in which what is over before another event begins was
// issued before it, and in which loads return what was recorded; memory starts at 0. `sc`: of those
// in which every store commits at once.
class AllIssueOrders {
 public:
  AllIssueOrders(const Trace& trace, bool sc)
      : trace_(trace), sc_(sc), units_(numbered(plain_units(trace))) {
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      if (is(trace.events[e], kinds::kNodes)) {
        const ThreadId thread = trace.events[e].thread;
        threads_.resize(std::max<size_t>(threads_.size(), thread + 1));
        threads_[thread].push_back(e);
        ++nodes_;
      }
    }
    buffers_.resize(threads_.size());
    next_.assign(threads_.size(), 0);
    extend();
  }

  bool all() const { return steps_ < kMaxSteps; }  // within the bound
  bool any() const { return cyclic_ || acyclic_; }
  bool some_cyclic() const { return cyclic_; }
  bool some_acyclic() const { return acyclic_; }

 private:
  static constexpr uint64_t kMaxSteps = 30'000;

  void extend() {
    if (++steps_ >= kMaxSteps || (cyclic_ && acyclic_)) {
      return;
    }
    if (order_.size() == nodes_) {
      (has_cycle() ? cyclic_ : acyclic_) = true;
      return;
    }
    for (size_t thread = 0; thread < threads_.size(); ++thread) {
      if (!buffers_[thread].empty()) {
        commit(thread);
      }
      if (next_[thread] < threads_[thread].size()) {
        issue(thread);
      }
    }
  }

  void commit(size_t thread) {
    const uint32_t e = buffers_[thread].front();
    const std::map<uint64_t, uint64_t> memory = memory_;
    buffers_[thread].pop_front();
    write(e);
    extend();
    memory_ = memory;
    buffers_[thread].push_front(e);
  }

  void write(uint32_t e) {
    if (const auto value = trace_.write_value(trace_.events[e])) {
      memory_[trace_.events[e].address] = *value;
    }
  }

  bool may_begin(uint32_t e) const {
    for (size_t other = 0; other < threads_.size(); ++other) {
      if (other == trace_.events[e].thread || next_[other] == threads_[other].size()) {
        continue;
      }
      for (size_t at = next_[other]; at < threads_[other].size(); ++at) {
        if (trace_.hi(trace_.events[threads_[other][at]]) < trace_.events[e].lo) {
          return false;
        }
      }
    }
    return true;
  }

  uint64_t seen_by(size_t thread, uint64_t address) {
    for (auto own = buffers_[thread].rbegin(); own != buffers_[thread].rend(); ++own) {
      if (trace_.events[*own].address == address) {
        return trace_.write_value(trace_.events[*own]).value_or(0);
      }
    }
    return memory_[address];
  }

  void issue(size_t thread) {
    const uint32_t e = threads_[thread][next_[thread]];
    const Event& event = trace_.events[e];
    if (!may_begin(e) || (is(event, kinds::kDrains) && !buffers_[thread].empty())) {
      return;
    }
    const auto read = trace_.read_value(event);
    if (read && seen_by(thread, event.address) != *read) {
      return;
    }
    const std::map<uint64_t, uint64_t> memory = memory_;
    const bool stores = event.kind() == EventKind::kWrite;
    if (stores && !sc_) {
      buffers_[thread].push_back(e);
    } else {
      write(e);
    }
    ++next_[thread];
    order_.push_back(e);
    extend();
    order_.pop_back();
    --next_[thread];
    if (stores && !sc_) {
      buffers_[thread].pop_back();
    }
    memory_ = memory;
  }

  bool has_cycle() const {
    const size_t count = *std::max_element(units_.begin(), units_.end()) + 1;
    std::vector<std::vector<bool>> reach(count, std::vector<bool>(count, false));
    for (size_t i = 0; i < order_.size(); ++i) {
      for (size_t j = i + 1; j < order_.size(); ++j) {
        const Event& from = trace_.events[order_[i]];
        const Event& to = trace_.events[order_[j]];
        const bool conflict = is(from, kinds::kAccesses) && is(to, kinds::kAccesses) &&
                              from.address == to.address &&
                              (from.kind() != EventKind::kRead || to.kind() != EventKind::kRead);
        if (units_[order_[i]] != units_[order_[j]] && (from.thread == to.thread || conflict)) {
          reach[units_[order_[i]]][units_[order_[j]]] = true;
        }
      }
    }
    for (size_t k = 0; k < count; ++k) {
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; reach[i][k] && j < count; ++j) {
          reach[i][j] = reach[i][j] || reach[k][j];
        }
      }
    }
    for (size_t i = 0; i < count; ++i) {
      if (reach[i][i]) {
        return true;
      }
    }
    return false;
  }

  const Trace& trace_;
  bool sc_;
  std::vector<uint32_t> units_;
  std::vector<std::vector<uint32_t>> threads_;
  size_t nodes_ = 0;
  std::vector<size_t> next_;
  std::vector<std::deque<uint32_t>> buffers_;
  std::map<uint64_t, uint64_t> memory_;
  std::vector<uint32_t> order_;
  uint64_t steps_ = 0;
  bool cyclic_ = false;
  bool acyclic_ = false;
};

// No interval says anything.
Trace all_at_once(const Trace& trace) {
  Trace result;
  result.symbols = trace.symbols;
  for (const Event& event : trace.events) {
    Event bare = event;
    bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
    result.add(bare, 0, 1000, trace.read_value(event), trace.write_value(event));
  }
  return result;
}

// The first load of a witness that returns another value than the witness shows to be there, where it
// shows one: its thread's newest store that has not committed, else what committed last.
std::optional<uint32_t> wrong_load(const Trace& trace, const std::vector<Step>& witness) {
  std::map<uint64_t, std::optional<uint64_t>> memory;
  std::map<ThreadId, std::vector<uint32_t>> buffers;
  for (const Step& step : witness) {
    const Event& event = trace.events[step.event];
    auto& buffer = buffers[event.thread];
    if (step.commit) {
      buffer.erase(buffer.begin());
      memory[event.address] = trace.write_value(event);
      continue;
    }
    if (const auto read = trace.read_value(event)) {
      std::optional<uint64_t> held;
      if (const auto at = memory.find(event.address); at != memory.end()) {
        held = at->second;
      }
      for (const uint32_t own : buffer) {
        if (trace.events[own].address == event.address) {
          held = trace.write_value(trace.events[own]);
        }
      }
      if (held && *held != *read) {
        return step.event;
      }
    }
    if (event.kind() == EventKind::kWrite || event.kind() == EventKind::kRelease) {
      buffer.push_back(step.event);
    } else if (event.kind() == EventKind::kReadModifyWrite) {
      memory[event.address] = trace.write_value(event);
    }
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("SC-serializability with values is that of the executions that return them") {
  constexpr uint64_t kSeed = 20261125;
  std::mt19937_64 random(kSeed);
  int compared = 0;
  int sharp = 0;
  int verdicts[4] = {};
  int by_values = 0;
  for (int round = 0; round < kRounds; ++round) {
    RandomTraceOptions made;
    made.threads = 2 + static_cast<uint32_t>(random() % 2);
    made.locations = 1 + static_cast<uint32_t>(random() % 2);
    made.steps = 3 + static_cast<uint32_t>(random() % 4);
    made.units = 40;
    made.locked = static_cast<uint32_t>(random() % 2) * 20;
    made.fences = static_cast<uint32_t>(random() % 2) * 10;
    made.waits = random() % 4 == 0 ? 20 : 0;
    made.values = true;
    made.flags = random() % 3 == 0;
    made.unvalued = 0;
    made.intervals = random() % 2 == 0;
    Trace trace = random_trace(random, made).trace;
    if (random() % 2 == 0) {
      trace = all_at_once(trace);
    }
    INFO("seed " << kSeed << " round " << round << "\n" << show(trace));
    const AllIssueOrders executions(trace, false);
    if (!executions.all() || !executions.any()) {
      continue;
    }
    AnalysisOptions options;
    options.property = Property::kScSerializability;
    const auto analysis = analyse(trace, options);
    REQUIRE(analysis.has_value());
    const Verdict verdict = analysis->verdict();
    ++compared;
    ++verdicts[static_cast<int>(verdict)];
    REQUIRE((verdict != Verdict::kClean || !executions.some_cyclic()));
    REQUIRE((verdict != Verdict::kDefinite || !executions.some_acyclic()));
    const AllIssueOrders sequential(trace, true);
    if (sequential.all() && sequential.any()) {
      REQUIRE((verdict != Verdict::kClean || !sequential.some_cyclic()));
      REQUIRE((verdict != Verdict::kDefinite || !sequential.some_acyclic()));
    }
    for (const Violation& finding : analysis->findings) {
      REQUIRE(!finding.witness.empty());
      REQUIRE(!wrong_load(trace, finding.witness));
    }
    const bool both = executions.some_cyclic() && executions.some_acyclic();
    sharp += (verdict == Verdict::kPossible) == both ? 1 : 0;
    options.values = false;
    by_values += analyse(trace, options)->verdict() != verdict ? 1 : 0;
  }
  MESSAGE(compared << " compared: " << verdicts[0] << " clean, " << verdicts[1] << " possible, "
                   << verdicts[2] << " definite; " << compared - sharp
                   << " possible where the values leave one answer; " << by_values
                   << " decided by values");
  CHECK(compared > kRounds / 2);
  CHECK(compared == sharp);
  CHECK(by_values > kRounds / 100);
}
