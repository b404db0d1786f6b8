#include "tso/order/value_locks.h"

#include <algorithm>

#include "tso/model/word_lock.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

class Word {
 public:
  Word(const Relation& relation, const RecordedValues& values, LocationId word,
       std::span<const ThreadAccesses> lists, std::vector<ValueSection>* sections)
      : relation_(relation), values_(values), word_(word), lists_(lists), sections_(*sections) {}

  // Whether it is a lock; then its sections have been added.
  bool find(size_t free) {
    const size_t others = sections_.size();
    const bool known = known_before(free);
    // What nobody gives back is more likely to be free with other values.
    const bool is_lock =
        std::all_of(lists_.begin(), lists_.end(),
                    [&](const ThreadAccesses& list) {
                      return known ? follow_known(list, free) : follow(list, free);
                    }) &&
        std::any_of(sections_.begin() + static_cast<std::ptrdiff_t>(others), sections_.end(),
                    [&](const ValueSection& one) { return known || one.given_back; });
    if (!is_lock) {
      sections_.resize(others);
    }
    return is_lock;
  }

 private:
  const Event& event(uint32_t e) const { return relation_.trace().events[e]; }
  bool known_before(size_t free) const {
    const auto& known = relation_.trace().lock_words;
    return std::any_of(known.begin(), known.end(), [&](const LockWord& one) {
      return one.word == relation_.locations().key(word_) && one.free == free;
    });
  }

  bool follow(const ThreadAccesses& list, size_t free) {
    bool holds = false;
    uint32_t acquisition = 0;
    for (const uint32_t e : list.writes) {
      spend(4);
      if (is(event(e), kinds::kLocks)) {
        return false;
      }
      switch (step_of_word(free, holds, event(e).kind() == EventKind::kReadModifyWrite,
                           values_.read(e), values_.written(e))) {
        case WordStep::kNothing:
          break;
        case WordStep::kTakes:
          holds = true;
          acquisition = e;
          break;
        case WordStep::kGives:
          holds = false;
          sections_.push_back({list.thread, word_, acquisition, e});
          break;
        case WordStep::kFrees:
          if (!comes_first(e, list)) {
            return false;
          }
          break;
        case WordStep::kBreaks:
          return false;
      }
    }
    if (holds) {
      add_open(list.thread, acquisition);
    }
    return true;
  }

  // Up to the thread's last access, which is the acquisition or comes after it.
  void add_open(ThreadId thread, uint32_t acquisition) {
    const auto events = relation_.of_thread(thread);
    const auto last = std::find_if(events.rbegin(), events.rend(), [&](uint32_t e) {
      spend(1);
      return is(event(e), kinds::kAccesses);
    });
    sections_.push_back({thread, word_, acquisition, *last, /*given_back=*/false});
  }

  // It is known to be a lock: what is asked is when the thread holds it. Where the slice begins that
  // is not known, nor what a locked operation found whose value may come from behind the slice. The
  // last of these before the thread gives the word back is what took it, or came later.
  bool follow_known(const ThreadAccesses& list, size_t free) {
    uint32_t from = kNone;  // it holds it from here on, if it gives it back
    bool certain = false;   // also if it does not
    for (const uint32_t e : list.writes) {
      spend(4);
      const bool locked = event(e).kind() == EventKind::kReadModifyWrite;
      const auto read = values_.read(e);
      const auto written = values_.written(e);
      if (!written) {
        return false;
      }
      if (is_free_value(free, *written)) {
        if (from != kNone && (certain || !locked || (read && !is_free_value(free, *read)))) {
          sections_.push_back({list.thread, word_, from, e});
        }
        from = kNone;
      } else if (locked && (!read || is_free_value(free, *read))) {
        from = e;
        certain = read.has_value();
      }
    }
    if (from != kNone && certain) {
      add_open(list.thread, from);
    }
    return true;
  }

  bool comes_first(uint32_t e, const ThreadAccesses& of) const {
    spend(lists_.size());
    return std::all_of(lists_.begin(), lists_.end(), [&](const ThreadAccesses& list) {
      return list.thread == of.thread || list.writes.empty() ||
             relation_.between(e, list.writes.front()) == Order::kBefore;
    });
  }

  const Relation& relation_;
  const RecordedValues& values_;
  LocationId word_;
  std::span<const ThreadAccesses> lists_;
  std::vector<ValueSection>& sections_;
};

}  // namespace

std::vector<ValueSection> find_value_sections(const Relation& relation, const AccessIndex& accesses,
                                              const RecordedValues& values) {
  std::vector<ValueSection> sections;
  if (relation.options().semantics != Semantics::kExact) {
    return sections;
  }
  const auto& events = relation.trace().events;
  for (LocationId word = 0; word < relation.locations().size(); ++word) {
    spend(1);
    const auto lists = accesses.at(word);
    const auto takes = [&](const ThreadAccesses& list) {
      return std::any_of(list.writes.begin(), list.writes.end(), [&](uint32_t e) {
        spend(1);
        return events[e].kind() == EventKind::kReadModifyWrite;
      });
    };
    if (!values.usable(word) || lists.size() < 2 ||
        std::none_of(lists.begin(), lists.end(), takes)) {
      continue;
    }
    Word lock(relation, values, word, lists, &sections);
    for (size_t free = 0; free < kFreeValues && !lock.find(free); ++free) {
    }
  }
  return sections;
}

}  // namespace tsomon
