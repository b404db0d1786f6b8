// Words that are locks by their values: in what happened two threads never hold one at once, neither
// by all of a trace nor by a slice and what the stream before it has shown.
#include "online/stream/lock_words.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/online/sliced_run.h"
#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tests/tso/random_trace.h"
#include "tso/check/indexed_trace.h"
#include "tso/order/value_locks.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

const int kRounds = rounds(2'000, 100'000);

std::vector<ValueSection> sections_of(const Trace& trace) {
  const IndexedTrace indexed(trace, {});
  const RecordedValues values(indexed.relation, indexed.accesses);
  return find_value_sections(indexed.relation, indexed.accesses, values);
}

// Pairs of sections of one word, by two threads. Each must be over before the other begins.
int exclusive_pairs(const Trace& trace, const std::vector<Step>& execution) {
  std::vector<size_t> effect(trace.events.size(), 0);
  for (size_t at = 0; at < execution.size(); ++at) {
    effect[execution[at].event] = at;  // the commit of a store comes after its issue
  }
  int pairs = 0;
  const std::vector<ValueSection> sections = sections_of(trace);
  for (const ValueSection& a : sections) {
    for (const ValueSection& b : sections) {
      if (a.word != b.word || a.thread >= b.thread) {
        continue;
      }
      ++pairs;
      REQUIRE(
          (effect[a.release] < effect[b.acquisition] || effect[b.release] < effect[a.acquisition]));
    }
  }
  return pairs;
}

// Threads that take and give back words, and now and then do what makes of a word no lock.
class Run {
 public:
  explicit Run(std::mt19937_64& random)
      : random_(random),
        threads_(2 + random() % 2),
        memory_(1 + random() % 2, 0),
        wrong_(random() % 3 == 0 ? 4 : 0) {
    const size_t steps = 10 + random() % 40;
    for (size_t i = 0; i < steps; ++i) {
      step(static_cast<ThreadId>(random() % threads_.size()));
    }
    for (ThreadId thread = 0; thread < threads_.size(); ++thread) {
      drain(thread);
    }
  }

  RandomTrace take() { return std::move(result_); }

 private:
  struct Thread {
    std::vector<std::pair<uint32_t, uint64_t>> buffer;  // event, value; on word or beside
    std::vector<bool> holds = std::vector<bool>(2, false);
    int64_t lo = 0;
  };

  bool percent(uint32_t chance) { return random_() % 100 < chance; }

  uint32_t add(ThreadId thread, EventKind kind, uint64_t address, std::optional<uint64_t> read,
               std::optional<uint64_t> written) {
    now_ += 4;
    Event event;
    event.set_kind(kind);
    event.thread = thread;
    event.address = address;
    event.size = 8;
    const int64_t lo = std::max(threads_[thread].lo, now_ - static_cast<int64_t>(random_() % 12));
    threads_[thread].lo = lo;
    const auto number = static_cast<uint32_t>(result_.trace.events.size());
    result_.trace.add(event, lo, now_ + static_cast<int64_t>(random_() % 12), read, written);
    result_.execution.push_back({false, number});
    return number;
  }

  void commit(ThreadId thread) {
    auto& buffer = threads_[thread].buffer;
    const auto [event, value] = buffer.front();
    buffer.erase(buffer.begin());
    result_.execution.push_back({true, event});
    if (const uint64_t word = result_.trace.events[event].address / 8; word < memory_.size()) {
      memory_[word] = value;
    }
  }
  void drain(ThreadId thread) {
    while (!threads_[thread].buffer.empty()) {
      commit(thread);
    }
  }

  void store(ThreadId thread, size_t word, uint64_t value) {
    threads_[thread].buffer.emplace_back(add(thread, EventKind::kWrite, 8 * word, {}, value),
                                         value);
  }
  void exchange(ThreadId thread, size_t word, uint64_t value) {
    drain(thread);
    add(thread, EventKind::kReadModifyWrite, 8 * word, memory_[word], value);
    memory_[word] = value;
  }

  void step(ThreadId thread) {
    Thread& one = threads_[thread];
    if (!one.buffer.empty() && percent(40)) {
      commit(thread);
      return;
    }
    const size_t word = random_() % memory_.size();
    if (percent(wrong_)) {
      if (percent(50)) {
        store(thread, word, random_() % 2);
      } else {
        exchange(thread, word, 0);
      }
    } else if (percent(20)) {
      store(thread, 10, 1);  // beside the words
    } else if (one.holds[word]) {
      if (percent(80)) {
        store(thread, word, 0);
      } else {
        exchange(thread, word, 0);
      }
      one.holds[word] = false;
    } else {
      drain(thread);
      one.holds[word] = memory_[word] == 0;
      exchange(thread, word, 1);
    }
  }

  std::mt19937_64& random_;
  RandomTrace result_;
  std::vector<Thread> threads_;
  std::vector<uint64_t> memory_;
  uint32_t wrong_;
  int64_t now_ = 0;
};

}  // namespace

