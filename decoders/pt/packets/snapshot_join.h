// Where a copy of the last bytes of a trace goes on after an earlier copy.
//
// Purpose     With AUX area samples (PERF_SAMPLE_AUX) every sample holds the last bytes of the
//             trace of its CPU or thread. Where one comes after another, the second one overlaps
//             the first, or continues it, or begins later: the bytes themselves have to say
//             which.
// Overlap     The longest one: the earlier copy's end is put as far back in the next one as both
//             agree. So no byte of the trace is there twice, whatever repeats itself in it.
// Certain     Only when what both have in common holds a PSB group with a TSC packet: no
//             other place of the trace has the same time. Otherwise a trace that repeats
//             itself looks the same, and bytes may be missing; the pieces must not be read as
//             one.
// Padding     The kernel fills a sample up to a multiple of 8 bytes with zeros, which the next copy
//             does not have.
// Complexity  O(bytes of both), eight times that at most where the earlier one ends with zeros.
// Thread-safety: pure function.
#pragma once

#include <cstddef>
#include <string_view>

namespace tsomon::pt {

struct SnapshotJoin {
  size_t padding = 0;  // bytes at the end of the earlier one that are not of the trace
  size_t from = 0;     // what of the next one is new
  bool certain = false;
};

SnapshotJoin join_snapshots(std::string_view earlier, std::string_view next);

}  // namespace tsomon::pt
