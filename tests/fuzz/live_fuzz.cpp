// Live captures: whatever the bytes and the pieces that they come in, reading ends, and what it
// gives are well-formed events of known threads, none behind a thread's end. Every input is read
// twice: as it is, and with its checksums set right. The last byte says how long the pieces are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "decoders/capture/live.h"
#include "tests/fuzz/reseal.h"
#include "tso/support/result.h"

namespace {

// A small input may hold very many events.
constexpr uint64_t kMaxEvents = uint64_t{1} << 18;

class Reading {
 public:
  explicit Reading(size_t piece) : reader_(kMaxEvents), piece_(piece) {}

  void run(std::string_view bytes) {
    bool good = true;
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, piece_);
      bytes.remove_prefix(piece.size());
      const auto fed = reader_.feed(piece);
      TSOMON_CHECK(good || !fed, "damage is forgotten");
      TSOMON_CHECK(fed || !fed.error().message.empty(), "an error without a message");
      good = fed.has_value();
      take();
    }
    reader_.finish();
    take();
    TSOMON_CHECK(running_.empty(), "a thread that never ends");
    TSOMON_CHECK(events_ <= 4 * kMaxEvents + 1000000, "more events than were asked for");
  }

 private:
  void take() {
    const int64_t before = reader_.round();
    reader_.take([&](const tsomon::capture::LiveReader::News& news) {
      const tsomon::Symbols& symbols = reader_.symbols();
      TSOMON_CHECK(ended_.count(news.thread) == 0 || news.events->events.empty(),
                   "events of a thread that has ended");
      (news.ended ? ended_ : running_).insert(news.thread);
      if (news.ended) {
        running_.erase(news.thread);
      }
      for (const tsomon::Event& event : news.events->events) {
        TSOMON_CHECK(news.events->lo(event) <= news.events->hi(event),
                     "an interval ends before it begins");
        TSOMON_CHECK(event.thread < symbols.threads.size(), "an unknown thread");
        TSOMON_CHECK(
            event.kind() != tsomon::EventKind::kUnitBegin || event.address < symbols.labels.size(),
            "an unknown label");
      }
      events_ += news.events->events.size();
    });
    TSOMON_CHECK(reader_.round() == before, "taking moves the rounds");
  }

  tsomon::capture::LiveReader reader_;
  size_t piece_;
  std::set<uint32_t> running_;
  std::set<uint32_t> ended_;
  uint64_t events_ = 0;
};

// Payloads that unpack to very much would only cost time.
bool is_small(std::string_view bytes) {
  using tsomon::capture::ChunkHeader;
  uint64_t total = 0;
  const uint64_t magic = tsomon::capture::kChunkMagic;
  const std::string_view pattern(reinterpret_cast<const char*>(&magic), sizeof magic);
  for (size_t at = bytes.find(pattern); at != std::string_view::npos;
       at = bytes.find(pattern, at + 1)) {
    if (bytes.size() - at >= sizeof(ChunkHeader)) {
      ChunkHeader header;
      std::memcpy(&header, bytes.data() + at, sizeof header);
      total += std::min(header.raw_size, uint64_t{1} << 40);
    }
  }
  return total < (uint64_t{4} << 20);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const size_t piece = bytes.empty() ? 1 : 1 + 16 * static_cast<uint8_t>(bytes.back());
  if (is_small(bytes)) {
    Reading(piece).run(bytes);
    tsomon::capture::reseal(bytes);
    Reading(piece).run(bytes);
  }
  return 0;
}
