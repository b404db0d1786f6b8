// Memory of processes that nobody writes: what the ELF files that code was mapped from hold in
// segments that are not writable.
//
// Contract    All segments of a file lie at the same distance from where the file puts them, as
//             loaders map them; so the mapping of the code gives the place of the others. Bytes
//             that two mappings of a process give differently are left out. Files with relocations
//             in such segments (DT_TEXTREL) are left out. A program that makes such memory writable
//             itself and changes it is not noticed.
// Settled     What only the loader writes, and before any code but its own reads it: of executables
//             with a loader, the segment that is made read-only after relocation, and the two words
//             before the addresses of functions that are bound when they are first called. The
//             file does not say what they hold, but it is always the same.
// Input       Files that are no ELF files for this machine, or are cut short, give nothing.
// Memory      The segments that were asked for, of each file once: they are read when that happens.
//             A file that has changed by then gives nothing.
// Thread-safety: reading is safe to do concurrently.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decoders/pt/packets/input.h"

namespace tsomon::pt {

class ReadOnlyData {
 public:
  ReadOnlyData() = default;
  explicit ReadOnlyData(const std::vector<CodeSection>& code);

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
  // Whether all of the bytes are writable data of a mapped file that loaders put at an address of
  // its own; may_be_data(): whether any may be.
  bool is_data(int process, uint64_t address, uint64_t size) const;
  bool may_be_data(int process, uint64_t address, uint64_t size) const;
  bool is_settled(int process, uint64_t address, size_t size) const;
  // Whether a file without a loader of its own is mapped there: the loader itself, the kernel's.
  bool may_be_loader(int process, uint64_t address) const;
  // What a word says that the C library is relocated with: how far from the thread pointer a
  // variable of a thread is. Known where no other mapped file has such variables: its block is then
  // the first one, directly below the thread pointer (psABI, "thread-local storage"). All files
  // must be given.
  std::optional<uint64_t> thread_offset(int process, uint64_t address) const;
  // Whether a file of the GNU C library, or its loader, is mapped there, as it names itself.
  bool is_c_library(int process, uint64_t address) const;
  // A file without a loader of its own that is mapped there: where its address 0 is.
  std::optional<uint64_t> loader_at(int process, uint64_t address) const;
  // Whether the loader may write to a byte of it while it binds a symbol: its own data, and the
  // words of addresses that are bound late (as the files' relocations say).
  bool may_change_by_binding(int process, uint64_t address, uint64_t size) const;
  // Whether the loader puts the way to its code that binds symbols into the word at the address.
  bool is_resolver(int process, uint64_t address) const;
  // Of the file that is mapped at the address: where its table for unwinding begins
  // (.eh_frame_hdr); 0: nowhere.
  uint64_t unwind_header(int process, uint64_t address) const;

 private:
  struct Segment {
    uint64_t offset = 0;   // in the file
    uint64_t address = 0;  // as the file has it
    uint64_t size = 0;
    bool code = false;
  };
  // The bytes of a segment.
  struct Content {
    std::once_flag asked;
    std::unique_ptr<char[]> bytes;  // null: cannot be read
  };
  struct Block {
    uint64_t address = 0;
    uint64_t size = 0;
  };
  // A word of variables' places.
  struct Offset {
    uint64_t address = 0;  // as the file has it
    uint64_t value = 0;    // if the block is the first one
  };
  // Where the file's headers say what relocations there are.
  struct Relocations {
    uint64_t table = 0;
    uint64_t size = 0;
    uint64_t symbols = 0;
  };
  struct File {
    std::string name;
    uint64_t size = 0;
    std::filesystem::file_time_type time;
    std::vector<Segment> segments;
    std::unique_ptr<Content[]> contents;  // of each segment
    uint64_t unwind_header = 0;           // as the file has it; 0: none
    uint64_t resolver = 0;                // as the file has it; 0: none
    bool loaded = false;                  // by a loader, with other files
    bool c_library = false;
    bool thread_variables = false;
    std::vector<Offset> thread_offsets;
    std::vector<Block> settled;  // as the file has it
    std::vector<Block> data;     // likewise
    std::vector<Block> bound;    // likewise; what binding changes
  };
  struct Range {
    uint64_t address = 0;
    const File* file = nullptr;
    size_t segment = 0;  // of the file
    uint64_t base = 0;   // where the file's address 0 is
    uint64_t unwind_header = 0;
    bool doubtful = false;  // overlaps another one
    bool loaded = false;

    uint64_t size() const { return file->segments[segment].size; }
    bool operator==(const Range& other) const {
      return address == other.address && file == other.file && segment == other.segment;
    }
  };

  static File read_file(const std::string& file);
  using Blocks = std::map<uint64_t, uint64_t>;  // where they begin: their ends; they do not touch
  static constexpr uint64_t kEverywhere = ~uint64_t{0};  // as a size
  static std::vector<Offset> thread_offsets(std::ifstream& file,
                                            const std::vector<Segment>& segments,
                                            const Relocations& relocations, Block settled,
                                            uint64_t below);
  template <typename T>
  static bool read_object(std::ifstream& file, const std::vector<Segment>& segments,
                          uint64_t address, T& to);
  static bool names_c_library(std::ifstream& file, const std::vector<Segment>& segments,
                              uint64_t name);
  static std::vector<Block> late_words(std::ifstream& file, const std::vector<Segment>& segments,
                                       uint64_t table, uint64_t size);
  static void add(Blocks& blocks, uint64_t base, const std::vector<Block>& more);
  static bool meets(const std::map<int, Blocks>& blocks, int process, uint64_t address,
                    uint64_t size);
  static const char* bytes_of(const Range& range);
  const Range* find(int process, uint64_t address) const;

  std::map<std::string, std::unique_ptr<const File>> files_;
  std::map<int, std::vector<Range>> ranges_;  // by address
  std::map<int, std::vector<Block>> settled_;
  std::map<int, std::set<uint64_t>> resolvers_;
  std::map<int, Blocks> data_;
  std::map<int, Blocks> bound_;
  std::map<int, std::map<uint64_t, uint64_t>> thread_offsets_;  // values by address
};

}  // namespace tsomon::pt
