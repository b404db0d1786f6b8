// Questions about one trace, answered by several threads.
//
// Purpose     Races, deadlocks and atomicity violations ask alike: many questions that have nothing
//             to do with each other. The answers come in their order, and neither they nor the
//             work that is counted depend on how many threads there are.
// Memory      A query for each thread: see query.h.
// Errors      Throws WorkEnded; each question may take what was left of the work when they began.
// Thread-safety: none; it starts threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "offline/predict/query.h"
#include "tso/support/ordered_work.h"
#include "tso/support/work.h"

namespace tsomon::predict {

class Questions {
 public:
  Questions(Query& query, unsigned jobs) : first_(query), jobs_(jobs) {}

  // commit(i, answer(query, i)) for i below `count`, the first one in the order of i.
  template <typename Answer, typename Commit>
  void in_order(size_t count, const Answer& answer, const Commit& commit) {
    WorkBounds bounds;
    bounds.max_work = work_left();
    const auto compute = [&](size_t i) {
      WorkMeter meter(bounds);
      auto mine = [&] {
        const WorkScope scope(&meter);
        std::unique_ptr<Query> query = take();
        auto answered = answer(*query, i);
        give_back(std::move(query));
        return answered;
      }();
      return std::pair(std::move(mine), meter.work());  // all of it: the scope has ended
    };
    work_in_order(count, jobs_, compute, [&](size_t i, auto&& computed) {
      spend(computed.second);
      commit(i, std::move(computed.first));
    });
  }

 private:
  static uint64_t work_left() {
    const WorkMeter* const meter = current_meter();
    return meter == nullptr ? UINT64_MAX
                            : meter->max_work() - std::min(meter->max_work(), meter->work());
  }

  std::unique_ptr<Query> take() {
    const std::lock_guard<std::mutex> held(mutex_);
    if (free_.empty()) {
      return first_.another();
    }
    std::unique_ptr<Query> query = std::move(free_.back());
    free_.pop_back();
    return query;
  }
  void give_back(std::unique_ptr<Query> query) {
    const std::lock_guard<std::mutex> held(mutex_);
    free_.push_back(std::move(query));
  }

  Query& first_;
  const unsigned jobs_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Query>> free_;
};

// Questions that wait until all are asked together. The result would be the same with another
// number of them, but for what is looked for in vain. Few at first: what is found early is known
// when the work ends. An entry has the questions about the same places.
template <typename Entry>
class WaitingQuestions {
 public:
  // So many more of the entry wait. `first`: none did.
  void add(Entry* entry, bool first, size_t count) {
    if (first) {
      entries_.push_back(entry);
    }
    count_ += count;
  }
  bool empty() const { return entries_.empty(); }
  bool full() const { return count_ >= most_; }

  // commit(entry, answer(query, *entry)) in the order of their coming; commit() may add some again.
  template <typename Answer, typename Commit>
  void ask(Questions& questions, const Answer& answer, const Commit& commit) {
    std::vector<Entry*> asked;
    asked.swap(entries_);
    count_ = 0;
    most_ = std::min(2 * most_, kMost);
    questions.in_order(
        asked.size(), [&](Query& query, size_t i) { return answer(query, *asked[i]); },
        [&](size_t i, auto answered) { commit(asked[i], std::move(answered)); });
  }

 private:
  static constexpr size_t kFirst = 64;
  static constexpr size_t kMost = 4'096;

  std::vector<Entry*> entries_;
  size_t count_ = 0;
  size_t most_ = kFirst;
};

}  // namespace tsomon::predict
