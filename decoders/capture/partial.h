// Events chunks of which only the beginning is in a capture: the process was killed.
//
// A recording repeats again and again what lies in chunks that are not full: kPart, each after the
// one before, or, live, kOpen, each the whole beginning. They matter only where the events chunk
// with the same thread and sequence is missing.
// Complexity  Linear in the parts. Memory: a few words for each chunk that is left, and for each
//             part of it. A payload is put together when it is asked for, and has at most
//             kMaxChunkBytes. Thread-safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "decoders/capture/chunks.h"

namespace tsomon::capture {

class PartialChunks {
 public:
  static bool is_partial(ChunkType type) {
    return type == ChunkType::kOpen || type == ChunkType::kPart;
  }

  // In the order of the file. `chunk` must stay alive.
  void add(const Chunk& chunk);
  // Its parts add nothing more.
  void is_whole(const ChunkHeader& header) { parts_.erase(key(header)); }

  // After all of these: a chunk for each beginning that is left, with the header that it would
  // have but for the sizes. They stay where they are.
  const std::deque<Chunk>& left();
  bool has(const Chunk& chunk) const { return parts_of(chunk) != nullptr; }
  using Unpack = std::function<Result<std::string>(const Chunk&)>;
  // What would be the payload, as far as the parts join. Fails when the first one is not intact.
  Result<std::string> payload(const Chunk& chunk, const Unpack& unpack) const;

 private:
  using Key = std::pair<uint32_t, uint64_t>;  // thread, sequence
  static Key key(const ChunkHeader& header) { return {header.thread, header.sequence}; }
  const std::vector<const Chunk*>* parts_of(const Chunk& chunk) const;

  std::map<Key, std::vector<const Chunk*>> parts_;
  std::deque<Chunk> left_;
  std::map<const Chunk*, const std::vector<const Chunk*>*> of_;
};

}  // namespace tsomon::capture
