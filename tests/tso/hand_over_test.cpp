// Semaphores and channels: what they order, and that it is all that a count of the posts shows.
#include "tso/model/hand_over.h"

#include <algorithm>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "tests/rounds.h"
#include "tests/tso/mini_trace.h"
#include "tso/check/analysis.h"

using namespace tsomon;
using namespace tsomon::testing;

namespace {

Verdict verdict(std::string_view text, Property property = Property::kSerializability) {
  AnalysisOptions options;
  options.property = property;
  const auto result = analyse(mini_trace(text), options);
  REQUIRE(result.has_value());
  REQUIRE(result->complete());
  return result->verdict();
}

// Runs the posts and takes of a trace in every order in which threads keep theirs, takes follow one
// another as they did, a post stays behind the takes that it came after, and no take finds nothing.
class Reordered {
 public:
  explicit Reordered(const Trace& trace) : trace_(trace), done_(trace.events.size(), false) {}

  // Of each order, event by event.
  template <typename Visit>
  void for_each(const Visit& visit) {
    const auto n = static_cast<uint32_t>(trace_.events.size());
    if (order_.size() + 1 == n) {  // without the count
      visit(order_);
      return;
    }
    for (uint32_t e = 1; e < n; ++e) {
      if (done_[e] || !may_come(e)) {
        continue;
      }
      const int64_t change = trace_.events[e].kind() == EventKind::kPost ? 1 : -1;
      if (count() + change < 0) {
        continue;
      }
      done_[e] = true;
      order_.push_back(e);
      for_each(visit);
      order_.pop_back();
      done_[e] = false;
    }
  }

 private:
  bool may_come(uint32_t e) const {
    for (uint32_t f = 1; f < e; ++f) {
      const bool take = trace_.events[f].kind() == EventKind::kTake;
      if (!done_[f] && (take || trace_.events[f].thread == trace_.events[e].thread)) {
        return false;
      }
    }
    return true;
  }
  int64_t count() const {
    auto count = static_cast<int64_t>(*trace_.write_value(trace_.events[0]));
    for (const uint32_t e : order_) {
      count += trace_.events[e].kind() == EventKind::kPost ? 1 : -1;
    }
    return count;
  }

  const Trace& trace_;
  std::vector<bool> done_;
  std::vector<uint32_t> order_;
};

}  // namespace

TEST_CASE("what a semaphore guards is in order, whoever begins first") {
  // Both units begin before either has the semaphore.
  CHECK(verdict("T0: count(s=1) [ T1: [ T0: take(s) R(x) W(x) post(s) ] "
                "T1: take(s) R(x) W(x) post(s) ]") == Verdict::kClean);
  // Its own accesses are no data: two may hold a semaphore of two.
  CHECK(verdict("T0: count(s=2) [ take(s) T1: [ take(s) T0: post(s) ] T1: post(s) ]") ==
        Verdict::kClean);
  CHECK(verdict("T0: count(s=2) [ take(s) R(x) T1: [ take(s) R(x) W(x) post(s) ] "
                "T0: W(x) post(s) ]") == Verdict::kDefinite);
  // A store before a post has left the buffer when the post is there.
  CHECK(verdict("T0: count(s=0) [ W(x) W(y) post(s) ] T1: take(s) [ R(y) R(x) ]") ==
        Verdict::kClean);
}

TEST_CASE("a certain order of a post and a take orders their units") {
  CHECK(verdict("T0: count(s=0) [ T1: [ R(x) post(s) ] T0: take(s) W(x) ]") == Verdict::kClean);
  // Each waits for the other in the middle of its unit.
  CHECK(verdict("T0: count(s=0) count(t=0) [ post(s) T1: [ take(s) post(t) T0: take(t) ] "
                "T1: ]") == Verdict::kDefinite);
  CHECK(verdict("T0: count(s=1) count(t=0) [ post(s) T1: [ take(s) post(t) T0: take(t) ] "
                "T1: ]") == Verdict::kClean);
  // Nothing follows from a count that is not known, or that ended.
  CHECK(verdict("T0: count(t=0) [ post(s) T1: [ take(s) post(t) T0: take(t) ] T1: ]") ==
        Verdict::kClean);
  CHECK(verdict("T0: count(s=0) count(t=0) destroy(s) [ post(s) T1: [ take(s) post(t) "
                "T0: take(t) ] T1: ]") == Verdict::kClean);
}

