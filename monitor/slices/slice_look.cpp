#include "monitor/slices/slice_look.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>

#include <fnmatch.h>

#include "monitor/input/open_events.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint32_t kAccesses = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                               kind_mask(EventKind::kReadModifyWrite);

void sort_once(std::vector<uint64_t>* values) {
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

// Of units that begin no later than the next one: the two of different threads that end last.
class LastEnds {
 public:
  void add(uint32_t thread, int64_t end) {
    if (first_.known && first_.thread == thread) {
      first_.end = std::max(first_.end, end);
    } else if (!first_.known || end > first_.end) {
      second_ = first_;
      first_ = {thread, end, true};
    } else if (!second_.known || end > second_.end) {
      second_ = {thread, end, true};
    }
  }
  bool another_at(uint32_t thread, int64_t time) const {
    const End& other = first_.known && first_.thread != thread ? first_ : second_;
    return other.known && other.end >= time;
  }

 private:
  struct End {
    uint32_t thread = 0;
    int64_t end = 0;
    bool known = false;
  };
  End first_;
  End second_;
};

}  // namespace

uint64_t SliceLooker::address(uint32_t location, const Symbols& symbols) {
  const auto [found, is_new] = addresses_.try_emplace(location, 0);
  if (is_new && location != Event::kNoLocation) {
    const std::string text = symbols.location_text(location);
    if (std::string_view(text).starts_with("0x")) {
      std::from_chars(text.data() + 2, text.data() + text.size(), found->second, 16);
    }
  }
  return found->second;
}

bool SliceLooker::label_matches(uint64_t label, const Symbols& symbols) {
  if (labels_.size() <= label) {
    labels_.resize(label + 1, -1);
  }
  if (labels_[label] < 0) {
    const std::string name(unit_label(symbols.labels.text(static_cast<uint32_t>(label))));
    labels_[label] = std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& pattern) {
      return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
  }
  return labels_[label] != 0;
}

uint32_t SliceLooker::new_unit(const Event& event, const Symbols& symbols, bool labelled) {
  units_.push_back({event.thread, address(event.location, symbols), event.lo, event.lo, labelled});
  return static_cast<uint32_t>(units_.size() - 1);
}

void SliceLooker::add(const EventBlock& block, const Symbols& symbols) {
  events_ += block.events.size();
  for (const Event& event : block.events) {
    Thread& thread = threads_[event.thread];
    if (event.kind() == EventKind::kUnitBegin) {
      if (thread.depth++ == 0) {
        thread.unit =
            new_unit(event, symbols, patterns_.empty() || label_matches(event.address, symbols));
      }
    } else if (event.kind() == EventKind::kUnitEnd && thread.depth != 0) {
      units_[thread.unit].end = std::max(units_[thread.unit].end, block.hi(event));
      --thread.depth;
    } else if (is(event, kAccesses) && event.size != 0) {
      const uint32_t unit =
          thread.depth != 0 ? thread.unit : new_unit(event, symbols, patterns_.empty());
      units_[unit].end = std::max(units_[unit].end, block.hi(event));
      const uint64_t pc = address(event.location, symbols);
      const bool stores = event.kind() != EventKind::kRead;
      constexpr uint64_t kWord = 8;
      for (uint64_t word = event.address / kWord; word <= (event.address + event.size - 1) / kWord;
           ++word) {
        // Loops do the same again and again.
        const auto [last, is_new] = last_use_.try_emplace(word, 0);
        if (!is_new) {
          Use& use = uses_[last->second];
          if (use.unit == unit && use.pc == pc && use.stores == stores) {
            continue;
          }
        }
        last->second = static_cast<uint32_t>(uses_.size());
        uses_.push_back({word, unit, pc, stores});
      }
    }
  }
}

SliceLook SliceLooker::finish() {
  // What never ended goes on.
  for (const auto& [number, thread] : threads_) {
    if (thread.depth != 0) {
      units_[thread.unit].end = kTimeMax;
    }
  }
  std::sort(uses_.begin(), uses_.end(), [&](const Use& a, const Use& b) {
    return a.word != b.word ? a.word < b.word : units_[a.unit].begin < units_[b.unit].begin;
  });
  SliceLook look;
  look.events = events_;
  std::vector<bool> met(units_.size());
  for (size_t at = 0; at < uses_.size();) {
    size_t end = at;
    bool found = false;
    std::array<LastEnds, 4> ends;  // by whether they store and whether they have such a label
    for (; end < uses_.size() && uses_[end].word == uses_[at].word; ++end) {
      const Unit& unit = units_[uses_[end].unit];
      const size_t own = (uses_[end].stores ? 1 : 0) + (unit.labelled ? 2 : 0);
      for (size_t other = 0; other < ends.size() && !found; ++other) {
        found = (own | other) == 3 && ends[other].another_at(unit.thread, unit.begin);
      }
      ends[own].add(unit.thread, unit.end);
    }
    for (; at < end; ++at) {
      look.seen.push_back(uses_[at].pc);
      look.seen.push_back(units_[uses_[at].unit].pc);
      if (found) {
        look.met.push_back(uses_[at].pc);
        look.met.push_back(units_[uses_[at].unit].pc);
        met[uses_[at].unit] = true;
      }
    }
  }
  for (const Use& use : uses_) {
    if (met[use.unit]) {
      look.met_units.push_back(use.pc);
      look.met_units.push_back(units_[use.unit].pc);
    }
  }
  for (std::vector<uint64_t>* const all : {&look.seen, &look.met, &look.met_units}) {
    sort_once(all);
    all->erase(all->begin(), std::upper_bound(all->begin(), all->end(), uint64_t{0}));
  }
  return look;
}

namespace {

Result<void> for_each_block(const std::string& file,
                            const std::function<void(const EventBlock&, const Symbols&)>& visit) {
  SourceOptions options;
  options.format = InputFormat::kCapture;
  auto source = open_events(file, options);
  if (!source) {
    return tl::unexpected<Error>(source.error());
  }
  EventBlock block;
  while (!stop_asked()) {
    const auto more = (*source)->next(block);
    if (!more) {
      return tl::unexpected<Error>(more.error());
    }
    if (!*more) {
      break;
    }
    visit(block, (*source)->symbols());
  }
  return {};
}

}  // namespace

Result<uint64_t> events_of_slice(const std::string& file) {
  uint64_t events = 0;
  return for_each_block(
             file, [&](const EventBlock& block, const Symbols&) { events += block.events.size(); })
      .map([&] { return events; });
}

Result<SliceLook> look_at_slice(const std::string& file, const std::vector<std::string>& labels) {
  SliceLooker looker(labels);
  return for_each_block(file, [&](const EventBlock& block,
                                  const Symbols& symbols) { looker.add(block, symbols); })
      .map([&] { return looker.finish(); });
}

}  // namespace tsomon
