#include "monitor/perf_events/rings.h"

#include <algorithm>
#include <cstring>

#include <linux/perf_event.h>

namespace tsomon::pt_live {
namespace {

uint64_t head_of(const __u64& head) { return __atomic_load_n(&head, __ATOMIC_ACQUIRE); }

// [from, from + count) of an area in which positions are taken modulo its size.
std::array<std::string_view, 2> pieces(const char* area, size_t size, uint64_t from, size_t count) {
  const size_t begin = from % size;
  const size_t first = std::min(count, size - begin);
  return {std::string_view(area + begin, first), std::string_view(area, count - first)};
}

}  // namespace

void RecordRing::read(std::string& to) {
  const uint64_t head = head_of(control_->data_head);
  uint64_t tail = control_->data_tail;
  if (head - tail > size_) {  // not what a kernel does
    tail = head;
  }
  const auto parts = pieces(records_, size_, tail, static_cast<size_t>(head - tail));
  to += parts[0];
  to += parts[1];
  __atomic_store_n(&control_->data_tail, head, __ATOMIC_RELEASE);
}

AuxRing::Piece AuxRing::read(bool end) const {
  const uint64_t head = head_of(control_->aux_head);
  Piece piece;
  piece.offset = control_->aux_tail;
  uint64_t count = std::min<uint64_t>(head - piece.offset, size_);
  count -= end ? 0 : count % 8;
  piece.bytes = pieces(area_, size_, piece.offset, static_cast<size_t>(count));
  return piece;
}

void AuxRing::release(const Piece& piece) {
  __atomic_store_n(&control_->aux_tail, piece.offset + piece.size(), __ATOMIC_RELEASE);
}

AuxRing::Piece AuxRing::snapshot() {
  const uint64_t head = head_of(control_->aux_head);
  const size_t at = head % size_;
  wrapped_ = wrapped_ || head >= size_ ||
             std::any_of(area_ + at, area_ + size_, [](char byte) { return byte != 0; });
  Piece piece;
  piece.offset = snapshots_;
  piece.bytes = wrapped_ ? pieces(area_, size_, at, size_) : pieces(area_, size_, 0, at);
  snapshots_ += piece.size();
  return piece;
}

}  // namespace tsomon::pt_live
