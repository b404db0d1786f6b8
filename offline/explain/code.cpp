#include "offline/explain/code.h"

#include <algorithm>
#include <utility>

#include "tso/support/work.h"

namespace tsomon::explain {

std::string location_of(const Trace& trace, uint32_t e) {
  const Event& event = trace.events[e];
  std::string text = trace.symbols.location_text(event.location);
  if (text.empty()) {
    const bool loads = event.kind() == EventKind::kRead;
    text = (loads                      ? "load "
            : is(event, kinds::kLocks) ? "lock "
                                       : "store ") +
           trace.symbols.access_text(event);
  }
  return text;
}

namespace {

bool has_place(const Trace& trace, uint32_t e) { return is(trace.events[e], kinds::kAccesses); }

}  // namespace

std::vector<std::vector<uint32_t>> events_of_units(const Trace& trace, const UnitTable& units) {
  std::vector<std::vector<uint32_t>> events(units.size());
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    spend(1);
    if (units.of_event(e) != UnitTable::kNone) {
      events[units.of_event(e)].push_back(e);
    }
  }
  return events;
}

// The label, and the function of the first access.
std::string CodeMap::key_of(const Trace& trace, const Unit& unit,
                            const std::vector<uint32_t>& events) const {
  std::string key(unit_label(trace.symbols.labels.text(unit.label)));
  key += '\n';
  const auto first =
      std::find_if(events.begin(), events.end(), [&](uint32_t e) { return has_place(trace, e); });
  spend(8 + static_cast<uint64_t>(first - events.begin()));
  const auto place =
      first == events.end() ? places_.end() : places_.find(location_of(trace, *first));
  return place == places_.end() ? key : key + place->second.function;
}

void CodeMap::add(const Trace& trace, const UnitTable& units, const PlaceOf& place_of) {
  const std::vector<std::vector<uint32_t>> events = events_of_units(trace, units);
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    if (units[unit].label == Interner::kNone) {
      continue;
    }
    for (const uint32_t e : events[unit]) {
      if (!has_place(trace, e)) {
        continue;
      }
      std::string location = location_of(trace, e);
      if (places_.count(location) == 0) {
        CodePlace place = place_of(location);
        places_.emplace(std::move(location), std::move(place));
      }
    }
    const auto [known, is_new] = by_key_.try_emplace(key_of(trace, units[unit], events[unit]),
                                                     static_cast<uint32_t>(methods_.size()));
    if (is_new) {
      methods_.emplace_back().label = unit_label(trace.symbols.labels.text(units[unit].label));
    }
    for (const uint32_t e : events[unit]) {
      spend(8);
      if (has_place(trace, e)) {
        add_place(location_of(trace, e), &methods_[known->second]);
      }
    }
  }
}

void CodeMap::add_place(const std::string& location, Method* method) const {
  const auto rank = static_cast<uint32_t>(method->ranks.size());
  if (!method->ranks.try_emplace(location, rank).second) {
    return;
  }
  method->at_rank[rank] = location;
  const CodePlace& place = places_.at(location);
  if (rank == 0) {
    method->function = place.function;
    method->file = place.file;
  }
  method->one_function = method->one_function && place.line != 0 &&
                         place.function == method->function && place.file == method->file;
  method->lines[location] = place.line;
  method->at_line.try_emplace(place.line, location);
}

uint32_t CodeMap::method(const Trace& trace, const Unit& unit,
                         const std::vector<uint32_t>& events) const {
  if (unit.label == Interner::kNone) {
    return kNone;
  }
  const auto known = by_key_.find(key_of(trace, unit, events));
  return known == by_key_.end() ? kNone : known->second;
}

uint32_t CodeMap::line(uint32_t method, const Trace& trace, uint32_t e) const {
  if (!has_place(trace, e)) {
    return kNone;
  }
  const Method& mine = methods_[method];
  const auto& lines = mine.one_function ? mine.lines : mine.ranks;
  const auto known = lines.find(location_of(trace, e));
  return known == lines.end() ? kNone : known->second;
}

const std::string& CodeMap::location(uint32_t method, uint32_t line) const {
  static const std::string kNothing;
  const Method& mine = methods_[method];
  const auto& texts = mine.one_function ? mine.at_line : mine.at_rank;
  const auto known = texts.find(line);
  return known == texts.end() ? kNothing : known->second;
}

