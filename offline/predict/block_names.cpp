#include "offline/predict/block_names.h"

#include <algorithm>
#include <iterator>

#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

constexpr uint32_t kInMemory =
    kinds::kAccesses | kind_mask(EventKind::kWait) | kind_mask(EventKind::kTry) |
    kind_mask(EventKind::kNotify) | kind_mask(EventKind::kSend) | kind_mask(EventKind::kReceive) |
    kind_mask(EventKind::kRequest) | kind_mask(EventKind::kPost) | kind_mask(EventKind::kTake) |
    kind_mask(EventKind::kCount) | kind_mask(EventKind::kDestroy);
constexpr uint32_t kLives = kind_mask(EventKind::kAllocate) | kind_mask(EventKind::kFree);

}  // namespace

void BlockNames::name(Event* event, std::optional<uint64_t> bytes) {
  if (event->address >= kLast) {
    return;
  }
  if (is(*event, kInMemory)) {
    if (!pieces_.empty() && (event->size != 0 || has_locks(event->address))) {
      event->address |= number_at(event->address) << kShift;
    }
    return;
  }
  if (!is(*event, kLives)) {
    return;
  }
  const uint64_t place = event->address;
  uint64_t size = bytes.value_or(uint64_t{event->size});
  if (event->kind() == EventKind::kAllocate) {
    *sizes_.try_emplace(place, 0).first = size;
    begin(place, size);
  } else {
    const uint64_t* const known = size == 0 ? sizes_.find(place) : nullptr;
    size = known != nullptr ? *known : size;
  }
  event->address |= number_at(place) << kShift;
  event->size = size & Event::kMaxSize;
  event->span_or_extra = static_cast<uint32_t>(size >> 24);
  if (event->kind() == EventKind::kFree) {
    end(place, size);
  }
}

uint64_t BlockNames::number_at(uint64_t address) const {
  const auto after = pieces_.upper_bound(address);
  spend(1);
  if (after == pieces_.begin()) {
    return 0;
  }
  const auto at = std::prev(after);
  return address < at->second.end ? at->second.number : 0;
}

// A piece that reaches over the address ends there, and another one begins.
void BlockNames::split(uint64_t at) {
  const auto after = pieces_.lower_bound(at);
  if (after == pieces_.begin()) {
    return;
  }
  Piece& piece = std::prev(after)->second;
  if (piece.end > at) {
    const Piece rest = piece;
    piece.end = at;
    pieces_.emplace_hint(after, at, rest);
  }
}

void BlockNames::set(uint64_t address, uint64_t bytes, uint64_t number) {
  const uint64_t end = address + bytes;
  split(address);
  split(end);
  auto at = pieces_.lower_bound(address);
  while (at != pieces_.end() && at->first < end) {
    spend(1);
    at = pieces_.erase(at);
  }
  pieces_.emplace_hint(at, address, Piece{end, number});
}

void BlockNames::begin(uint64_t address, uint64_t bytes) {
  if (bytes == 0 || bytes >= kLast - address) {
    return;
  }
  uint64_t last = 0;
  bool any = false;
  auto at = pieces_.upper_bound(address);
  at = at == pieces_.begin() ? at : std::prev(at);
  for (; at != pieces_.end() && at->first < address + bytes; ++at) {
    spend(1);
    if (at->second.end > address) {
      last = std::max(last, at->second.number);
      any = true;
    }
  }
  if (any) {
    set(address, bytes, last == kNumbers ? 1 : last + 1);
  }
}

void BlockNames::end(uint64_t address, uint64_t bytes) {
  if (bytes == 0 || bytes >= kLast - address) {
    return;
  }
  const uint64_t number = number_at(address);
  set(address, bytes, bytes < kUnmapped ? number : number == kNumbers ? 1 : number + 1);
}

}  // namespace tsomon::predict
