#include "decoders/capture/trusted_records.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "tso/support/work.h"

namespace tsomon::capture {
namespace {

// The last records of a part may have been unfinished, and written anew; and five at most stand for
// loads that were held back (monitor/probe/repeats.h).
constexpr uint64_t kUnsettled = 8;
constexpr size_t kEventsAtOnce = 4096;

uint64_t count_records(std::string_view tokens, DecoderPool& decoders) {
  std::unique_ptr<Decoder> decoder = decoders.take();
  decoder->start(tokens);
  uint64_t count = 0;
  for (Record record;;) {
    const uint64_t cached =
        decoder->take_cached(kEventsAtOnce, [](uint64_t, uint64_t, uint32_t) {});
    spend(1 + cached);
    count += cached;
    if (cached == kEventsAtOnce) {
      continue;
    }
    if (decoder->next(record) != Decoder::Step::kRecord) {
      break;
    }
    ++count;
  }
  decoders.give_back(std::move(decoder));
  return count;
}

}  // namespace

void TrustedRecords::only_before(uint64_t place, const std::vector<Chunk>& chunks) {
  place_ = place;
  for (const Chunk& chunk : chunks) {
    if (chunk.offset < place &&
        PartialChunks::is_partial(static_cast<ChunkType>(chunk.header.type))) {
      parts_.add(chunk);
    }
  }
  for (const Chunk& chunk : parts_.left()) {
    told_[{chunk.header.thread, chunk.header.sequence}] = &chunk;
  }
}

uint64_t TrustedRecords::of(const Chunk& chunk, bool is_whole, DecoderPool& decoders,
                            const PartialChunks::Unpack& unpack) const {
  if (!is_limited() || (is_whole && chunk.offset < place_)) {
    return kAll;
  }
  const auto told = told_.find({chunk.header.thread, chunk.header.sequence});
  if (told == told_.end()) {
    return 0;
  }
  const auto payload = parts_.payload(*told->second, unpack);
  if (!payload || payload->size() < sizeof(ChunkStart)) {
    return 0;
  }
  const uint64_t records =
      count_records(std::string_view(*payload).substr(sizeof(ChunkStart)), decoders);
  return records - std::min(records, kUnsettled);
}

}  // namespace tsomon::capture
