#include "tso/support/interner.h"

namespace tsomon {
namespace {

uint32_t hash_of(std::string_view text) {
  // FNV-1a over 8 bytes a step: names are short, and a call into a hash library costs more.
  uint64_t hash = 0xcbf29ce484222325ULL ^ text.size();
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word = 0;
    __builtin_memcpy(&word, text.data() + i, 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  uint64_t tail = 0;
  __builtin_memcpy(&tail, text.data() + i, text.size() - i);
  hash = (hash ^ tail) * 0x9E3779B97F4A7C15ULL;
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

uint32_t Interner::slot_of(std::string_view text, uint32_t hash) const {
  const uint32_t mask = static_cast<uint32_t>(slots_.size()) - 1;
  uint32_t slot = hash & mask;
  while (slots_[slot] != kNone) {
    const Entry& entry = entries_[slots_[slot]];
    if (entry.hash == hash && std::string_view(bytes_).substr(entry.offset, entry.length) == text) {
      break;
    }
    slot = (slot + 1) & mask;
  }
  return slot;
}

void Interner::grow() {
  slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, kNone);
  const uint32_t mask = static_cast<uint32_t>(slots_.size()) - 1;
  for (uint32_t id = 0; id < entries_.size(); ++id) {
    uint32_t slot = entries_[id].hash & mask;
    while (slots_[slot] != kNone) {
      slot = (slot + 1) & mask;
    }
    slots_[slot] = id;
  }
}

uint32_t Interner::intern(std::string_view text) {
  if (entries_.size() * 2 >= slots_.size()) {
    grow();
  }
  const uint32_t hash = hash_of(text);
  const uint32_t slot = slot_of(text, hash);
  if (slots_[slot] == kNone) {
    slots_[slot] = size();
    entries_.push_back({bytes_.size(), static_cast<uint32_t>(text.size()), hash});
    bytes_.append(text);
  }
  return slots_[slot];
}

uint32_t Interner::find(std::string_view text) const {
  return slots_.empty() ? kNone : slots_[slot_of(text, hash_of(text))];
}

std::string_view Interner::text(uint32_t id) const {
  return std::string_view(bytes_).substr(entries_[id].offset, entries_[id].length);
}

}  // namespace tsomon
