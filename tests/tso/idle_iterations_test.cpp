// Waiting loops on the abstract machine: what is left out, and that the rest is an execution of the
// same program in which threads are scheduled only when they get through.
#include "tso/model/idle_iterations.h"

#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tso/check/analysis.h"
#include "tso/machine/machine.h"

using namespace tsomon;
using namespace tsomon::testing;
using machine::Condition;
using machine::Instruction;
using machine::Operation;

namespace {

constexpr machine::Location kLock = 0;
constexpr machine::Location kServing = 1;
constexpr machine::Location kFirst = 2;  // of the data
constexpr machine::Location kLocations = 4;

enum class Kind { kExchange, kLookFirst, kLookAfter, kCompareExchange, kTicket };

// A thread's code, with where its units begin and end.
struct Code {
  std::vector<Instruction> code;
  std::vector<size_t> begins;
  std::vector<size_t> ends;

  uint32_t here() const { return static_cast<uint32_t>(code.size()); }
  void jump_unless(machine::Register number, machine::Operand value, uint32_t to) {
    code.push_back(Instruction::arithmetic(Operation::kCompare, number, value));
    code.push_back(Instruction::jump_if(Condition::kNotEqual, to));
  }
  void acquire(Kind kind) {
    using machine::immediate;
    const uint32_t again = here();
    switch (kind) {
      case Kind::kExchange:
        code.push_back(Instruction::locked(Operation::kExchange, kLock, immediate(1), 2));
        return jump_unless(2, immediate(0), again);
      case Kind::kLookFirst:
        code.push_back(Instruction::load(2, kLock));
        jump_unless(2, immediate(0), again);
        code.push_back(Instruction::locked(Operation::kExchange, kLock, immediate(1), 2));
        return jump_unless(2, immediate(0), again);
      case Kind::kLookAfter: {
        code.push_back(Instruction::locked(Operation::kExchange, kLock, immediate(1), 2));
        code.push_back(Instruction::arithmetic(Operation::kCompare, 2, immediate(0)));
        code.push_back(Instruction::jump_if(Condition::kEqual, again + 7));
        const uint32_t look = here();
        code.push_back(Instruction::load(2, kLock));
        jump_unless(2, immediate(0), look);
        code.push_back(Instruction::jump(again));
        return;
      }
      case Kind::kCompareExchange:
        code.push_back(Instruction::move(machine::kAccumulator, immediate(0)));
        code.push_back(Instruction::locked(Operation::kCompareExchange, kLock, immediate(1)));
        return jump_unless(machine::kAccumulator, immediate(0), again);
      case Kind::kTicket:
        code.push_back(Instruction::locked(Operation::kExchangeAdd, kLock, immediate(1), 3));
        code.push_back(Instruction::load(2, kServing));
        return jump_unless(2, machine::from_register(3), again + 1);
    }
  }
  void release(Kind kind) {
    if (kind == Kind::kTicket) {
      code.push_back(Instruction::arithmetic(Operation::kAdd, 3, machine::immediate(1)));
      code.push_back(Instruction::store(kServing, machine::from_register(3)));
    } else {
      code.push_back(Instruction::store(kLock, machine::immediate(0)));
    }
  }
};

struct Run {
  Trace trace;
  std::vector<bool> idle;  // by event: of an iteration that the thread did again
  struct Taken {
    machine::Step step;
    bool again = false;  // of such an iteration
    std::optional<machine::Value> read;
  };
  std::vector<Taken> steps;
};

// Everything that happens in a random schedule; nothing: some thread waits for too long.
std::optional<Run> run(const machine::Program& program, const std::vector<Code>& codes,
                       std::mt19937_64& random) {
  const machine::Machine machine(program);
  machine::State state = machine.initial();
  Run run;
  for (size_t t = 0; t < codes.size(); ++t) {
    run.trace.symbols.threads.intern("T" + std::to_string(t));
  }
  const auto label = run.trace.symbols.labels.intern("unit");
  const auto add = [&](uint16_t thread, EventKind kind, uint32_t at, uint64_t address = 0,
                       std::optional<uint64_t> read = {}, std::optional<uint64_t> written = {}) {
    Event event;
    event.set_kind(kind);
    event.thread = thread;
    event.address = address;
    event.location = Event::kNumericLocation | at;
    const auto time = static_cast<int64_t>(run.trace.events.size());
    run.trace.add(event, time, time, read, written);
    run.idle.push_back(false);
  };
  struct Done {
    uint32_t instruction;
    size_t step;
    std::vector<size_t> events;
  };
  std::vector<std::vector<Done>> done(codes.size());
  std::vector<size_t> begun(codes.size(), 0);  // units
  std::vector<size_t> ended(codes.size(), 0);
  std::vector<machine::Step> enabled;
  while (!machine.is_final(state)) {
    if (run.steps.size() > 400) {
      return std::nullopt;
    }
    enabled.clear();
    machine.enabled_steps(state, enabled);
    const machine::Step step = enabled[random() % enabled.size()];
    const auto& thread = state.threads[step.thread];
    const uint32_t at = thread.next;
    const size_t events = thread.events.size();
    run.steps.push_back({step, false, {}});
    if (step.kind == machine::Step::Kind::kCommit) {
      machine.apply(state, step);
      continue;
    }
    const Code& code = codes[step.thread];
    std::vector<Done>& mine = done[step.thread];
    if (begun[step.thread] < code.begins.size() && at == code.begins[begun[step.thread]]) {
      ++begun[step.thread];
      add(step.thread, EventKind::kUnitBegin, at, label);
    }
    machine.apply(state, step);
    mine.push_back({at, run.steps.size() - 1, {}});
    if (thread.events.size() != events) {
      const machine::MemoryEvent& event = thread.events.back();
      if (event.kind == machine::MemoryEventKind::kLocked && !event.writes) {
        add(step.thread, EventKind::kFence, at);
      }
      mine.back().events.push_back(run.trace.events.size());
      if (event.kind == machine::MemoryEventKind::kStore) {
        add(step.thread, EventKind::kWrite, at, event.location, {}, event.written);
      } else {
        run.steps.back().read = event.read;
        add(step.thread, event.writes ? EventKind::kReadModifyWrite : EventKind::kRead, at,
            event.location, event.read, event.writes ? std::optional(event.written) : std::nullopt);
      }
    }
    if (thread.next <= at) {  // and does it again
      while (!mine.empty() && mine.back().instruction >= thread.next) {
        run.steps[mine.back().step].again = true;
        for (const size_t event : mine.back().events) {
          run.idle[event] = true;
        }
        mine.pop_back();
      }
    }
    if (ended[step.thread] < begun[step.thread] && thread.next == code.ends[ended[step.thread]]) {
      ++ended[step.thread];
      add(step.thread, EventKind::kUnitEnd, at);
    }
  }
  return run;
}

// The same without what was done again, step by step: it is an execution, and reads the same.
void replay(const machine::Program& program, const Run& run) {
  const machine::Machine machine(program);
  machine::State state = machine.initial();
  for (const Run::Taken& taken : run.steps) {
    if (taken.again) {
      continue;
    }
    REQUIRE(machine.is_enabled(state, taken.step));
    const machine::ThreadState& thread = state.threads[taken.step.thread];
    if (taken.step.kind == machine::Step::Kind::kExecute &&
        !machine.is_finished(state, taken.step.thread)) {
      machine.apply(state, taken.step);
      if (taken.read) {
        REQUIRE(thread.events.back().read == *taken.read);
      }
    } else {
      machine.apply(state, taken.step);
    }
  }
  REQUIRE(machine.is_final(state));
}

// The events that are not left out, with fences for locked operations that are. `looks`: what a
// locked operation right behind it reads again is left out, too.
Trace without(const Trace& trace, std::vector<bool> idle) {
  std::vector<std::optional<size_t>> last(8);
  for (size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    auto& before = last[event.thread];
    const auto read = trace.read_value(event);
    if (event.kind() == EventKind::kReadModifyWrite && trace.write_value(event) != read && before &&
        trace.events[*before].kind() == EventKind::kRead &&
        trace.events[*before].address == event.address &&
        trace.read_value(trace.events[*before]) == read) {
      idle[*before] = true;
    }
    if (event.kind() != EventKind::kFence && !idle[e]) {
      before = e;
    }
  }
  Trace rest;
  rest.symbols = trace.symbols;
  for (size_t e = 0; e < trace.events.size(); ++e) {
    Event bare = trace.events[e];
    bare.has_hi = bare.has_read_value = bare.has_write_value = 0;
    if (!idle[e]) {
      rest.add(bare, trace.lo(trace.events[e]), trace.hi(trace.events[e]),
               trace.read_value(trace.events[e]), trace.write_value(trace.events[e]));
    } else if (bare.kind() == EventKind::kReadModifyWrite) {
      bare.set_kind(EventKind::kFence);
      rest.add(bare, trace.lo(trace.events[e]), trace.hi(trace.events[e]));
    }
  }
  return rest;
}

Verdict verdict(const Trace& trace, Property property) {
  AnalysisOptions options;
  options.property = property;
  const auto result = analyse(trace, options);
  REQUIRE(result.has_value());
  return result->verdict();
}

// Events of thread 0, at their source lines: a kind, a value, a line.
std::vector<size_t> idle_of(const Trace& trace) {
  Trace own = trace;
  resolve_idle_iterations(own);
  std::vector<size_t> idle;
  for (size_t e = 0; e < own.events.size(); ++e) {
    if (own.events[e].kind_bits != trace.events[e].kind_bits) {
      idle.push_back(e);
    }
  }
  return idle;
}

struct Line {
  EventKind kind;
  uint64_t address;
  uint32_t line;
  std::optional<uint64_t> read;
  std::optional<uint64_t> written;
  uint32_t size = 0;
};

Trace lines(const std::vector<Line>& events) {
  Trace trace;
  trace.symbols.threads.intern("T0");
  for (const Line& line : events) {
    Event event;
    event.set_kind(line.kind);
    event.address = line.address;
    event.size = line.size & Event::kMaxSize;
    event.location = line.line == 0 ? Event::kNoLocation : Event::kNumericLocation | line.line;
    const auto time = static_cast<int64_t>(trace.events.size());
    trace.add(event, time, time, line.read, line.written);
  }
  return trace;
}

constexpr EventKind kRead = EventKind::kRead;
constexpr EventKind kWrite = EventKind::kWrite;
constexpr EventKind kLocked = EventKind::kReadModifyWrite;
constexpr EventKind kFence = EventKind::kFence;

// Locks of one thread: "+a" acquires, "-a" releases, "x" is a load of a named location, "." a store to its own memory, "!" the
// beginning of a signal handler.
Trace locks(std::string_view steps) {
  Trace trace;
  trace.symbols.threads.intern("T0");
  const auto add = [&](EventKind kind, uint64_t address, uint32_t size) {
    Event event;
    event.set_kind(kind);
    event.address = address;
    event.size = size & Event::kMaxSize;
    event.location = Event::kNumericLocation | static_cast<uint32_t>(trace.events.size() + 1);
    const auto time = static_cast<int64_t>(trace.events.size());
    trace.add(event, time, time + 1);
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == '!') {
      add(EventKind::kReceive, 9, 0);
    } else if (steps[i] == 'x' || steps[i] == '.') {
      add(steps[i] == 'x' ? kRead : kWrite, 0x9000, steps[i] == 'x' ? 0 : 8);
    } else {
      add(steps[i] == '+' ? EventKind::kAcquire : EventKind::kRelease,
          static_cast<uint64_t>(steps[i + 1]), 0);
      ++i;
    }
  }
  return trace;
}

}  // namespace