TEST_CASE("what is sent comes before what follows a later receive") {
  CHECK(verdict("T0: [ send(c) T1: [ receive(c) send(d) T0: receive(d) ] T1: ]") ==
        Verdict::kDefinite);
  CHECK(verdict("T0: [ receive(c) T1: [ send(c) ] T0: ]") == Verdict::kClean);
  // The stores before it have left the buffer.
  CHECK(verdict("T0: [ W(x) W(y) ] send(c) T1: receive(c) [ R(y) R(x) ]") == Verdict::kClean);
  CHECK(verdict("T0: [ W(x) W(y) ] T1: receive(c) [ R(y) R(x) ]") == Verdict::kPossible);
  // Otherwise it drains nothing.
  CHECK(verdict("T0: W(x) send(c) T1: W(y) send(d) T0: R(y) T1: R(x)", Property::kRobustness) ==
        Verdict::kPossible);
  CHECK(verdict("T0: count(c=0) W(x) post(c) T1: count(d=0) W(y) post(d) T0: R(y) T1: R(x)",
                Property::kRobustness) == Verdict::kClean);
}

TEST_CASE(
    "orders of a semaphore hold however its posts are moved, and are all that its count shows") {
  std::mt19937_64 random(11);
  int concluded = 0;
  for (int round = 0; round < rounds(400, 10000); ++round) {
    Trace trace;
    const auto add = [&](EventKind kind, ThreadId thread, std::optional<uint64_t> value = {}) {
      Event event;
      event.set_kind(kind);
      event.thread = thread;
      const auto time = static_cast<int64_t>(trace.events.size());
      trace.add(event, time, time, {}, value);
    };
    uint64_t count = random() % 3;
    add(EventKind::kCount, 0, count);
    const bool apart = random() % 2 == 0;  // one thread takes, the others post
    while (trace.events.size() < 9) {
      const auto thread = static_cast<ThreadId>(random() % 4);
      const bool posts = apart ? thread < 3 : random() % 2 == 0;
      if (posts || count > 0) {
        add(posts ? EventKind::kPost : EventKind::kTake, thread);
        count += posts ? 1 : static_cast<uint64_t>(-1);
      }
    }
    std::set<std::pair<uint32_t, uint32_t>> always;
    for (uint32_t p = 1; p < trace.events.size(); ++p) {
      for (uint32_t t = 1; t < trace.events.size(); ++t) {
        if (trace.events[p].kind() == EventKind::kPost &&
            trace.events[t].kind() == EventKind::kTake &&
            trace.events[p].thread != trace.events[t].thread) {
          always.emplace(p, t);
        }
      }
    }
    Reordered(trace).for_each([&](const std::vector<uint32_t>& order) {
      std::erase_if(always, [&](const auto& pair) {
        return std::find(order.begin(), order.end(), pair.first) >
               std::find(order.begin(), order.end(), pair.second);
      });
    });
    std::set<std::pair<uint32_t, uint32_t>> found;
    for (const HandOver& one : hand_overs(trace)) {
      // With what comes before it in its thread, and for what comes behind in the other.
      for (uint32_t p = 1; p <= one.from; ++p) {
        for (uint32_t t = one.to; t < trace.events.size(); ++t) {
          if (trace.events[p].thread == trace.events[one.from].thread &&
              trace.events[t].thread == trace.events[one.to].thread &&
              trace.events[p].kind() == EventKind::kPost &&
              trace.events[t].kind() == EventKind::kTake) {
            found.emplace(p, t);
          }
        }
      }
    }
    concluded += static_cast<int>(found.size());
    INFO("round " << round << "\n" << show(trace));
    REQUIRE(std::includes(always.begin(), always.end(), found.begin(), found.end()));
    if (apart) {
      REQUIRE(found == always);
    }
  }
  CHECK(concluded > 1000);
}
