#include "monitor/perf_events/rings.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

#include "monitor/perf_events/perf_event.h"

namespace tsomon {
namespace {

uint64_t head_of(const __u64& head) { return __atomic_load_n(&head, __ATOMIC_ACQUIRE); }

// [from, from + count) of an area in which positions are taken modulo its size.
std::array<std::string_view, 2> pieces(const char* area, size_t size, uint64_t from, size_t count) {
  const size_t begin = from % size;
  const size_t first = std::min(count, size - begin);
  return {std::string_view(area + begin, first), std::string_view(area, count - first)};
}

}  // namespace

size_t RecordRing::read(std::string& to) {
  const uint64_t head = head_of(control_->data_head);
  uint64_t tail = control_->data_tail;
  if (head - tail > size_) {  // not what a kernel does
    tail = head;
  }
  const auto parts = pieces(records_, size_, tail, static_cast<size_t>(head - tail));
  to += parts[0];
  to += parts[1];
  __atomic_store_n(&control_->data_tail, head, __ATOMIC_RELEASE);
  return size_ - static_cast<size_t>(head - tail);
}

Result<MappedRing> MappedRing::map(const Descriptor& event, size_t bytes) {
  void* const mapped =
      ::mmap(nullptr, kPage + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
  if (mapped == MAP_FAILED) {
    return fail(ErrorKind::kEnvironment,
                fmt::format("a ring for perf events cannot be mapped: {}; run as root, or: sysctl "
                            "kernel.perf_event_mlock_kb=100000",
                            std::strerror(errno)));
  }
  return MappedRing(static_cast<perf_event_mmap_page*>(mapped), bytes);
}

MappedRing::MappedRing(perf_event_mmap_page* control, size_t bytes)
    : control_(control),
      bytes_(bytes),
      records_(control, reinterpret_cast<char*>(control) + kPage, bytes) {}

MappedRing::MappedRing(MappedRing&& other) noexcept
    : control_(std::exchange(other.control_, nullptr)),
      bytes_(other.bytes_),
      records_(other.records_) {}

MappedRing::~MappedRing() {
  if (control_ != nullptr) {
    ::munmap(control_, kPage + bytes_);
  }
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

}  // namespace tsomon
