// Functions and their frames, as the table for unwinding (.eh_frame) that compilers leave in every
// file gives them.
//
// Source      Linux Standard Base, "Exception Frames"; DWARF 4, 6.4.
// Contract    What the table says; nothing where it is damaged, says it in a way that is not read
//             here (encodings that compilers do not use on this machine), or means a signal frame.
// Errors      None: a table that cannot be read has no functions.
// Complexity  find: O(log functions); the rest: O(length of the function's entry).
// Thread-safety: reading is safe to do concurrently, as far as `Read` is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace tsomon::pt {

class UnwindTable {
 public:
  // Bytes of the process; false when they are not all known.
  using Read = std::function<bool(uint64_t address, uint8_t* to, size_t size)>;

  struct Function {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t entry = 0;  // address of its description
    uint64_t call_sites =
        0;  // address of the table of its calls that exceptions may leave; 0: none
  };

  // `header`: address of .eh_frame_hdr.
  UnwindTable(Read read, uint64_t header);

  // Whose code `ip` is. Parts of a function that lie elsewhere (.cold) are functions here.
  std::optional<Function> find(uint64_t ip) const;
  // Bytes from the stack pointer, before the instruction at `ip`, up to after the frame's
  // return address. Nothing where that distance is not constant.
  std::optional<int64_t> frame_size(const Function& function, uint64_t ip) const;
  // Where exceptions go on in the function. Nothing: not known.
  std::optional<std::vector<uint64_t>> landing_pads(const Function& function) const;

 private:
  struct Entry;
  std::optional<Entry> read_entry(uint64_t address) const;

  Read read_;
  uint64_t header_ = 0;
  uint64_t table_ = 0;  // of pairs: function, entry
  uint64_t count_ = 0;
};

}  // namespace tsomon::pt