std::vector<uint32_t> CodeMap::lines_of(uint32_t method, const Trace& trace,
                                        const std::vector<uint32_t>& events) const {
  std::vector<uint32_t> lines;
  lines.reserve(events.size());
  for (const uint32_t e : events) {
    spend(8);
    lines.push_back(line(method, trace, e));
  }
  return lines;
}

Segment CodeMap::whole(uint32_t method) const {
  const Method& mine = methods_[method];
  const auto& texts = mine.one_function ? mine.at_line : mine.at_rank;
  return texts.empty() ? Segment{method, 0, 0}
                       : Segment{method, texts.begin()->first, texts.rbegin()->first};
}

BlockCode CodeMap::code_of(const Segment& block) const {
  const Method& mine = methods_[block.operation];
  BlockCode code;
  code.whole = block.contains(whole(block.operation));
  if (mine.one_function) {
    code.function = mine.function;
    code.file = mine.file;
    code.first_line = block.first;
    code.last_line = block.last;
  }
  std::vector<std::pair<uint32_t, std::string>> inside;
  for (const auto& [location, line] : mine.one_function ? mine.lines : mine.ranks) {
    if (block.first <= line && line <= block.last) {
      inside.emplace_back(line, location);
    } else {
      code.outside.push_back(location);
    }
  }
  std::sort(inside.begin(), inside.end());
  for (auto& [line, location] : inside) {
    code.inside.push_back(std::move(location));
  }
  return code;
}

Segment CodeMap::block_of(uint32_t method, const Trace& trace,
                          const std::vector<uint32_t>& unit_events, size_t first,
                          size_t last) const {
  const std::vector<uint32_t> lines = lines_of(method, trace, unit_events);
  // Grows to the front until the block is entered once: a loop that turns inside of the segment has
  // to turn inside of the block.
  for (size_t begin = first + 1; begin-- > 0;) {
    spend(lines.size());
    if (lines[begin] == kNone) {
      continue;
    }
    uint32_t least = kNone;
    uint32_t most = 0;
    for (size_t i = begin; i <= last; ++i) {
      if (lines[i] != kNone) {
        least = std::min(least, lines[i]);
        most = std::max(most, lines[i]);
      }
    }
    uint32_t before = kNone;
    bool once = true;
    for (size_t i = begin; i <= last && once; ++i) {
      if (lines[i] != kNone) {
        once = before == kNone || lines[i] >= before || lines[i] > least;
        before = lines[i];
      }
    }
    if (once) {
      return Segment{method, least, most};
    }
  }
  return whole(method);
}

std::vector<uint32_t> CodeMap::occurrences(const Trace& trace, const UnitTable& units,
                                           const SegmentSet& blocks, uint32_t* count) const {
  std::vector<uint32_t> found(trace.events.size(), kNone);
  *count = 0;
  const std::vector<std::vector<uint32_t>> events = events_of_units(trace, units);
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    const uint32_t own = method(trace, units[unit], events[unit]);
    if (own == kNone || std::none_of(blocks.begin(), blocks.end(), [&](const Segment& block) {
          return block.operation == own;
        })) {
      continue;
    }
    const std::vector<uint32_t> lines = lines_of(own, trace, events[unit]);
    const Segment* inside = nullptr;
    uint32_t before = 0;
    std::vector<uint32_t> between;  // no accesses, after one that is inside
    for (size_t i = 0; i < lines.size(); ++i) {
      if (lines[i] == kNone) {
        between.push_back(events[unit][i]);
        continue;
      }
      const auto block = std::find_if(blocks.begin(), blocks.end(), [&](const Segment& one) {
        return one.operation == own && one.first <= lines[i] && lines[i] <= one.last;
      });
      const Segment* now = block == blocks.end() ? nullptr : &*block;
      const bool goes_on =
          now != nullptr && now == inside &&
          (lines[i] >= before || lines[i] > now->first || now->contains(whole(own)));
      if (goes_on) {
        for (const uint32_t e : between) {
          found[e] = *count - 1;
        }
      } else if (now != nullptr) {
        ++*count;
      }
      if (now != nullptr) {
        found[events[unit][i]] = *count - 1;
      }
      inside = now;
      before = lines[i];
      between.clear();
    }
  }
  return found;
}

}  // namespace tsomon::explain
