#include "monitor/findings/event_text.h"

#include <fmt/format.h>

#include "tso/model/channels.h"
#include "tso/support/printable.h"

namespace tsomon {

const char* operation_name(EventKind kind) {
  switch (kind) {
    case EventKind::kRead:
      return "load";
    case EventKind::kWrite:
      return "store";
    case EventKind::kReadModifyWrite:
      return "locked";
    case EventKind::kFence:
      return "fence";
    case EventKind::kAcquire:
      return "acquire";
    case EventKind::kRelease:
      return "release";
    case EventKind::kAcquireShared:
      return "acquire shared";
    case EventKind::kReleaseShared:
      return "release shared";
    case EventKind::kFork:
      return "start thread";
    case EventKind::kJoin:
      return "join thread";
    case EventKind::kWait:
      return "wait";
    case EventKind::kNotify:
      return "notify";
    case EventKind::kSend:
      return "send";
    case EventKind::kReceive:
      return "receive";
    case EventKind::kRequest:
      return "request";
    case EventKind::kPost:
      return "post";
    case EventKind::kTake:
      return "take";
    case EventKind::kCount:
      return "count";
    case EventKind::kAllocate:
      return "allocate";
    case EventKind::kFree:
      return "free";
    case EventKind::kDestroy:
      return "destroy";
    default:
      return "event";
  }
}

const char* operation_name(const Event& event) {
  return lock_begins(event) ? "initialise" : operation_name(event.kind());
}

std::string thread_text(ThreadId thread, const Symbols& symbols) {
  return thread < symbols.threads.size() ? std::string(symbols.threads.text(thread))
                                         : fmt::format("T{}", thread);
}

std::string operand_text(const Event& event, const Symbols& symbols) {
  if (event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin) {
    return thread_text(static_cast<ThreadId>(event.address), symbols);
  }
  constexpr uint32_t kOthers = kind_mask(EventKind::kWait) | kind_mask(EventKind::kNotify) |
                               kind_mask(EventKind::kSend) | kind_mask(EventKind::kReceive) |
                               kind_mask(EventKind::kRequest) | kind_mask(EventKind::kPost) |
                               kind_mask(EventKind::kTake) | kind_mask(EventKind::kCount) |
                               kind_mask(EventKind::kAllocate) | kind_mask(EventKind::kFree) |
                               kind_mask(EventKind::kDestroy);
  if (lock_begins(event)) {
    Event lock = event;
    lock.set_kind(EventKind::kDestroy);
    lock.address &= ~kBegins;
    return symbols.access_text(lock);
  }
  return is(event, kinds::kAccesses | kOthers) ? symbols.access_text(event) : std::string();
}

std::string operation_text(const std::string& operation, const std::string& operand,
                           std::optional<uint64_t> read, std::optional<uint64_t> written) {
  return fmt::format("{}{}{}{}{}", operation, operand.empty() ? "" : " ", printable(operand),
                     read ? fmt::format(" = {}", *read) : "",
                     written ? fmt::format(" := {}", *written) : "");
}

std::string event_text(const EventBlock& events, const Symbols& symbols, uint32_t e) {
  const Event& event = events.events[e];
  // What locks have beside them is no value.
  const bool lock = is(event, kinds::kLocks);
  return operation_text(operation_name(event), operand_text(event, symbols),
                        lock ? std::nullopt : events.read_value(event),
                        lock ? std::nullopt : events.write_value(event));
}

}  // namespace tsomon