TEST_CASE("sections of words exclude each other in what happened") {
  constexpr uint64_t kSeed = 20261127;
  std::mt19937_64 random(kSeed);
  int pairs = 0;
  int in_slices = 0;
  int by_stream = 0;
  for (int round = 0; round < kRounds; ++round) {
    const RandomTrace happened = Run(random).take();
    INFO("seed " << kSeed << " round " << round << "\n" << show(happened.trace));
    pairs += exclusive_pairs(happened.trace, happened.execution);

    SlicedRun run(random, happened);
    const int alone = exclusive_pairs(run.trace, run.execution);
    in_slices += alone;
    run.trace.lock_words = run.history.lock_words(run.slice);
    by_stream += std::max(0, exclusive_pairs(run.trace, run.execution) - alone);
  }
  MESSAGE(pairs << " pairs of sections in traces, " << in_slices << " in slices, " << by_stream
                << " more by what came before");
  CHECK(pairs > kRounds);
  CHECK(in_slices > kRounds / 50);
  CHECK(by_stream > kRounds / 100);
}

TEST_CASE("a word is told to be a lock once it has been given back") {
  const Trace trace = mini_trace("T0:U(l=0,1) T1:U(l=1,1) T0:W(l=0)");
  EventBlock taken;
  taken.append(trace, 0, 2);
  EventBlock given_back;
  given_back.append(trace, 2, 3);
  LockWords words;
  words.add(taken);
  CHECK(words.among(trace).empty());
  words.add(given_back);
  CHECK(words.among(trace).size() == 2);
}

TEST_CASE("a count that one thread's events show alone is not told to be a lock") {
  // Of two threads that count up T1's events come first; T0's are between them in memory.
  const Trace counted = mini_trace("T1:U(n=0,1) T1:U(n=3,4) T0:U(n=1,2) T0:U(n=2,3)");
  EventBlock first;
  first.append(counted, 0, 2);
  EventBlock others;
  others.append(counted, 2, 4);
  LockWords words;
  words.add(first);
  CHECK(words.among(counted).empty());
  words.add(others);
  CHECK_FALSE(words.misled());
}

TEST_CASE("the maker of a word may have stored to it after another thread has taken it") {
  EventBlock events = mini_trace("T0:W(l=0) T0:U(l=0,1) T1:U(l=0,1) T0:W(l=0) T1:W(l=0)");
  for (size_t e = 0; e < events.events.size(); ++e) {
    events.events[e].lo = static_cast<int64_t>(e);
  }
  LockWords words;
  words.add(events);
  CHECK(words.among(events).size() == 2);  // T0's first operation is over
  events.events[2].lo = events.events[1].lo;
  LockWords early;
  early.add(events);
  CHECK(early.among(events).empty());
}

TEST_CASE("a section that a trace cuts off excludes others") {
  // T1 holds l where the trace ends, after the end of a unit.
  const Trace trace =
      mini_trace("T0:U(l=0,1) T0:W(l=0) T1:[U(l=0,1) T1:W(x)] T0:[U(l=0,1) T0:R(x)] T0:W(l=0)");
  Trace cut;
  static_cast<EventBlock&>(cut) = trace;
  cut.symbols = trace.symbols;
  for (const ValueSection& section : sections_of(cut)) {
    CHECK(is(cut.events[section.release], kinds::kAccesses));
  }
  CHECK(sections_of(cut).size() == 3);
}

TEST_CASE("what is no lock any more has misled those who asked before") {
  const Trace trace = mini_trace("T0:U(l=0,1) T0:W(x) T0:W(l=0) T1:U(l=0,1) T0:W(l=0)");
  LockWords words;
  EventBlock sections;
  sections.append(trace, 0, 4);
  words.add(sections);
  const std::vector<LockWord> known = words.among(trace);
  REQUIRE(known.size() == 2);  // a free word is 0, or has no lowest bit
  CHECK(known[0].free == 0);
  CHECK(known[1].free == 2);
  CHECK_FALSE(words.misled());
  EventBlock last;
  last.append(trace, 4, 5);
  words.add(last);  // by a thread that does not hold it
  CHECK(words.misled());
  CHECK(words.among(trace).empty());
}

TEST_CASE(
    "a word whose making may still be in a buffer is no lock; one that others overlap is none") {
  LockWords made;
  made.add(mini_trace("T1:W(l=0) T0:U(l=0,1) T0:W(l=0)"));
  CHECK(made.among(mini_trace("T0:U(l=0,1)")).empty());
  LockWords drained;
  drained.add(mini_trace("T1:W(l=0) T1:F T0:U(l=0,1) T0:W(l=0)"));
  CHECK(drained.among(mini_trace("T0:U(l=0,1)")).size() == 2);
  drained.forget();
  CHECK(drained.among(mini_trace("T0:U(l=0,1)")).empty());

  EventBlock block;
  Event take;
  take.set_kind(EventKind::kReadModifyWrite);
  take.address = 0x1000;
  take.size = 4;
  block.add(take, 0, 0, 0, 1);
  block.add(take, 0, 0, 1, 0);
  LockWords words;
  words.add(block);
  CHECK(words.among(block).size() == 2);
  EventBlock wide;
  Event store;
  store.set_kind(EventKind::kWrite);
  store.address = 0x1002;
  store.size = 8;
  wide.add(store, 1, 1, {}, 0);
  words.add(wide);
  CHECK(words.among(block).empty());
}
