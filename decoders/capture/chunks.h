// The chunks of a capture file, found in its bytes: every intact one, and what is damaged.
//
// Damage      A chunk whose header or payload fails its checksum is left out; the search goes on
//             after its header for the next chunk magic, so a chunk torn by a full disk or by two
//             writers costs itself alone. What lies between two intact chunks is reported.
// Complexity  Linear in the size of the file, also on hostile input.
// Misses      Damage that keeps both XXH3-64 sums (2^-64 for accidental damage; XXH3 is no
//             protection against forgery). A chunk missing as a whole shows only as a gap in the
//             sequence numbers: the reader's business.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/format.h"
#include "tso/support/result.h"

namespace tsomon::capture {

struct Chunk {
  ChunkHeader header;
  uint64_t offset = 0;      // of the header in the file
  std::string_view stored;  // payload, within the bytes given to find_chunks
};

struct Damage {
  uint64_t begin = 0;  // bytes [begin, end) of the file
  uint64_t end = 0;
  std::string what;
};

struct ChunkList {
  std::optional<FileHeader> header;  // absent when it is damaged
  std::vector<Chunk> chunks;         // in file order
  std::vector<Damage> damage;        // in file order
};

// True for what begins like a capture file, also when its header is damaged after the magic or
// only its first chunk is whole. The first 128 bytes are enough.
bool looks_like_capture(std::string_view bytes);

// Fails on what is not a capture at all and on another major version.
Result<ChunkList> find_chunks(std::string_view bytes);

// Whether the header's checksum holds; its magic is not looked at.
bool intact(const ChunkHeader& header);

// The payload as it was before packing.
Result<std::string> unpack(const Chunk& chunk);

// "thread 3, chunk 7" or "process chunk 2".
std::string chunk_name(const ChunkHeader& header);

}  // namespace tsomon::capture
