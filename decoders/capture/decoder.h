// Unpacks the records of a chunk (tokens.h), one at a time.
//
// Cost        Linear in the records, constant memory (some 330 KB). A chunk of n bytes may hold far
//             more than n records, at most about 500,000 a token: take them in portions.
// Errors      Whatever the bytes, next() ends; what cannot be a token ends the chunk.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "decoders/capture/tokens.h"

namespace tsomon::capture {

class Decoder {
 public:
  enum class Step : uint8_t {
    kRecord,
    kStop,       // at the position of stop_at(), which is forgotten; go on with next()
    kEnd,        // no more records
    kMalformed,  // no token stands here; kEnd follows
  };

  Decoder();

  // Begins a chunk. `tokens`, the payload after ChunkStart, must live on.
  void start(std::string_view tokens);
  void stop_at(const Position& position);
  Step next(Record& record);
  // The plain accesses of 1 to 8 bytes that were cached and come next, at most `limit`; returns
  // how many. For each visit(key, address, tag): a site keeps its tag, at first kUntagged, up to
  // the end of the chunk or until another site displaces it.
  template <typename Visit>
  size_t take_cached(size_t limit, const Visit& visit);
  static constexpr uint32_t kUntagged = 0xFFFFFFFEU;

  // Bytes of tokens that were read.
  uint64_t place() const { return cursor_; }
  uint64_t size() const { return tokens_.size(); }

 private:
  struct Entry {
    uint64_t key = 0;
    uint64_t address = 0;  // and stride and base: learn() in tokens.h
    uint64_t stride = 0;
    uint64_t next = 0;
    Base base = Base::kNone;
    uint32_t count = 0;
    uint32_t tag = kUntagged;
  };
  struct Details {  // not needed for cached accesses
    uint64_t delta = 0;
    uint64_t behind = kNoOffset;
    uint64_t other = kNoOffset;
    uint64_t value = 0;
  };
  enum class Phase : uint8_t { kToken, kRun, kRest };

  template <typename T>
  bool take(T& value);
  bool begin_token();
  Step step(Record& record);
  Step rest(Record& record);
  bool control(Record& record);
  bool extras(Record& record);
  bool second_part(Record& record);
  bool word(uint32_t width, uint64_t& difference);
  bool stops_in_run() const;
  bool at_target() const { return last_ == target_.slot && entries_[last_].count == target_.count; }
  bool stamp_before() const;
  bool is_nothing() const;
  Step malformed();

  std::string_view tokens_;
  uint64_t cursor_ = 0;
  uint64_t token_ = 0;  // where the one that is being read begins
  uint8_t first_ = 0;
  Phase phase_ = Phase::kToken;
  Position target_;
  uint32_t last_ = kNoSlot;
  uint64_t stamp_ = 0;
  Bases bases_;
  std::vector<Entry> entries_;
  std::vector<Details> details_;
  std::vector<uint32_t> used_;  // slots of entries with a key
  bool stops_ = false;
  Position stop_;
  bool has_queued_ = false;
  Record queued_;
};

// Decoders that are not in use, so that what comes later needs none of its own: their tables are
// large. Not thread-safe.
class DecoderPool {
 public:
  std::unique_ptr<Decoder> take() {
    if (free_.empty()) {
      return std::make_unique<Decoder>();
    }
    std::unique_ptr<Decoder> decoder = std::move(free_.back());
    free_.pop_back();
    return decoder;
  }
  void give_back(std::unique_ptr<Decoder> decoder) { free_.push_back(std::move(decoder)); }

 private:
  std::vector<std::unique_ptr<Decoder>> free_;
};

// What is rare is left to next().
template <typename Visit>
size_t Decoder::take_cached(size_t limit, const Visit& visit) {
  if (phase_ != Phase::kRun || stops_ || has_queued_) {
    return 0;
  }
  Entry* const entries = entries_.data();
  const Position target = target_;
  const uint32_t stamp_at = stamp_before() ? target.count : 0;
  uint32_t last = last_;
  Bases bases = bases_;
  size_t taken = 0;
  while (taken != limit && (last != target.slot || entries[last].count != target.count)) {
    const uint64_t key = entries[last].next;
    const uint32_t slot = key_slot(key);
    Entry& entry = entries[slot];
    // Also where there is no such site.
    if (key - 1 >= kOtherKey - 1 || entry.key != key || entry.count == kMaxCount ||
        (slot == target.slot && entry.count + 1 == stamp_at)) {
      break;
    }
    const uint64_t address = cached_address(entry, bases);
    visit(key, address, entry.tag);
    advance(entry, bases, address);
    ++entry.count;
    last = slot;
    ++taken;
  }
  last_ = last;
  bases_ = bases;
  return taken;
}

}  // namespace tsomon::capture
