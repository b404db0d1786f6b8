// Which words of memory have been locks by the values of a stream so far (tso/model/word_lock.h).
//
// Purpose     A slice shows sections that are under way where it begins only by their end. With what
//             is known here they exclude others all the same (tso/order/value_locks.h).
// From where  A word is followed from its first locked operation on. Plain stores to it from before
//             may still have been in a buffer then: if another thread's may, it is taken for no lock,
//             and if its own may, until another thread looks at it that early.
// Told        Words that have been given back once with such values: what comes is more likely to
//             agree with them. A locked operation that gives back does not count where it has read
//             what the store before it in the stream did not write: a store between them comes later.
// Later       What comes later may show that a word that was told to be a lock is none: misled().
// Complexity  A look-up for each store, which most do not get past; locked operations two.
// Memory      At most kMaxWords words, and kMaxPending stores of a thread. What is more is no lock.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tso/model/trace.h"
#include "tso/model/word_lock.h"
#include "tso/support/flat_map.h"
#include "tso/support/none.h"

namespace tsomon {

class LockWords {
 public:
  static constexpr const char* kWhy =
      "a word that was taken for a lock turned out to be none: what was judged with it may be "
      "wrong";

  void add(const EventBlock& block);
  // Events are missing: nothing is known any more.
  void forget();

  // The words that locked operations of the events change and that have been locks so far.
  std::vector<LockWord> among(const EventBlock& events) const;
  bool misled() const { return misled_; }

 private:
  static constexpr size_t kMaxWords = size_t{1} << 17;
  static constexpr size_t kMaxPending = 256;

  struct Word {
    LocationKey key;
    uint32_t next = kNone;  // of the same eight bytes
    bool may_be[kFreeValues] = {true, true, true};
    bool given_back[kFreeValues] = {};
    mutable bool told[kFreeValues] = {};
    std::optional<uint64_t> last;  // written
    std::array<std::vector<ThreadId>, kFreeValues> holders;
    // A store of the thread may have been in its buffer until then.
    struct Making {
      ThreadId thread = 0;
      int64_t over = 0;
    };
    std::optional<Making> making;
  };
  struct Pending {
    uint64_t address = 0;
    uint32_t size = 0;
    int64_t over = kTimeMax;  // when a draining event of the thread was
  };
  struct Thread {
    std::vector<Pending> pending;
    size_t drained = 0;           // so many of them
    int64_t overflow = kTimeMin;  // until then `pending` lacks stores
  };

  void note_pending(const Event& event);
  void note_drain(const Event& event, int64_t hi);
  bool may_be_pending(const Event& first, const Thread& thread) const;
  bool others_may_be_pending(const Event& first) const;
  uint32_t find(const LocationKey& key) const;
  void follow_word_of(const EventBlock& block, const Event& locked);
  void follow(const EventBlock& block, const Event& event);
  void step(const EventBlock& block, const Event& event, Word* word);
  void refute(size_t free, Word* word);

  FlatMap<uint64_t, uint32_t> first_;  // by eight bytes, or name: the first of `words_`
  std::vector<Word> words_;
  std::vector<Thread> threads_;
  bool forgotten_ = false;
  mutable bool misled_ = false;
};

}  // namespace tsomon
