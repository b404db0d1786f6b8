// The payload of a chunk, record by record.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/capture/encoder.h"

namespace tsomon::capture {

class Records {
 public:
  Records() : encoder_(std::make_unique<Encoder>()), tokens_(kCapacity + kMaxToken) {
    start_chunk(*encoder_, tokens_.data(), kCapacity);
  }
  // Of a handler that interrupted `outer`, as it is now, which will be the chunk `sequence`.
  Records(uint64_t sequence, const Records& outer) : Records() {
    Position position;
    REQUIRE(snapshot(*outer.encoder_, &position));
    start_ = {sequence + 1, position.end, static_cast<uint16_t>(position.slot),
              static_cast<uint16_t>(position.count)};
  }

  Records& access(RecordType type, uint64_t address, uint32_t size, uint64_t pc = 0) {
    const uint64_t key = make_key(type, size, pc);
    const SiteCache cached = look_up_site(*encoder_, address, key, 8 * key_slot(key));
    REQUIRE(cached != SiteCache::kExpired);
    if (cached == SiteCache::kMiss) {
      put_access(*encoder_, address, key);
    }
    return *this;
  }
  Records& stamp(uint64_t tsc) {
    put_stamp(*encoder_, tsc);
    return *this;
  }
  // At the beginning of a handler: nothing was under way.
  Records& settled() {
    put_nothing(*encoder_);
    return *this;
  }
  Records& lost(uint64_t count) {
    put_lost(*encoder_, count);
    return *this;
  }
  template <typename... Word>
  Records& other(RecordType type, uint64_t address, uint64_t pc, uint32_t size, uint32_t flags,
                 Word... words) {
    put_record(
        *encoder_,
        {type, size, flags, sizeof...(words), address, pc, {static_cast<uint64_t>(words)...}});
    return *this;
  }
  Records& token(std::initializer_list<uint8_t> bytes) {
    for (const uint8_t byte : bytes) {
      tokens_[encoder_->end++] = byte;
    }
    return *this;
  }
  operator std::string() const {
    if (has_run(*encoder_)) {
      put_nothing(*encoder_);
    }
    std::string payload(reinterpret_cast<const char*>(&start_), sizeof start_);
    payload.append(reinterpret_cast<const char*>(tokens_.data()), encoder_->end);
    return payload;
  }

 private:
  static constexpr size_t kCapacity = 4096;
  std::unique_ptr<Encoder> encoder_;
  std::vector<uint8_t> tokens_;
  ChunkStart start_;
};

using Lines = std::vector<std::string>;
using enum RecordType;

}  // namespace tsomon::capture
