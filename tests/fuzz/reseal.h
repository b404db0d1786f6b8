// Sets the checksums of a capture right, so that what a fuzzer changed gets behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "decoders/capture/format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tsomon::capture {

// The checksum of the header at `at`, and what `change` sets.
template <typename Header, typename Change>
void reseal(std::string& bytes, size_t at, Change change) {
  Header header;
  std::memcpy(&header, bytes.data() + at, sizeof header);
  change(header);
  header.hash = XXH3_64bits(&header, offsetof(Header, hash));
  std::memcpy(bytes.data() + at, &header, sizeof header);
}

inline void reseal(std::string& bytes) {
  if (bytes.size() >= sizeof(FileHeader)) {
    reseal<FileHeader>(bytes, 0, [](FileHeader& header) { header.tag = 1; });
  }
  const uint64_t magic = kChunkMagic;
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

}  // namespace tsomon::capture