TEST_CASE("the iterations of waiting loops are left out, but for the last") {
  using Places = std::vector<size_t>;
  // A test-and-set that fails twice; a load that is repeated until it changes.
  CHECK(idle_of(lines({{kLocked, 1, 5, 1, 1}, {kLocked, 1, 5, 1, 1}, {kLocked, 1, 5, 0, 1}})) ==
        Places{0, 1});
  CHECK(idle_of(lines({{kRead, 1, 5, 3, {}}, {kRead, 1, 5, 4, {}}, {kRead, 1, 5, 5, {}}})) ==
        Places{0, 1});
  // A compare-exchange that fails is a fence and a load; the load before it was in vain, too.
  CHECK(idle_of(lines({{kRead, 1, 4, 7, {}},
                       {kFence, 0, 5, {}, {}},
                       {kRead, 1, 5, 8, {}},
                       {kLocked, 1, 5, 8, 9}})) == Places{0, 2});
  // It looks before it tries.
  CHECK(idle_of(lines({{kRead, 1, 4, 0, {}}, {kLocked, 1, 5, 0, 1}})) == Places{0});
  // The first look has an instruction of its own; a pointer's lowest bit is the lock.
  CHECK(idle_of(lines({{kRead, 1, 3, 0x7f0000000801, {}, 8},
                       {kRead, 1, 4, 0x7f0000000900, {}, 8},
                       {kLocked, 1, 5, 0x7f0000000900, 0x7f0000000901, 8}})) == Places{0, 1});
  // A reference count is no such word.
  CHECK(idle_of(lines({{kRead, 1, 3, 1, {}, 8}, {kLocked, 1, 5, 0, 1, 8}})) == Places{});
  CHECK(idle_of(lines({{kRead, 1, 3, 9, {}}, {kRead, 1, 4, 10, {}}, {kLocked, 1, 5, 10, 11}})) ==
        Places{1});
  // By way of another line back to the first.
  CHECK(idle_of(lines({{kRead, 1, 4, 0, {}}, {kRead, 1, 5, 1, {}}, {kLocked, 1, 4, 1, 0}})) ==
        Places{0, 1});
  // Loops in loops, with what has no value in between.
  CHECK(idle_of(lines({{kLocked, 1, 5, 1, 1},
                       {kRead, 1, 6, 1, {}},
                       {kRead, 9, 7, {}, {}},
                       {kRead, 1, 6, 0, {}},
                       {kLocked, 1, 5, 1, 1},
                       {kRead, 1, 6, 0, {}},
                       {kLocked, 1, 5, 0, 1}})) == Places{0, 1, 3, 4, 5});
}

