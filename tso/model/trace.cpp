#include "tso/model/trace.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "tso/model/lifetimes.h"
#include "tso/support/result.h"

namespace tsomon {

void add_range(std::vector<LocationKey>* members, uint64_t address, uint64_t size) {
  for (uint64_t at = 0; at < size; at += Event::kMaxSize) {
    members->push_back(
        {address + at, static_cast<uint32_t>(std::min<uint64_t>(size - at, Event::kMaxSize))});
  }
}

uint32_t Symbols::intern_location(std::string_view text) {
  // A number without leading zeros survives the round trip through the id.
  if (!text.empty() && text.size() <= 10 && (text[0] != '0' || text.size() == 1)) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() &&
        number < Event::kNumericLocation - 1) {
      return number | Event::kNumericLocation;
    }
  }
  // Nothing but intern_place() separates.
  if (text.find(kWithin) != std::string_view::npos) {
    std::string own(text);
    std::replace(own.begin(), own.end(), kWithin, '_');
    return locations.intern(own);
  }
  return locations.intern(text);
}

std::string Symbols::location_text(uint32_t location) const {
  if (location == Event::kNoLocation) {
    return {};
  }
  if ((location & Event::kNumericLocation) != 0) {
    return std::to_string(location & ~Event::kNumericLocation);
  }
  const std::string_view text = locations.text(location);
  return std::string(text.substr(0, text.find(kWithin)));
}

uint32_t Symbols::intern_place(std::string_view text, std::string_view within) {
  const uint32_t location = intern_location(text);
  if (within.empty() || (location & Event::kNumericLocation) != 0) {
    return location;
  }
  return locations.intern(location_text(location) + kWithin + std::string(within));
}

std::string Symbols::place_text(uint32_t location, char between) const {
  if ((location & Event::kNumericLocation) != 0) {
    return location_text(location);
  }
  std::string text(locations.text(location));
  std::replace(text.begin(), text.end(), kWithin, between);
  return text;
}

uint32_t Symbols::without_place(uint32_t location) const {
  if ((location & Event::kNumericLocation) != 0) {
    return location;
  }
  const std::string_view text = locations.text(location);
  const size_t end = text.find(kWithin);
  return end == std::string_view::npos ? location : locations.find(text.substr(0, end));
}

std::string Symbols::access_text(const Event& event) const {
  if (event.size != 0) {
    return fmt::format("0x{:x}+{}", own_address(event.address), static_cast<uint32_t>(event.size));
  }
  if (event.address < names.size()) {
    return std::string(names.text(static_cast<uint32_t>(event.address)));
  }
  return fmt::format("0x{:x}", own_address(event.address));
}

bool same_line(std::string_view a, std::string_view b) {
  const auto line = [](std::string_view place) {
    return place.substr(0, place.find(Symbols::kWithin));
  };
  const auto calls = [&](std::string_view place) {
    const std::string_view within = place.substr(line(place).size());
    return within.substr(std::min(within.find('/'), within.size()));
  };
  return line(a) == line(b) && calls(a) == calls(b);
}

std::string_view unit_label(std::string_view label) { return label.substr(0, label.find(';')); }

std::vector<std::string_view> unit_sets(std::string_view label) {
  std::vector<std::string_view> sets;
  size_t at = label.find(';');
  while (at != std::string_view::npos) {
    const size_t begin = at + 1;
    at = label.find(',', begin);
    sets.push_back(label.substr(begin, at == std::string_view::npos ? at : at - begin));
  }
  return sets;
}

void EventBlock::add(Event event, int64_t lo, int64_t hi, std::optional<uint64_t> read_value,
                     std::optional<uint64_t> write_value) {
  event.lo = lo;
  complete(event, hi, read_value, write_value);
  events.push_back(event);
}

void EventBlock::complete(Event& event, int64_t hi, std::optional<uint64_t> read_value,
                          std::optional<uint64_t> write_value) {
  TSOMON_CHECK(event.lo <= hi, "an interval ends before it begins");
  const uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(event.lo);
  event.has_read_value = read_value.has_value() ? 1 : 0;
  event.has_write_value = write_value.has_value() ? 1 : 0;
  // Next to other extras a point needs no entry for hi: EventBlock::hi() then answers lo.
  const bool extras_needed = read_value || write_value;
  event.has_hi = (extras_needed ? span != 0 : span > 0xFFFFFFFFU) ? 1 : 0;
  if (!event.has_extras()) {
    event.span_or_extra = static_cast<uint32_t>(span);
  } else {
    TSOMON_CHECK(extras.size() < 0xFFFFFFF0U, "more than 2^32 values in one block");
    event.span_or_extra = static_cast<uint32_t>(extras.size());
    if (event.has_hi) {
      extras.push_back(static_cast<uint64_t>(hi));
    }
    if (read_value) {
      extras.push_back(*read_value);
    }
    if (write_value) {
      extras.push_back(*write_value);
    }
  }
}

void EventBlock::drop_digests(Event& event) {
  if (event.size > 8 && (event.has_read_value | event.has_write_value) != 0) {
    event.has_read_value = event.has_write_value = 0;
    event.span_or_extra = event.has_hi != 0 ? event.span_or_extra : 0;
  }
}

bool EventBlock::has_read_values() const {
  return std::any_of(events.begin(), events.end(),
                     [](const Event& event) { return event.has_read_value != 0; });
}

void EventBlock::append(const EventBlock& from, size_t begin, size_t end) {
  TSOMON_CHECK(extras.size() + from.extras.size() < 0xFFFFFFF0U,
               "more than 2^32 values in one trace");
  const auto first = from.events.begin() + static_cast<ptrdiff_t>(begin);
  const auto last = from.events.begin() + static_cast<ptrdiff_t>(end);
  if (from.extras.empty()) {
    events.insert(events.end(), first, last);
    return;
  }
  for (auto event = first; event != last; ++event) {
    events.push_back(with_extras(from, *event));
  }
}

}  // namespace tsomon
