#include "monitor/events/places.h"

#include "monitor/process/symbols.h"
#include "tso/model/idle_iterations.h"

namespace tsomon {

Places::Place& Places::place(uint32_t location) {
  const auto [found, is_new] = places_.try_emplace(location);
  if (is_new && text_) {
    found->second.text = text_(location);
    found->second.own = says_library_own(found->second.text);
  }
  return found->second;
}

bool Places::same(uint32_t a, uint32_t b) {
  const std::string& text = place(a).text;
  return !text.empty() && text == place(b).text;
}

bool Places::same_line(uint32_t a, uint32_t b) {
  const std::string& text = place(a).text;
  return !text.empty() && tsomon::same_line(text, place(b).text);
}

bool Places::is_library_own(const Event& event) {
  const bool may = event.kind() == EventKind::kReadModifyWrite ||
                   (event.kind() == EventKind::kRead && event.atomic());
  return may && event.location != Event::kNoLocation && place(event.location).own;
}

bool Places::waits(const Event& event) {
  if (!waits_ || event.kind() != EventKind::kRead || !event.atomic() ||
      event.location == Event::kNoLocation) {
    return false;
  }
  Place& here = place(event.location);
  if (!here.waits) {
    here.waits = waits_(event.location);
  }
  return *here.waits;
}

void Places::forget(Event& event) {
  EventBlock::drop_digests(event);
  constexpr size_t kMost = size_t{1} << 24;
  const uint32_t location = event.location;
  if (!plain_ || location >= kMost) {
    return;
  }
  if (location >= without_.size()) {
    without_.resize(location + 1, kUnknown);
  }
  if (without_[location] == kUnknown) {
    without_[location] = plain_(location);
  }
  event.location = without_[location];
}

void leave_out_waiting(Trace& trace) {
  const Symbols& symbols = trace.symbols;
  Places places([&](uint32_t location) { return symbols.place_text(location, Symbols::kWithin); },
                [&](uint32_t location) { return symbols.without_place(location); });
  for (Event& event : trace.events) {
    if (places.is_library_own(event)) {
      make_idle(event);
    }
  }
  resolve_idle_iterations(trace, [&](uint32_t a, uint32_t b) { return places.same_line(a, b); });
  for (Event& event : trace.events) {
    places.forget(event);
  }
}

}  // namespace tsomon
