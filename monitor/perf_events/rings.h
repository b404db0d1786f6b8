// The two rings of a perf event in this process's memory: records, and trace data (AUX area).
//
// Layout      As the kernel has it (perf_event_open(2)): positions that only grow in the control
//             page, taken modulo the size of the area, which is a power of two. The kernel writes
//             the heads, the reader the tails; what lies between is the reader's.
// Snapshot    An AUX area that is mapped read-only is overwritten for ever. Its head is a place in
//             the area, or grows, according to the kernel's version: modulo the size both are the
//             place where the oldest bytes begin, once all of it was written. An area that was
//             not written to its end is zero there.
// Records     The only reader of rings of records, whoever opened the event: perf.data files, watch points, uprobes,
//             samples of memory accesses.
// Errors      kEnvironment with the remedy when a ring cannot be mapped.
// Thread-safety: none; the kernel writes at the same time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <linux/perf_event.h>

#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

namespace tsomon {

class RecordRing {
 public:
  // `size` bytes of records after the control page at `control`.
  RecordRing(perf_event_mmap_page* control, char* records, size_t size)
      : control_(control), records_(records), size_(size) {}

  // Appends the whole records that have come, as perf.data has them, and frees their room. Returns how many bytes were
  // free before: the kernel tells that records were lost with the next one that it writes, which may never come.
  size_t read(std::string& to);

 private:
  perf_event_mmap_page* control_;
  char* records_;
  size_t size_;
};

// A ring of records alone, mapped while it lives.
class MappedRing {
 public:
  // `bytes` of records: a power of two, at least a page.
  static Result<MappedRing> map(const Descriptor& event, size_t bytes);
  MappedRing(MappedRing&& other) noexcept;
  MappedRing& operator=(MappedRing&& other) = delete;
  MappedRing(const MappedRing&) = delete;
  MappedRing& operator=(const MappedRing&) = delete;
  ~MappedRing();

  size_t read(std::string& to) { return records_.read(to); }

 private:
  MappedRing(perf_event_mmap_page* control, size_t bytes);

  perf_event_mmap_page* control_;
  size_t bytes_;
  RecordRing records_;
};

// Calls visit(header, body) for each record, `body` what follows the header. Ends where a record is not whole.
template <typename Visit>
void for_each_record(std::string_view records, const Visit& visit) {
  perf_event_header header{};
  while (records.size() >= sizeof header) {
    std::memcpy(&header, records.data(), sizeof header);
    if (header.size < sizeof header || header.size > records.size()) {
      return;
    }
    visit(header, records.substr(sizeof header, header.size - sizeof header));
    records.remove_prefix(header.size);
  }
}

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

}  // namespace tsomon
