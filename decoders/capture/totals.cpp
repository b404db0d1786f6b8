#include "decoders/capture/totals.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace tsomon::capture {

void compare_with_total(const EndEntry& total, const std::vector<const Chunk*>& chunks,
                        const PartialChunks& partial, Capture& capture) {
  const auto problem = [&](std::string text) { capture.problems.push_back(std::move(text)); };
  const uint64_t seen = chunks.empty() ? 0 : chunks.back()->header.sequence + 1;
  if (total.chunks > seen) {
    problem(fmt::format("thread {}: the last {} of {} chunks are missing", total.thread,
                        total.chunks - seen, total.chunks));
  }
  if (total.lost != 0) {
    problem(fmt::format("thread {}: {} records were dropped while recording", total.thread,
                        total.lost));
    capture.trace.lost_events += total.lost;
    capture.has_gaps = true;
  }
  uint64_t bytes = 0;
  bool has_parts = false;
  for (const Chunk* chunk : chunks) {
    bytes += chunk->header.raw_size;
    has_parts |= partial.has(*chunk);
  }
  if (has_parts) {
    problem(fmt::format("thread {}: the rest of a chunk is missing", total.thread));
  } else if (!chunks.empty() && seen == total.chunks && chunks.size() == seen &&
             bytes != total.bytes) {
    capture.has_gaps = true;
    problem(fmt::format("thread {}: {} bytes, the trailer counts {}", total.thread, bytes,
                        total.bytes));
  }
}

}  // namespace tsomon::capture
