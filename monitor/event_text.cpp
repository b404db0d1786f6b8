#include "monitor/event_text.h"

#include <optional>

#include <fmt/format.h>

namespace tsomon {

std::string event_text(const EventBlock& events, const Symbols& symbols, uint32_t e) {
  const Event& event = events.events[e];
  const auto thread = [&](uint64_t id) {
    return std::string(symbols.threads.text(static_cast<ThreadId>(id)));
  };
  const auto value = [](const char* sign, std::optional<uint64_t> known) {
    return known ? fmt::format("{}{}", sign, *known) : std::string();
  };
  const std::string place = symbols.access_text(event);
  switch (event.kind()) {
    case EventKind::kRead:
      return "load " + place + value(" = ", events.read_value(event));
    case EventKind::kWrite:
      return "store " + place + value(" := ", events.write_value(event));
    case EventKind::kReadModifyWrite:
      return "locked " + place + value(" = ", events.read_value(event)) +
             value(" := ", events.write_value(event));
    case EventKind::kFence:
      return "fence";
    case EventKind::kAcquire:
      return "acquire " + place;
    case EventKind::kRelease:
      return "release " + place;
    case EventKind::kAcquireShared:
      return "acquire shared " + place;
    case EventKind::kReleaseShared:
      return "release shared " + place;
    case EventKind::kFork:
      return "start thread " + thread(event.address);
    case EventKind::kJoin:
      return "join thread " + thread(event.address);
    default:
      return "event";
  }
}

}  // namespace tsomon
