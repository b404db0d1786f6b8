#include "decoders/capture/record_kinds.h"

namespace tsomon::capture {

bool has_no_location(RecordType type) {
  switch (type) {
    case RecordType::kStamp:
    case RecordType::kFence:
    case RecordType::kFork:
    case RecordType::kThreadBegin:
    case RecordType::kThreadEnd:
    case RecordType::kJoin:
    case RecordType::kUnitBegin:
    case RecordType::kUnitEnd:
    case RecordType::kLost:
      return true;
    default:
      return false;
  }
}

bool is_atomic(RecordType type) {
  return type == RecordType::kAtomicLoad || type == RecordType::kAtomicStore ||
         type == RecordType::kFailedCompareExchange;
}

bool may_end_open(RecordType type) {
  return type == RecordType::kAtomicLoad || type == RecordType::kAtomicStore ||
         type == RecordType::kAtomicReadModifyWrite || type == RecordType::kFence;
}

std::optional<EventKind> kind_with_address(RecordType type) {
  switch (type) {
    case RecordType::kAcquire:
      return EventKind::kAcquire;
    case RecordType::kRelease:
      return EventKind::kRelease;
    case RecordType::kAcquireShared:
      return EventKind::kAcquireShared;
    case RecordType::kReleaseShared:
      return EventKind::kReleaseShared;
    case RecordType::kWait:
      return EventKind::kWait;
    case RecordType::kTry:
      return EventKind::kTry;
    case RecordType::kNotify:
      return EventKind::kNotify;
    case RecordType::kSend:
      return EventKind::kSend;
    case RecordType::kReceive:
      return EventKind::kReceive;
    case RecordType::kFree:
      return EventKind::kFree;
    case RecordType::kRequest:
      return EventKind::kRequest;
    case RecordType::kPost:
      return EventKind::kPost;
    case RecordType::kTake:
      return EventKind::kTake;
    case RecordType::kDestroy:
      return EventKind::kDestroy;
    default:
      return std::nullopt;
  }
}

}  // namespace tsomon::capture