TEST_CASE("accesses of more than 8 bytes are known by digests, which nothing else sees") {
  using Places = std::vector<size_t>;
  CHECK(idle_of(lines({{kRead, 16, 4, 70, {}, 16},
                       {kFence, 0, 5, {}, {}},
                       {kRead, 16, 5, 80, {}, 16},
                       {kLocked, 16, 5, 80, 90, 16}})) == Places{0, 2});
  CHECK(idle_of(lines({{kRead, 16, 4, 70, {}, 24}, {kLocked, 16, 5, 70, 80, 24}})) == Places{0});
  CHECK(idle_of(lines({{kRead, 16, 4, 70, {}, 24}, {kLocked, 16, 5, 71, 80, 24}})) == Places{});
  Trace trace = lines({{kLocked, 16, 5, 1, 2, 16}, {kLocked, 16, 5, 1, 2, 8}});
  trace.add(trace.events[0], 5, 9, 1, 2);
  for (Event& event : trace.events) {
    EventBlock::drop_digests(event);
  }
  CHECK_FALSE(trace.read_value(trace.events[0]).has_value());
  CHECK(trace.hi(trace.events[0]) == 0);
  CHECK(trace.write_value(trace.events[1]) == 2);
  CHECK_FALSE(trace.write_value(trace.events[2]).has_value());
  CHECK(trace.hi(trace.events[2]) == 9);
}

