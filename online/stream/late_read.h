// A load of a slice of the input whose value a store after the slice may have brought.
//
// Purpose     The value of such a load is left out of the slice: nothing there need have written it. What
//             is known is that the load returned the value in the slice, or came as late as that store
//             (monitor/judge/late_reads.h).
// Thread-safety: plain data.
#pragma once

#include <cstdint>

namespace tsomon {

struct LateRead {
  uint32_t event = 0;  // of the slice
  uint64_t value = 0;  // as recorded
  int64_t lo = 0;      // when it read the later store, if it did, at the earliest
};

}  // namespace tsomon
