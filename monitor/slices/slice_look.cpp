#include "monitor/slices/slice_look.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fnmatch.h>

#include "monitor/input/open_events.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint32_t kAccesses = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                               kind_mask(EventKind::kReadModifyWrite);

template <class Value>
void sort_once(std::vector<Value>* values) {
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

uint64_t address_of(uint32_t location, const Symbols& symbols) {
  uint64_t address = 0;
  if (location != Event::kNoLocation) {
    const std::string text = symbols.location_text(location);
    if (std::string_view(text).starts_with("0x")) {
      std::from_chars(text.data() + 2, text.data() + text.size(), address, 16);
    }
  }
  return address;
}

std::vector<uint64_t> addresses_of(std::vector<uint32_t> locations, const Symbols& symbols) {
  sort_once(&locations);
  std::vector<uint64_t> addresses;
  for (const uint32_t location : locations) {
    if (const uint64_t address = address_of(location, symbols); address != 0) {
      addresses.push_back(address);
    }
  }
  sort_once(&addresses);
  return addresses;
}

}  // namespace

uint32_t SliceLooker::new_unit(const Event& event, uint64_t label) {
  units_.push_back({event.thread, event.location, event.lo, event.lo, label, false});
  return static_cast<uint32_t>(units_.size() - 1);
}

bool SliceLooker::matches(uint64_t label, const Symbols& symbols) const {
  const std::string name(unit_label(symbols.labels.text(static_cast<uint32_t>(label))));
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const auto& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

void SliceLooker::find_labelled(const Symbols& symbols) {
  std::unordered_map<uint64_t, bool> known;
  for (Unit& unit : units_) {
    if (patterns_.empty() || unit.label == kNone) {
      unit.labelled = patterns_.empty();
      continue;
    }
    const auto [found, is_new] = known.try_emplace(unit.label, false);
    if (is_new) {
      found->second = matches(unit.label, symbols);
    }
    unit.labelled = found->second;
  }
}

void SliceLooker::add(const EventBlock& block) {
  look_.events += block.events.size();
  for (const Event& event : block.events) {
    Thread& thread = threads_[event.thread];
    if (event.kind() == EventKind::kUnitBegin) {
      if (thread.depth++ == 0) {
        thread.unit = new_unit(event, event.address);
      }
    } else if (event.kind() == EventKind::kUnitEnd && thread.depth != 0) {
      units_[thread.unit].end = std::max(units_[thread.unit].end, block.hi(event));
      --thread.depth;
    } else if (is(event, kAccesses) && event.size != 0) {
      const uint32_t unit = thread.depth != 0 ? thread.unit : new_unit(event, kNone);
      units_[unit].end = std::max(units_[unit].end, block.hi(event));
      const bool stores = event.kind() != EventKind::kRead;
      constexpr uint64_t kWord = 8;
      for (uint64_t word = event.address / kWord; word <= (event.address + event.size - 1) / kWord;
           ++word) {
        // Loops do the same again and again.
        const auto [last, is_new] = last_use_.try_emplace(word, 0);
        if (!is_new) {
          Use& use = uses_[last->second];
          if (use.unit == unit && use.location == event.location && use.stores == stores) {
            continue;
          }
        }
        last->second = static_cast<uint32_t>(uses_.size());
        uses_.push_back({word, unit, event.location, stores});
      }
    }
  }
}

void SliceLooker::end(const Symbols& symbols) {
  find_labelled(symbols);
  // What never ended goes on.
  for (const auto& [number, thread] : threads_) {
    if (thread.depth != 0) {
      units_[thread.unit].end = kTimeMax;
    }
  }
  std::sort(uses_.begin(), uses_.end(), [&](const Use& a, const Use& b) {
    return a.word != b.word ? a.word < b.word : units_[a.unit].begin < units_[b.unit].begin;
  });
  std::vector<uint32_t> seen;
  std::vector<uint32_t> met;
  std::vector<uint32_t> met_units;
  std::vector<bool> has_met(units_.size());
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
      seen.push_back(uses_[at].location);
      seen.push_back(units_[uses_[at].unit].location);
      if (found) {
        met.push_back(uses_[at].location);
        met.push_back(units_[uses_[at].unit].location);
        has_met[uses_[at].unit] = true;
      }
    }
  }
  for (const Use& use : uses_) {
    if (has_met[use.unit]) {
      met_units.push_back(use.location);
      met_units.push_back(units_[use.unit].location);
    }
  }
  look_.seen = addresses_of(std::move(seen), symbols);
  look_.met = addresses_of(std::move(met), symbols);
  look_.met_units = addresses_of(std::move(met_units), symbols);
}

Result<uint64_t> events_of_slice(const std::string& file) {
  SourceOptions options;
  options.format = InputFormat::kCapture;
  auto source = open_events(file, options);
  if (!source) {
    return tl::unexpected<Error>(source.error());
  }
  EventBlock block;
  uint64_t events = 0;
  while (!stop_asked()) {
    const auto more = (*source)->next(block);
    if (!more) {
      return tl::unexpected<Error>(more.error());
    }
    if (!*more) {
      break;
    }
    events += block.events.size();
  }
  return events;
}

}  // namespace tsomon
