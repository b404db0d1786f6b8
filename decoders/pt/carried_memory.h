// Values of memory that are known, byte by byte.
//
// Cost        One or two look-ups for each access.
// Memory      Forgets everything at kMost cells.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <tsl/robin_map.h>

namespace tsomon::pt {

class CarriedMemory {
 public:
  std::optional<uint64_t> load(uint64_t address, unsigned size) const {
    uint64_t value = 0;
    for (unsigned done = 0; done < size;) {
      const unsigned shift = (address + done) % 8;
      const unsigned part = std::min(size - done, 8 - shift);
      const auto found = cells_.find((address + done) / 8);
      const auto wanted = static_cast<uint8_t>(((1U << part) - 1) << shift);
      if (found == cells_.end() || (found->second.known & wanted) != wanted) {
        return std::nullopt;
      }
      const uint64_t bytes = found->second.value >> (8 * shift);
      value |= (part == 8 ? bytes : bytes & ((uint64_t{1} << (8 * part)) - 1)) << (8 * done);
      done += part;
    }
    return value;
  }

  // Without a value: the bytes are forgotten.
  void store(uint64_t address, uint64_t size, std::optional<uint64_t> value) {
    if (size > 4096 || cells_.size() > kMost) {
      clear();
      return;
    }
    for (uint64_t done = 0; done < size;) {
      const auto shift = static_cast<unsigned>((address + done) % 8);
      const auto part = static_cast<unsigned>(std::min<uint64_t>(size - done, 8 - shift));
      const auto mask = static_cast<uint8_t>(((1U << part) - 1) << shift);
      if (value && size <= 8) {
        Cell& cell = cells_[(address + done) / 8];
        for (unsigned i = 0; i < part; ++i) {
          const unsigned at = 8 * (shift + i);
          cell.value =
              (cell.value & ~(uint64_t{0xFF} << at)) | ((*value >> (8 * (done + i)) & 0xFF) << at);
        }
        cell.known |= mask;
      } else if (const auto found = cells_.find((address + done) / 8); found != cells_.end()) {
        found.value().known &= static_cast<uint8_t>(~mask);
      }
      done += part;
    }
  }

  void clear() {
    if (!cells_.empty()) {
      cells_.clear();
    }
  }

 private:
  static constexpr size_t kMost = size_t{1} << 20;

  struct Cell {
    uint64_t value = 0;
    uint8_t known = 0;  // one bit for each byte
  };
  tsl::robin_map<uint64_t, Cell> cells_;
};

}  // namespace tsomon::pt
