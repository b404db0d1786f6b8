// Recordings and results in chunks, on their way into a fleet and out of it.
//
// Cut         Every part into pieces of kChunkBytes, called by their SHA-256 and compressed by zstd. What is there already is not sent.
// Back        Each chunk is looked at when it comes: what does not unpack to the bytes that its name says is damaged. Packs are
//             written anew from their parts.
// Errors      Those of the fleet and of the file; kDamaged: a chunk is not there, or is not what its name says.
// Memory      Some chunks, and the list of them. Complexity: O(size).
// Thread-safety: none; distinct objects are independent.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "monitor/events/mapped_input.h"
#include "monitor/fleet/fleet.h"
#include "monitor/process/descriptor.h"

namespace tsomon::fleet {

class ContentSender {
 public:
  explicit ContentSender(Fleet& fleet) : fleet_(fleet) {}
  Result<Part> send(const std::string& name, std::string_view bytes, int64_t modified);
  // Waits until all are there.
  Result<void> finish();
  uint64_t sent() const { return sent_; }      // bytes, compressed
  uint64_t chunks() const { return chunks_; }  // that were sent

 private:
  Result<void> flush();

  Fleet& fleet_;
  std::vector<std::pair<std::string, std::string>> waiting_;  // by name, not compressed
  uint64_t sent_ = 0;
  uint64_t chunks_ = 0;
};

// What comes out of a fleet. A program that many recordings are of is fetched once: parts that came last are kept in temporary files.
class ContentFetcher {
 public:
  static constexpr uint64_t kMostKept = uint64_t{512} << 20;  // bytes of parts

  explicit ContentFetcher(Fleet& fleet) : fleet_(fleet) {}
  // Writes it to `file`, which is empty: as a pack, or as the file that it was.
  Result<void> fetch(const Content& content, const Descriptor& file);

 private:
  struct Kept {
    std::vector<std::string> chunks;
    std::shared_ptr<const MappedInput> bytes;
  };
  Result<std::shared_ptr<const MappedInput>> part(const Part& part);

  Fleet& fleet_;
  std::list<Kept> kept_;  // what was used last comes first
  uint64_t size_ = 0;
};
Result<std::string> fetch_part(Fleet& fleet, const Part& part);

}  // namespace tsomon::fleet
