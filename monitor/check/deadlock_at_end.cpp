#include "monitor/check/deadlock_at_end.h"

#include <filesystem>
#include <system_error>

#include "monitor/events/event_source.h"
#include "monitor/input/open_events.h"
#include "tso/support/work.h"

namespace tsomon {

HappenedDeadlock deadlock_at_end(const std::string& path) {
  std::error_code failed;
  if (const auto size = std::filesystem::file_size(path, failed);
      failed || size > kMostBytesAtEnd) {
    return {};
  }
  SourceOptions how;
  how.format = InputFormat::kCapture;
  how.symbolise = true;
  auto source = open_events(path, how);
  if (!source) {
    return {};
  }
  LastWaits waits;
  EventBlock block;
  uint64_t events = 0;
  for (;;) {
    const auto next = (*source)->next(block);
    if (!next || stop_asked()) {
      return {};
    }
    if (!*next) {
      break;
    }
    waits.add(block, events, (*source)->origin().lines);
    events += block.events.size();
  }
  if (!(*source)->complete() || (*source)->sampled()) {
    return {};
  }
  const Symbols symbols = (*source)->take_symbols();
  return happened_deadlock(waits.stuck(), symbols, (*source)->names());
}

}  // namespace tsomon
