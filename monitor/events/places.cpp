#include "monitor/events/places.h"

#include "monitor/process/symbols.h"
#include "tso/model/idle_iterations.h"

namespace tsomon {

const Places::Place& Places::place(uint32_t location) {
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

bool Places::is_library_own(const Event& event) {
  const bool may = event.kind() == EventKind::kReadModifyWrite ||
                   (event.kind() == EventKind::kRead && event.atomic());
  return may && event.location != Event::kNoLocation && place(event.location).own;
}

void leave_out_library_own(Trace& trace) {
  Places places([&](uint32_t location) { return trace.symbols.location_text(location); });
  for (Event& event : trace.events) {
    if (places.is_library_own(event)) {
      make_idle(event);
    }
  }
}

}  // namespace tsomon
