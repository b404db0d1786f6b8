// The memory of a trace in cells: the smallest pieces that no access divides.
//
// Purpose     Overlap of byte ranges is not transitive; equality of cells is. An access covers one
//             or more cells whole, and a read observes one write for each of its cells.
// Numbers     The cells of an access are consecutive. Locations without bytes are a cell each.
// Memory      4 bytes an event.
// Complexity  O(n + r log r) for r distinct ranges; an access has as many cells as there are pieces
//             inside its range.
// Thread-safety: immutable after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/model/location_table.h"
#include "tso/model/trace.h"

namespace tsomon::predict {

struct CellSpan {
  uint32_t first = 0;
  uint32_t count = 0;
};

class CellTable {
 public:
  explicit CellTable(const Trace& trace);

  uint32_t size() const { return size_; }
  // Of a read, write, read-modify-write or lock event; empty for others.
  CellSpan of_event(uint32_t event) const {
    const LocationId id = of_event_[event];
    return id == LocationTable::kNone ? CellSpan{} : spans_[id];
  }
  // Those that lie inside a range of bytes, whole or in part.
  CellSpan of_range(uint64_t address, uint64_t size) const;
  // Where the cell begins, the same in every trace of a run; of a location without bytes its number.
  uint64_t address_of(uint32_t cell) const {
    constexpr uint64_t kNamed = uint64_t{1} << 63;
    return cell < starts_.size() ? starts_[cell] : kNamed | names_[cell - starts_.size()];
  }
  // Identity of a lock event's lock.
  LocationId lock_of(uint32_t event) const { return of_event_[event]; }
  uint32_t locations() const { return static_cast<uint32_t>(spans_.size()); }

 private:
  std::vector<LocationId> of_event_;
  std::vector<CellSpan> spans_;   // by LocationId
  std::vector<uint64_t> starts_;  // of the cells of bytes, in ascending order
  std::vector<uint64_t> names_;   // locations without bytes, whose cells follow these
  uint32_t size_ = 0;
};

}  // namespace tsomon::predict