TEST_CASE("attempts at several locks that got a part of them are left out") {
  using Places = std::vector<size_t>;
  CHECK(idle_of(locks("+a-a+b+axx-a-b")) == Places{0, 1});
  CHECK(idle_of(locks("+a-a.+b-b+a-a+b+ax")) == Places{0, 1, 3, 4, 5, 6});
  CHECK(idle_of(locks("+a+b-b-a+c-c+a+c+b")) == Places{});  // it does nothing with them
  CHECK(idle_of(locks("+a-a+b+a-a-bx")) == Places{0, 1});  // what it does with them is not recorded
  CHECK(idle_of(locks("+a+b-b-a+c-c+a+c+bx")) == Places{0, 1, 2, 3, 4, 5});
  CHECK(idle_of(locks("+a-a!..+b!.+ax")) == Places{0, 1});
  // What it has done with them, or before it had all; all that it needed; others that it needs.
  CHECK(idle_of(locks("+ax-a+b+ax")) == Places{});
  CHECK(idle_of(locks("+a-ax+b+ax")) == Places{});
  CHECK(idle_of(locks("+a-a+ax-a")) == Places{});
  CHECK(idle_of(locks("+a+b-b-a+a+bx")) == Places{});
  CHECK(idle_of(locks("+c-c+a+bx")) == Places{});
  CHECK(idle_of(locks("+a-a+b-bx")) == Places{});
  // A lock that it has all the time is not one of them.
  CHECK(idle_of(locks("+lx+a-a+b+ax-a-b-l")) == Places{2, 3});
  CHECK(idle_of(locks("+lx+a-a-l+b+ax")) == Places{});
}

