// The memory of a trace in cells: the smallest pieces that no access divides.
//
// Purpose     Overlap of byte ranges is not transitive; equality of cells is. An access covers one
//             or more cells whole, and a read observes one write for each of its cells.
// Blocks      The end of a block of memory writes the cells of its bytes, as far as they are accessed.
// Numbers     The cells of an access are consecutive. Locations without bytes are a cell each.
// Memory      4 bytes an event.
// Complexity  O(n + r log r) for r distinct ranges; an access has as many cells as there are pieces
//             inside its range.
// Thread-safety: immutable after construction.
#pragma once

#include <cstdint>
#include <utility>
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
  // Of a read, write, read-modify-write or lock event, or the end of a block; empty for others.
  CellSpan of_event(uint32_t event) const {
    const LocationId id = of_event_[event];
    return id == LocationTable::kNone ? CellSpan{} : id == kBlock ? of_block(event) : spans_[id];
  }
  // Those that begin inside of a range of bytes: all of a block, and none of its neighbours.
  CellSpan starting_in(uint64_t address, uint64_t size) const;
  // Where the cell begins, the same in every trace of a run; of a location without bytes its number.
  uint64_t address_of(uint32_t cell) const {
    constexpr uint64_t kNamed = uint64_t{1} << 63;
    return cell < starts_.size() ? starts_[cell] : kNamed | names_[cell - starts_.size()];
  }
  // Identity of a lock event's lock.
  LocationId lock_of(uint32_t event) const { return of_event_[event]; }
  uint32_t locations() const { return static_cast<uint32_t>(spans_.size()); }

 private:
  static constexpr LocationId kBlock = LocationTable::kNone - 1;

  // Those that lie inside a range of bytes, whole or in part.
  CellSpan of_range(uint64_t address, uint64_t size) const;
  CellSpan of_block(uint32_t event) const;

  std::vector<LocationId> of_event_;
  std::vector<std::pair<uint32_t, CellSpan>> blocks_;  // of ends of blocks, by event
  std::vector<CellSpan> spans_;                        // by LocationId
  std::vector<uint64_t> starts_;                       // of the cells of bytes, in ascending order
  std::vector<uint64_t> names_;  // locations without bytes, whose cells follow these
  uint32_t size_ = 0;
};

}  // namespace tsomon::predict
