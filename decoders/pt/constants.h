// Memory of processes that nobody writes: what the ELF files that code was mapped from hold in
// segments that are not writable.
//
// Contract    All segments of a file lie at the same distance from where the file puts them, as
//             loaders map them; so the mapping of the code gives the place of the others. Bytes
//             that two mappings of a process tell differently are not given. Files with relocations
//             in such segments (DT_TEXTREL) are left out. A program that makes such memory writable
//             itself and changes it is not noticed.
// Settled     What only the loader writes, and before any code but its own reads it: of executables
//             with a loader, the segment that is made read-only after relocation, and the two words
//             in front of the addresses of functions that are bound when they are first called. The
//             file does not tell what they hold, but it is always the same.
// Input       Files that are no ELF files for this machine, or are cut short, give nothing.
// Memory      The segments of each file once.
// Thread-safety: reading is safe to do concurrently.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decoders/pt/input.h"

namespace tsomon::pt {

class Constants {
 public:
  Constants() = default;
  explicit Constants(const std::vector<CodeSection>& code);

  static constexpr uint64_t kPage = 4096;
  struct Page {
    enum class State : uint8_t { kNone, kSome, kOther };
    State state = State::kNone;   // what is known of it: kSome: `bytes`; kOther: as read() says
    const char* bytes = nullptr;  // those from `begin` to `end` in the page
    uint32_t begin = 0;
    uint32_t end = 0;
    bool settled = false;  // some words of it are
  };
  // The page that holds an address. For those who keep it.
  Page page(int process, uint64_t address) const;
  // False when the bytes are not all known. O(log of the mapped segments).
  bool read(int process, uint64_t address, uint8_t* to, size_t size) const;
  bool is_settled(int process, uint64_t address, size_t size) const;
  // Whether a file without a loader of its own is mapped there: the loader itself, the kernel's.
  bool may_be_loader(int process, uint64_t address) const;
  // Of the file that is mapped at the address: where its table for unwinding begins
  // (.eh_frame_hdr); 0: nowhere.
  uint64_t unwind_header(int process, uint64_t address) const;

 private:
  struct Segment {
    uint64_t offset = 0;   // in the file
    uint64_t address = 0;  // as the file has it
    std::string bytes;
    bool code = false;
  };
  struct Block {
    uint64_t address = 0;
    uint64_t size = 0;
  };
  struct File {
    std::vector<Segment> segments;
    uint64_t unwind_header = 0;  // as the file has it; 0: none
    bool loaded = false;         // by a loader, with other files
    std::vector<Block> settled;  // as the file has it
  };
  struct Range {
    uint64_t address = 0;
    const std::string* bytes = nullptr;
    uint64_t unwind_header = 0;
    bool doubtful = false;  // overlaps another one
    bool loaded = false;
  };

  static File read_file(const std::string& file);
  const Range* find(int process, uint64_t address) const;

  std::map<std::string, std::unique_ptr<const File>> files_;
  std::map<int, std::vector<Range>> ranges_;  // by address
  std::map<int, std::vector<Block>> settled_;
};

}  // namespace tsomon::pt