TEST_CASE("what is no waiting loop counts") {
  using Places = std::vector<size_t>;
  // Nowhere, elsewhere, something else.
  CHECK(idle_of(lines({{kRead, 1, 0, 3, {}}, {kRead, 1, 0, 3, {}}})) == Places{});
  CHECK(idle_of(lines({{kRead, 1, 5, 3, {}}, {kRead, 1, 6, 4, {}}})) == Places{});
  CHECK(idle_of(lines({{kRead, 1, 5, 3, {}}, {kRead, 2, 5, 3, {}}})) == Places{});
  // A load and a locked operation that one line has are two things.
  CHECK(idle_of(lines({{kRead, 1, 5, 3, {}}, {kLocked, 1, 5, 4, 5}})) == Places{});
  CHECK(idle_of(lines({{kRead, 1, 5, 3, {}}, {kLocked, 1, 5, 4, 4}, {kRead, 2, 6, 0, {}}})) ==
        Places{});
  CHECK(idle_of(lines({{kRead, 2, 6, 3, {}}, {kRead, 1, 5, 3, {}}, {kLocked, 1, 5, 4, 5}})) ==
        Places{});
  // A store, or a value that is not known.
  CHECK(idle_of(lines({{kRead, 1, 5, 3, {}}, {kWrite, 2, 6, {}, 1}, {kRead, 1, 5, 4, {}}})) ==
        Places{});
  CHECK(idle_of(lines({{kRead, 1, 5, {}, {}}, {kRead, 1, 5, {}, {}}})) == Places{});
  CHECK(idle_of(lines({{kLocked, 1, 5, 3, 4}, {kLocked, 1, 5, 4, 5}})) == Places{});
  // A loop over an array: the bound is read again, the elements are not.
  CHECK(idle_of(lines({{kRead, 1, 5, 9, {}},
                       {kRead, 10, 6, 1, {}},
                       {kRead, 1, 5, 9, {}},
                       {kRead, 11, 6, 1, {}},
                       {kRead, 1, 5, 9, {}},
                       {kRead, 12, 6, 1, {}}})) == Places{});
  // A try that is not repeated; who goes to sleep until something happens does not look again.
  CHECK(idle_of(lines({{kLocked, 1, 5, 1, 1}, {kRead, 2, 6, 0, {}}})) == Places{});
  CHECK(
      idle_of(lines({{kRead, 1, 5, 1, {}}, {kFence, kSleeps, 6, {}, {}}, {kRead, 1, 5, 1, {}}})) ==
      Places{});
  CHECK(idle_of(lines({{kRead, 1, 5, 1, {}}, {kFence, 0, 6, {}, {}}, {kRead, 1, 5, 1, {}}})) ==
        Places{0});
}

TEST_CASE("with waiting loops the verdict is that of the program whose threads only get through") {
  std::mt19937_64 random(5);
  int runs = 0;
  int with_idle = 0;
  int mended = 0;
  for (int round = 0; round < rounds(3000, 60'000); ++round) {
    const auto kind = static_cast<Kind>(random() % 5);
    const bool guarded = random() % 3 != 0;  // everything is accessed under the lock
    machine::Program program;
    program.memory.assign(kLocations, 0);
    std::vector<Code> codes(2 + random() % 2);
    machine::Value fresh = 100;
    for (Code& code : codes) {
      for (uint64_t rounds_left = 1 + random() % 2; rounds_left > 0; --rounds_left) {
        code.begins.push_back(code.code.size());
        const auto access = [&] {
          const auto location = static_cast<machine::Location>(kFirst + random() % 2);
          code.code.push_back(random() % 2 == 0
                                  ? Instruction::load(4, location)
                                  : Instruction::store(location, machine::immediate(fresh++)));
        };
        code.acquire(kind);
        for (uint64_t left = 1 + random() % 2; left > 0; --left) {
          access();
        }
        code.release(kind);
        if (!guarded) {
          access();
        }
        code.ends.push_back(code.code.size());
      }
      program.threads.push_back({code.code, {}});
    }
    REQUIRE(program.check().empty());
    const auto happened = run(program, codes, random);
    if (!happened) {
      continue;
    }
    ++runs;
    replay(program, *happened);
    Trace resolved = happened->trace;
    resolve_idle_iterations(resolved);
    const Trace rest = without(happened->trace, happened->idle);
    INFO("round " << round << "\n" << show(happened->trace));
    size_t at = 0;
    for (const Event& event : resolved.events) {
      if (event.kind() != kIdle) {
        REQUIRE(at < rest.events.size());
        REQUIRE(event.kind() == rest.events[at].kind());
        REQUIRE(event.lo == rest.events[at].lo);
        ++at;
      }
    }
    REQUIRE(at == rest.events.size());
    for (const Property property : {Property::kSerializability, Property::kRobustness}) {
      const Verdict judged = verdict(resolved, property);
      REQUIRE(judged == verdict(rest, property));
      if (property == Property::kSerializability) {
        REQUIRE((!guarded || judged == Verdict::kClean));
        mended += guarded && verdict(happened->trace, property) != Verdict::kClean ? 1 : 0;
      }
    }
    with_idle += std::count(happened->idle.begin(), happened->idle.end(), true) != 0 ? 1 : 0;
  }
  MESSAGE(runs << " runs, " << with_idle << " with idle iterations, " << mended
               << " that were violations with them");
  CHECK(with_idle > runs / 4);
  CHECK(mended > runs / 20);
}
