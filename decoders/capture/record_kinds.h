// What the types of records have in common, for who turns them into events.
//
// Thread-safety: pure functions. Complexity O(1).
#pragma once

#include <optional>

#include "decoders/capture/record.h"
#include "tso/model/event.h"

namespace tsomon::capture {

// Such records have no bytes of memory. A lock, a condition variable and an object begin somewhere.
bool has_no_location(RecordType type);
// What drains the buffer, or may have, and can be cut off before its second stamp (kOpenEnd).
bool may_end_open(RecordType type);
// Of accesses by the language's atomic operations that are not locked read-modify-writes.
bool is_atomic(RecordType type);
// Of records that say no more than an address.
std::optional<EventKind> kind_with_address(RecordType type);

}  // namespace tsomon::capture
