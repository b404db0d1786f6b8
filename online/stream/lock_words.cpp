#include "online/stream/lock_words.h"

#include <algorithm>
#include <atomic>

#include "tso/model/location_table.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

uint64_t part_of(uint64_t address, uint32_t size) { return size == 0 ? ~address : address / 8; }

constexpr uint32_t kChanges = kind_mask(EventKind::kWrite) | kind_mask(EventKind::kReadModifyWrite);

}  // namespace

void LockWords::add(const EventBlock& block) {
  if (forgotten_) {
    return;
  }
  for (const Event& event : block.events) {
    if (is(event, kChanges)) {
      follow(block, event);
    }
    if (event.kind() == EventKind::kWrite) {
      note_pending(event);
    } else if (is(event, kinds::kDrains)) {
      note_drain(event, block.hi(event));
    }
  }
}

void LockWords::forget() {
  forgotten_ = true;
  for (Word& word : words_) {
    for (size_t free = 0; free < kFreeValues; ++free) {
      refute(free, &word);
    }
  }
}

std::vector<LockWord> LockWords::among(const EventBlock& events) const {
  std::vector<LockWord> found;
  FlatMap<uint32_t, bool> seen;
  for (const Event& event : events.events) {
    if (event.kind() != EventKind::kReadModifyWrite) {
      continue;
    }
    const uint32_t number = find({event.address, event.size});
    if (number == kNone || !seen.try_emplace(number, true).second) {
      continue;
    }
    const Word& word = words_[number];
    for (size_t free = 0; free < kFreeValues; ++free) {
      if (word.may_be[free] && word.given_back[free]) {
        // By several threads, all of which say so.
        std::atomic_ref(word.told[free]).store(true, std::memory_order_relaxed);
        found.push_back({word.key, static_cast<uint32_t>(free)});
      }
    }
  }
  return found;
}

void LockWords::note_pending(const Event& event) {
  if (event.thread >= threads_.size()) {
    threads_.resize(event.thread + 1);
  }
  Thread& thread = threads_[event.thread];
  if (thread.pending.size() == kMaxPending) {
    if (thread.drained == 0) {
      thread.overflow = kTimeMax;
      return;
    }
    // In program order, and so are the drains.
    size_t over = 0;
    while (over < thread.drained && thread.pending[over].over < event.lo) {
      ++over;
    }
    if (over == 0) {
      thread.overflow = kTimeMax;
      return;
    }
    thread.pending.erase(thread.pending.begin(),
                         thread.pending.begin() + static_cast<std::ptrdiff_t>(over));
    thread.drained -= over;
  }
  thread.pending.push_back({event.address, event.size, kTimeMax});
}

void LockWords::note_drain(const Event& event, int64_t hi) {
  if (event.thread >= threads_.size()) {
    return;
  }
  Thread& thread = threads_[event.thread];
  if (thread.overflow == kTimeMax) {
    thread.overflow = hi;
  }
  for (; thread.drained < thread.pending.size(); ++thread.drained) {
    thread.pending[thread.drained].over = hi;
  }
}

// Whether a store of the thread to the bytes of the first locked operation on a word may have been
// in a buffer.
bool LockWords::may_be_pending(const Event& first, const Thread& thread) const {
  spend(1);
  if (thread.overflow >= first.lo) {
    return true;
  }
  if (thread.pending.empty() || thread.pending.back().over < first.lo) {
    return false;
  }
  spend(thread.pending.size());
  return std::any_of(thread.pending.begin(), thread.pending.end(), [&](const Pending& store) {
    return store.over >= first.lo &&
           overlap({store.address, store.size}, {first.address, first.size});
  });
}

bool LockWords::others_may_be_pending(const Event& first) const {
  for (size_t id = 0; id < threads_.size(); ++id) {
    if (id != first.thread && may_be_pending(first, threads_[id])) {
      return true;
    }
  }
  return false;
}

uint32_t LockWords::find(const LocationKey& key) const {
  const uint32_t* const first = first_.find(part_of(key.address, key.size));
  uint32_t number = first == nullptr ? kNone : *first;
  while (number != kNone && !(words_[number].key == key)) {
    number = words_[number].next;
  }
  return number;
}

// What is longer than eight bytes, or lies across two, is not followed.
void LockWords::follow_word_of(const EventBlock& block, const Event& event) {
  const LocationKey key{event.address, event.size};
  if (find(key) != kNone || words_.size() == kMaxWords ||
      (event.size != 0 &&
       part_of(event.address, 1) != part_of(event.address + event.size - 1, 1))) {
    return;
  }
  uint32_t& first = *first_.try_emplace(part_of(key.address, key.size), kNone).first;
  Word word;
  word.key = key;
  word.next = first;
  if (event.thread < threads_.size() && may_be_pending(event, threads_[event.thread])) {
    word.making = {event.thread, block.hi(event)};
  }
  if (others_may_be_pending(event)) {
    std::fill(std::begin(word.may_be), std::end(word.may_be), false);
  }
  first = static_cast<uint32_t>(words_.size());
  words_.push_back(std::move(word));
}

void LockWords::follow(const EventBlock& block, const Event& event) {
  if (event.kind() == EventKind::kReadModifyWrite) {
    follow_word_of(block, event);
  }
  const LocationKey key{event.address, event.size};
  const uint64_t last = part_of(event.address + std::max<uint32_t>(event.size, 1) - 1, event.size);
  for (uint64_t part = part_of(event.address, event.size);; ++part) {
    const uint32_t* const first = first_.find(part);
    for (uint32_t at = first == nullptr ? kNone : *first; at != kNone; at = words_[at].next) {
      Word& word = words_[at];
      const bool too_early =
          word.making && event.thread != word.making->thread && event.lo <= word.making->over;
      if (word.key == key && !too_early) {
        step(block, event, &word);
      } else if (overlap(word.key, key)) {
        for (size_t free = 0; free < kFreeValues; ++free) {
          refute(free, &word);
        }
      }
    }
    if (event.size == 0 || part == last) {
      return;
    }
  }
}

void LockWords::step(const EventBlock& block, const Event& event, Word* word) {
  const bool locked = event.kind() == EventKind::kReadModifyWrite;
  const auto read = block.read_value(event);
  const auto written = block.write_value(event);
  const bool follows_last = !locked || read == word->last;
  for (size_t free = 0; free < kFreeValues; ++free) {
    if (!word->may_be[free]) {
      continue;
    }
    std::vector<ThreadId>& holders = word->holders[free];
    const auto at = std::find(holders.begin(), holders.end(), event.thread);
    switch (step_of_word(free, at != holders.end(), locked, read, written)) {
      case WordStep::kNothing:
        break;
      case WordStep::kTakes:
        holders.push_back(event.thread);
        break;
      case WordStep::kGives:
        holders.erase(at);
        word->given_back[free] = word->given_back[free] || follows_last;
        break;
      case WordStep::kFrees:
      case WordStep::kBreaks:
        refute(free, word);
        break;
    }
  }
  word->last = written;
}

void LockWords::refute(size_t free, Word* word) {
  misled_ = misled_ || (word->may_be[free] && word->told[free]);
  word->may_be[free] = false;
  word->holders[free] = {};
}

}  // namespace tsomon
