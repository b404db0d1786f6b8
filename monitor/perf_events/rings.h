// The two rings of a perf event in this process's memory: records, and trace data (AUX area).
//
// Layout      As the kernel has it (perf_event_open(2)): positions that only grow in the control
//             page, taken modulo the size of the area, which is a power of two. The kernel writes
//             the heads, the reader the tails; what lies between is the reader's.
// Snapshot    An AUX area that is mapped read-only is overwritten for ever. Its head is a place in
//             the area, or grows, according to the kernel's version: modulo the size both are the
//             place where the oldest bytes begin, once all of it was written. An area that was
//             not written to its end is zero there.
// Thread-safety: none; the kernel writes at the same time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

struct perf_event_mmap_page;

namespace tsomon::pt_live {

class RecordRing {
 public:
  // `size` bytes of records after the control page at `control`.
  RecordRing(perf_event_mmap_page* control, char* records, size_t size)
      : control_(control), records_(records), size_(size) {}

  // Appends the whole records that have come, as perf.data has them, and frees their room.
  void read(std::string& to);

 private:
  perf_event_mmap_page* control_;
  char* records_;
  size_t size_;
};

class AuxRing {
 public:
  AuxRing(perf_event_mmap_page* control, const char* area, size_t size)
      : control_(control), area_(area), size_(size) {}

  struct Piece {
    uint64_t offset = 0;  // in the stream of this buffer
    std::array<std::string_view, 2> bytes;
    size_t size() const { return bytes[0].size() + bytes[1].size(); }
  };
  // What has come since the last release(). Multiples of 8 bytes, but at the `end` what there is.
  Piece read(bool end) const;
  void release(const Piece& piece);
  // All that there is, the oldest first. The event must not be running.
  Piece snapshot();

 private:
  perf_event_mmap_page* control_;
  const char* area_;
  size_t size_;
  bool wrapped_ = false;
  uint64_t snapshots_ = 0;  // bytes of those before
};

}  // namespace tsomon::pt_live
