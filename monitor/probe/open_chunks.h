// What is handed over of chunks that are not full: of threads that go on when recording ends, to
// who watches the program live, and to who reads what a killed process left.
//
// Complexity  For each look linear in what the chunks of the threads have got since the last one,
//             or live in what they have. Thread-safety: one thread at a time, the writer's, while
//             the owners go on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decoders/capture/format.h"
#include "monitor/probe/context.h"

namespace tsomon::probe {

// What lies in a chunk whose owner may be going on.
void write_open(Thread* thread, const Context& context, bool pack);
// Live: what all threads have recorded so far, and up to when that is all.
void write_round();
// So that a process that is killed leaves all that is older than a second. Live rounds tell what
// threads do outside of signal handlers.
constexpr long kLook = 400;  // milliseconds: twice that, and the time of writing
void look_at_parts();
void forget_rounds();  // after fork

// Of chunk_writer.cpp. `pack`: with zstd, only on the writer thread; otherwise async-signal-safe.
void write_chunk(capture::ChunkType type, uint32_t thread, uint64_t sequence, const void* data,
                 size_t size, bool pack);
void write_labels(bool pack);
// The full chunks. `keep`: they are not to be used again.
void drain(bool pack, bool keep);

}  // namespace tsomon::probe
