#include "offline/predict/word_sections.h"

#include <algorithm>
#include <utility>

#include "tso/support/work.h"

namespace tsomon::predict {

WordSections::WordSections(const Model& model, const KnownValues* known) : model_(model) {
  if (known == nullptr || known->words.empty() || model.buffers()) {
    return;
  }
  for (uint32_t cell = 0; cell < model.cell_count(); ++cell) {
    spend(1);
    if (!is_word(cell)) {
      continue;
    }
    for (size_t free = 0; free < kFreeValues && !follow_all(cell, free, *known); ++free) {
    }
  }
  group();
}

// Several threads write it, somebody by a locked operation.
bool WordSections::is_word(uint32_t cell) const {
  uint32_t threads = 0;
  bool locked = false;
  for (const ThreadList& list : model_.writes_of(cell)) {
    ++threads;
    spend(1);
    locked = locked || std::any_of(list.items.begin(), list.items.end(), [&](uint32_t use) {
               spend(1);
               return model_.event(model_.use(use).node).kind() == EventKind::kReadModifyWrite;
             });
  }
  return threads > 1 && locked;
}

// Whether it is a lock; then its sections have been added.
bool WordSections::follow_all(uint32_t cell, size_t free, const KnownValues& known) {
  const size_t others = sections_.size();
  makings_.clear();
  bool is_lock = true;
  for (const ThreadList& list : model_.writes_of(cell)) {
    is_lock = is_lock && follow(list, cell, free, known);
  }
  // What nobody gives back is more likely to be free with other values.
  is_lock = is_lock && made_first(others) &&
            std::any_of(sections_.begin() + static_cast<ptrdiff_t>(others), sections_.end(),
                        [](const Section& section) { return section.release != kNone; });
  if (!is_lock) {
    sections_.resize(others);
  } else if (free != kEvenIsFree && taken_again(others)) {
    for (size_t i = others; i < sections_.size(); ++i) {
      sections_[i].of_lock = true;
    }
  }
  return is_lock;
}

// Several threads have taken it and given it back, each of them more than once.
bool WordSections::taken_again(size_t first_section) const {
  uint32_t threads = 0;
  for (size_t i = first_section; i < sections_.size();) {
    const uint32_t thread = model_.node(sections_[i].acquisition).thread;
    uint32_t given_back = 0;
    for (; i < sections_.size() && model_.node(sections_[i].acquisition).thread == thread; ++i) {
      given_back += sections_[i].release != kNone ? 1 : 0;
    }
    threads += given_back > 1 ? 1 : 0;
  }
  return threads > 1;
}

bool WordSections::follow(const ThreadList& list, uint32_t cell, size_t free,
                          const KnownValues& known) {
  NodeId acquisition = kNone;
  bool simple = true;
  for (const uint32_t use : list.items) {
    const NodeId id = model_.use(use).node;
    const uint32_t event = model_.node(id).event;
    spend(4);
    if (model_.frees(id)) {
      if (!comes_last(id, cell)) {
        return false;
      }
      continue;
    }
    if (model_.uses(id).size() != 1 || event >= known.words.size() ||
        !is(model_.event(id),
            kind_mask(EventKind::kWrite) | kind_mask(EventKind::kReadModifyWrite))) {
      return false;
    }
    const bool holds = acquisition != kNone;
    const bool locked = model_.event(id).kind() == EventKind::kReadModifyWrite;
    const WordValues values = known.words[event];
    switch (step_of_word(free, holds, locked, values.read(), values.written())) {
      case WordStep::kNothing:
        simple = simple && !holds;
        break;
      case WordStep::kTakes:
        acquisition = id;
        simple = true;
        break;
      case WordStep::kGives:
        sections_.push_back({cell, acquisition, id, simple});
        acquisition = kNone;
        break;
      case WordStep::kFrees:
        if (makings_.empty() || makings_.back().first != list.thread) {
          makings_.emplace_back();
        }
        makings_.back() = {list.thread, id};
        break;
      case WordStep::kBreaks:
        return false;
    }
  }
  if (acquisition != kNone) {
    sections_.push_back({cell, acquisition, kNone, simple});
  }
  return true;
}

// The memory of the word ends when all have done with it.
bool WordSections::comes_last(NodeId end, uint32_t cell) const {
  const uint32_t thread = model_.node(end).thread;
  for (const ThreadList& list : model_.writes_of(cell)) {
    spend(1);
    if (list.thread != thread && !model_.always_before(model_.use(list.items.back()).node, end)) {
      return false;
    }
  }
  return true;
}

// All that others take is taken after the word was made. Of each thread the first section is enough.
bool WordSections::made_first(size_t first_section) const {
  uint32_t last = kNone;
  for (size_t i = first_section; i < sections_.size(); ++i) {
    const NodeId acquisition = sections_[i].acquisition;
    const uint32_t thread = model_.node(acquisition).thread;
    spend(1);
    if (thread == std::exchange(last, thread)) {
      continue;
    }
    for (const auto& [by, making] : makings_) {
      spend(1);
      if (by != thread && !seen_by(making, acquisition)) {
        return false;
      }
    }
  }
  return true;
}

bool WordSections::seen_by(NodeId making, NodeId acquisition) const {
  const uint32_t source = model_.uses(acquisition).front().source;
  const NodeId write = source != kNone ? model_.use(source).node : kNone;
  return model_.always_before(making, acquisition) || write == making ||
         (write != kNone && model_.before_seen(making, write));
}

// By thread, in program order.
void WordSections::group() {
  struct End {
    NodeId at;
    bool begins;
    uint32_t section;
  };
  std::vector<std::vector<End>> ends(model_.threads());
  for (uint32_t i = 0; i < sections_.size(); ++i) {
    auto& mine = ends[model_.node(sections_[i].acquisition).thread];
    mine.push_back({sections_[i].acquisition, true, i});
    if (sections_[i].release != kNone) {
      mine.push_back({sections_[i].release + 1, false, i});
    }
  }
  spend(16 * sections_.size());
  changes_.resize(model_.threads());
  for (uint32_t thread = 0; thread < model_.threads(); ++thread) {
    std::sort(ends[thread].begin(), ends[thread].end(),
              [](const End& a, const End& b) { return a.at < b.at; });
    std::vector<uint32_t> held;
    for (const End& end : ends[thread]) {
      if (!end.begins) {
        std::erase(held, end.section);
      } else if (held.size() < kMaxHeld) {
        held.push_back(end.section);
      }
      changes_[thread].push_back(
          {end.at, static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(held.size())});
      pool_.insert(pool_.end(), held.begin(), held.end());
    }
  }
}

std::span<const uint32_t> WordSections::held(NodeId id) const {
  const auto& changes = changes_[model_.node(id).thread];
  const auto after = std::partition_point(changes.begin(), changes.end(),
                                          [&](const Change& change) { return change.from <= id; });
  if (after == changes.begin()) {
    return {};
  }
  const Change& change = *(after - 1);
  return std::span(pool_).subspan(change.first, change.count);
}

bool WordSections::exclude(const Detour& detour) const {
  if (sections_.empty()) {
    return false;
  }
  const auto& [first, to, from, last] = detour;
  const auto mine = held(first);
  const auto theirs = mine.empty() ? mine : held(to);
  spend(8 + mine.size() * theirs.size());
  return std::any_of(mine.begin(), mine.end(), [&](uint32_t i) {
    const Section& ours = sections_[i];
    return ours.has(last) && std::any_of(theirs.begin(), theirs.end(), [&](uint32_t j) {
             const Section& other = sections_[j];
             return other.word == ours.word && other.has(from) &&
                    (to != from || to != other.acquisition || would_fail(other, ours));
           });
  });
}

// What nothing comes after may read another value. It fails if it finds what it would write. Of a
// word that is a lock and no counter it fails whatever it finds there.
bool WordSections::would_fail(const Section& attempt, const Section& other) const {
  const uint32_t tag = model_.event(attempt.acquisition).span_or_extra;
  return attempt.of_lock ||
         (tag != 0 && tag == model_.event(other.acquisition).span_or_extra && other.simple);
}

}  // namespace tsomon::predict
