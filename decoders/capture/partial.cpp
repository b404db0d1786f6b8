#include "decoders/capture/partial.h"

#include <cstring>

namespace tsomon::capture {

void PartialChunks::add(const Chunk& chunk) {
  std::vector<const Chunk*>& parts = parts_[key(chunk.header)];
  if (static_cast<ChunkType>(chunk.header.type) == ChunkType::kOpen) {
    if (chunk.header.raw_size <= sizeof(OpenEntry)) {
      return;  // nothing new
    }
    parts.clear();  // each tells all of it
  }
  parts.push_back(&chunk);
}

const std::deque<Chunk>& PartialChunks::left() {
  for (const auto& [key, parts] : parts_) {
    if (!parts.empty()) {
      Chunk chunk = *parts.front();
      chunk.header.type = static_cast<uint32_t>(ChunkType::kEvents);
      left_.push_back(chunk);
      of_[&left_.back()] = &parts;
    }
  }
  return left_;
}

const std::vector<const Chunk*>* PartialChunks::parts_of(const Chunk& chunk) const {
  const auto found = of_.find(&chunk);
  return found == of_.end() ? nullptr : found->second;
}

Result<std::string> PartialChunks::payload(const Chunk& chunk, const Unpack& unpack) const {
  std::string payload;
  size_t tail = 0;
  for (const Chunk* part : *parts_of(chunk)) {
    auto bytes = unpack(*part);
    if (!bytes) {
      if (payload.empty()) {
        return bytes;
      }
      break;
    }
    if (static_cast<ChunkType>(part->header.type) == ChunkType::kOpen) {
      payload = bytes->substr(std::min(bytes->size(), sizeof(OpenEntry)));
      tail = 0;
      continue;
    }
    PartEntry entry;
    if (bytes->size() < sizeof entry) {
      break;
    }
    std::memcpy(&entry, bytes->data(), sizeof entry);
    const size_t size = bytes->size() - sizeof entry;
    if (entry.from == 0) {  // from here on it is told in parts
      payload.clear();
      tail = 0;
    }
    // Damage may have taken one away: what follows does not join.
    if (entry.from != payload.size() - tail || entry.tail > size ||
        payload.size() + size > kMaxChunkBytes) {
      break;
    }
    payload.resize(entry.from);
    payload.append(*bytes, sizeof entry);
    tail = entry.tail;
  }
  return payload;
}

}  // namespace tsomon::capture
