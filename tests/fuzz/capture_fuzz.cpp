// Captures: whatever the bytes, reading ends, and what it gives is a well-formed trace. Every input
// is read twice: as it is, and with its checksums set right, so that the search gets behind them.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "decoders/capture/format.h"
#include "decoders/capture/reader.h"
#include "tso/result.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace {

using tsomon::capture::ChunkHeader;
using tsomon::capture::FileHeader;

// Sets the checksums of the header at `at`, and what `change` sets.
template <typename Header, typename Change>
void reseal(std::string& bytes, size_t at, Change change) {
  Header header;
  std::memcpy(&header, bytes.data() + at, sizeof header);
  change(header);
  header.hash = XXH3_64bits(&header, offsetof(Header, hash));
  std::memcpy(bytes.data() + at, &header, sizeof header);
}

void reseal(std::string& bytes) {
  if (bytes.size() >= sizeof(FileHeader)) {
    reseal<FileHeader>(bytes, 0, [](FileHeader& header) { header.tag = 1; });
  }
  const uint64_t magic = tsomon::capture::kChunkMagic;
  const std::string_view pattern(reinterpret_cast<const char*>(&magic), sizeof magic);
  size_t at = 0;
  while ((at = bytes.find(pattern, at)) != std::string::npos &&
         bytes.size() - at >= sizeof(ChunkHeader)) {
    const size_t body = at + sizeof(ChunkHeader);
    reseal<ChunkHeader>(bytes, at, [&](ChunkHeader& header) {
      header.tag = 1;
      if (header.stored_size <= bytes.size() - body) {
        header.payload_hash = XXH3_64bits(bytes.data() + body, header.stored_size);
      }
    });
    at = body;
  }
}

void read(std::string_view bytes) {
  const auto capture = tsomon::capture::read_capture(bytes, uint64_t{1} << 18);
  if (!capture) {
    TSOMON_CHECK(!capture.error().message.empty(), "an error without a message");
    return;
  }
  const tsomon::Trace& trace = capture->trace;
  TSOMON_CHECK(trace.complete == capture->problems.empty(), "a loss without a description");
  for (const tsomon::Event& event : trace.events) {
    TSOMON_CHECK(trace.lo(event) <= trace.hi(event), "an interval ends before it begins");
    TSOMON_CHECK(event.thread < trace.symbols.threads.size(), "an unknown thread");
    TSOMON_CHECK(event.kind() != tsomon::EventKind::kUnitBegin ||
                     event.address < trace.symbols.labels.size(),
                 "an unknown label");
    trace.symbols.location_text(event.location);
    trace.symbols.access_text(event);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  reseal(bytes);
  read(bytes);
  return 0;
}
