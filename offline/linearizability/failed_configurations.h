// The configurations that a search has found to lead nowhere.
//
// Purpose     Lowe's memoisation, exactly: a hash finds candidates, whose words are all compared.
// Memory      The words, and 16 bytes an entry in a table at most half full.
// Complexity  O(words) to add, O(1) to look up what is not there. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tsomon::linearizability {

class FailedConfigurations {
 public:
  bool empty() const { return entries_ == 0; }
  size_t bytes() const {
    return words_.capacity() * sizeof(int64_t) + slots_.capacity() * sizeof(Slot);
  }

  void add(uint64_t hash, const std::vector<int64_t>& words) {
    if (2 * (entries_ + 1) > slots_.size()) {
      grow();
    }
    put({hash, words_.size() + 1});
    words_.push_back(static_cast<int64_t>(words.size()));
    words_.insert(words_.end(), words.begin(), words.end());
    ++entries_;
  }

  // `equals(words, size)` is asked for every entry with this hash.
  template <typename Equals>
  bool contains(uint64_t hash, const Equals& equals) const {
    if (entries_ == 0) {
      return false;
    }
    for (size_t at = hash & (slots_.size() - 1); slots_[at].place != 0;
         at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].hash == hash) {
        const int64_t* const words = words_.data() + slots_[at].place - 1;
        if (equals(words + 1, static_cast<size_t>(*words))) {
          return true;
        }
      }
    }
    return false;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    size_t place = 0;  // in words_, plus one
  };

  void put(Slot slot) {
    size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].place != 0) {
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = slot;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.place != 0) {
        put(slot);
      }
    }
  }

  std::vector<Slot> slots_;
  std::vector<int64_t> words_;
  size_t entries_ = 0;
};

}  // namespace tsomon::linearizability
