// A vector clock of store numbers: of every thread how many of its stores come before something.
//
// Purpose     What chains of lock releases and acquisitions, starts and joins of threads order.
// Entries     Of threads that have one, by thread; forget_if() drops those that say nothing any
//             more, so that a clock is as long as threads are active, however many there were.
// Complexity  O(log entries) to look up and O(entries) to raise or join; a look-up is O(1), and a
//             join one pass without branches, as long as no entry was dropped.
// Source      Vector clocks as of Mattern (1989), over store numbers instead of events.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tso/model/event.h"

namespace tsomon {

class StoreClock {
 public:
  size_t size() const { return threads_.size(); }

  // 0: no entry.
  uint64_t of(ThreadId thread) const {
    if (thread < threads_.size() && threads_[thread] == thread) {
      return stores_[thread];
    }
    const auto at = std::lower_bound(threads_.begin(), threads_.end(), thread);
    return at == threads_.end() || *at != thread ? 0 : stores_[place(at)];
  }

  void raise(ThreadId thread, uint64_t stores) {
    const auto at = std::lower_bound(threads_.begin(), threads_.end(), thread);
    const size_t i = place(at);
    if (at == threads_.end() || *at != thread) {
      threads_.insert(at, thread);
      stores_.insert(stores_.begin() + static_cast<ptrdiff_t>(i), stores);
    } else {
      stores_[i] = std::max(stores_[i], stores);
    }
  }

  void join(const StoreClock& other) {
    if (threads_ != other.threads_) {
      take_entries(other);
    }
    if (threads_.size() == other.threads_.size()) {
      for (size_t i = 0; i < stores_.size(); ++i) {
        stores_[i] = std::max(stores_[i], other.stores_[i]);
      }
      return;
    }
    size_t at = 0;
    for (size_t i = 0; i < other.threads_.size(); ++i, ++at) {
      while (threads_[at] != other.threads_[i]) {
        ++at;
      }
      stores_[at] = std::max(stores_[at], other.stores_[i]);
    }
  }

  // Drops the entries of threads of which `past(thread)` holds.
  template <typename Past>
  void forget_if(const Past& past) {
    size_t kept = 0;
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (!past(threads_[i])) {
        threads_[kept] = threads_[i];
        stores_[kept++] = stores_[i];
      }
    }
    threads_.resize(kept);
    stores_.resize(kept);
  }

 private:
  size_t place(std::vector<ThreadId>::const_iterator at) const {
    return static_cast<size_t>(at - threads_.begin());
  }

  // The threads of the other one become threads of this one, with 0 where they are new.
  void take_entries(const StoreClock& other) {
    size_t missing = 0;
    auto mine = threads_.begin();
    for (const ThreadId thread : other.threads_) {
      mine = std::find_if(mine, threads_.end(), [&](ThreadId id) { return id >= thread; });
      missing += mine == threads_.end() || *mine != thread ? 1 : 0;
    }
    if (missing == 0) {
      return;
    }
    size_t from = threads_.size();
    size_t theirs = other.threads_.size();
    threads_.resize(from + missing);
    stores_.resize(from + missing);
    // From the back, so that nothing is overwritten that is still to be moved.
    for (size_t to = threads_.size(); theirs != 0; --to) {
      const ThreadId last = other.threads_[theirs - 1];
      if (from != 0 && threads_[from - 1] >= last) {
        theirs -= threads_[from - 1] == last ? 1 : 0;
        --from;
        threads_[to - 1] = threads_[from];
        stores_[to - 1] = stores_[from];
      } else {
        --theirs;
        threads_[to - 1] = last;
        stores_[to - 1] = 0;
      }
    }
  }

  std::vector<ThreadId> threads_;  // ascending
  std::vector<uint64_t> stores_;   // of each
};

}  // namespace tsomon
