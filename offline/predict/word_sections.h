// Sections of locks that a program has made of atomic operations, in the schedules of a trace.
//
// Purpose     What a unit does while it holds such a lock meets nothing that another thread does while
//             it holds it: many candidates are refused at once that the search would refuse one by one.
// Which       Words as in tso/order/value_locks.h, by the values that were recorded. What is stored to make
//             one is seen by what others take, or comes before it.
// Soundness   Take the stores of a schedule in their order. Locked operations read what they read in
//             the trace, but for one that nothing comes after. What takes the word has read a free
//             value then, and who wrote that held the word, or made it before anybody took it. So
//             of two threads that take it one gives it back before the other one takes it.
// Attempts    What takes the word in the trace fails where it finds, as another thread holds the word, the
//             value that it would write, and is no access of a unit then (failed_attempts.h). It
//             fails whatever it finds where one value is free and several threads have taken the word
//             again and again.
// Misses      As value_locks.h; more than kMaxHeld that a thread holds at once. And what counts from one
//             value and back to it, and never met another thread's count in the trace, is taken for a
//             lock: that another one counts in between is not reported.
// Complexity  O(writes of words with locked operations), three times, and O(threads) for a thread that
//             makes one; exclude(): O(log(sections)).
// Memory      16 bytes a section, 4 more for each one that is held when it begins or ends.
// Errors      Throws WorkEnded.
// Thread-safety: const after construction.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "offline/predict/known_values.h"
#include "offline/predict/model.h"
#include "offline/predict/query.h"

namespace tsomon::predict {

class WordSections {
 public:
  static constexpr size_t kMaxHeld = 8;

  // `known`: null or of the model's trace.
  WordSections(const Model& model, const KnownValues* known);

  // No schedule has the detour: both threads hold a lock all the time, or the other one tries to.
  bool exclude(const Detour& detour) const;

 private:
  struct Section {
    uint32_t word = 0;  // cell
    NodeId acquisition = kNone;
    NodeId release = kNone;  // kNone: not in the trace
    bool simple = true;      // its thread stores nothing else in the word
    bool of_lock = false;    // whose values are those of no counter

    bool has(NodeId id) const { return acquisition <= id && id <= release; }
  };
  struct Change {  // of what a thread holds
    NodeId from = kNone;
    uint32_t first = 0;  // in pool_
    uint32_t count = 0;
  };
  using Making = std::pair<uint32_t, NodeId>;  // thread, store

  bool is_word(uint32_t cell) const;
  bool follow_all(uint32_t cell, size_t free, const KnownValues& known);
  bool follow(const ThreadList& list, uint32_t cell, size_t free, const KnownValues& known);
  bool comes_last(NodeId end, uint32_t cell) const;
  bool made_first(size_t first_section) const;
  bool seen_by(NodeId making, NodeId acquisition) const;
  bool taken_again(size_t first_section) const;
  bool would_fail(const Section& attempt, const Section& other) const;
  void group();
  std::span<const uint32_t> held(NodeId id) const;

  const Model& model_;
  std::vector<Section> sections_;
  std::vector<Making> makings_;  // of the word that is looked at, the last of each thread
  std::vector<std::vector<Change>> changes_;  // by thread
  std::vector<uint32_t> pool_;                // sections
};
static_assert(kNone == UINT32_MAX, "no node comes after it");

}  // namespace tsomon::predict
