// Which records of a capture were written before its clock was untrusted (clock_margin.h).
//
// Complexity  Linear in the parts of the chunks that are asked for. Memory: a few words for each
//             part.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "decoders/capture/chunks.h"
#include "decoders/capture/decoder.h"
#include "decoders/capture/partial.h"

namespace tsomon::capture {

class TrustedRecords {
 public:
  static constexpr uint64_t kAll = UINT64_MAX;

  // Those in chunks that stand before this place of the file; without this all. The chunks must
  // stay alive.
  void only_before(uint64_t place, const std::vector<Chunk>& chunks);
  bool is_limited() const { return place_ != kAll; }

  // How many of the first records of the chunk can be trusted. `is_whole`: it came whole, and stands
  // there.
  uint64_t of(const Chunk& chunk, bool is_whole, DecoderPool& decoders,
              const PartialChunks::Unpack& unpack) const;

 private:
  uint64_t place_ = kAll;
  PartialChunks parts_;
  std::map<std::pair<uint32_t, uint64_t>, const Chunk*> told_;  // by thread and sequence
};

}  // namespace tsomon::capture
