// What an ELF file says about its code: functions, variables, markers, bytes.
//
// Symbols     Of .symtab, .dynsym and of separate debugging data (by build-id or .gnu_debuglink, as
//             debuggers look for it), through elfutils.
// Addresses   As the file counts them ("file addresses"); offset_of() gives the place in the file,
//             which is what uprobes are set by.
// Frames      function_around() reads the unwinding table (.eh_frame), which stripped files keep.
// Markers     USDT notes (.note.stapsdt), as <sys/sdt.h> writes them.
// Memory      24 bytes a symbol and 16 a function with an unwinding table; the file is mapped.
// Misses      Functions whose code is not in one piece, but for GCC's NAME.cold part. Unwinding
//             tables that are not PC-relative with 32 bits (no compiler for x86-64 writes them).
// Errors      kMalformed: not an ELF file that elfutils can read.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/process/debug_session.h"
#include "tso/support/result.h"

namespace tsomon::attach {

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool contains(uint64_t address) const { return begin <= address && address < end; }
};

// There are a million in a large file: nothing here is a copy of what the file has.
struct Symbol {
  const char* name = "";  // as the linker knows it; lasts as long as the image
  uint64_t address = 0;
  uint64_t size = 0;  // of a function without one: up to the next one

  std::string_view text() const { return name; }
  std::string readable() const;                    // demangled, without parameters and type
  bool matches(const std::string& pattern) const;  // one of the shell, and either name
  Range range() const { return {address, address + size}; }
};

// Of symbols by address the one whose bytes have this one, and that begins last: of aliases the first by name; null.
const Symbol* symbol_around(const std::vector<Symbol>& symbols, uint64_t address);

struct Marker {
  std::string provider;
  std::string name;
  uint64_t address = 0;
  uint64_t semaphore = 0;  // file address of its counter; 0: none
};

class ElfImage {
 public:
  // `file`: what to read; `shown`: where separate debugging data is looked for, beside what `debug` says.
  static Result<std::unique_ptr<ElfImage>> open(const std::string& file, const std::string& shown,
                                                const DebugPlace& debug = {});
  ElfImage(const ElfImage&) = delete;
  ElfImage& operator=(const ElfImage&) = delete;

  // By address, and by name; aliases stay.
  const std::vector<Symbol>& functions() const { return functions_; }
  const std::vector<Symbol>& variables() const { return variables_; }
  const std::vector<Marker>& markers() const { return markers_; }
  std::optional<uint64_t> offset_of(uint64_t address) const;
  std::optional<uint64_t> address_of(uint64_t offset) const;
  std::optional<Range> function_around(uint64_t address) const;
  // The initial contents of executable memory; empty when it is not all there.
  std::vector<uint8_t> code(const Range& range) const;

 private:
  struct Segment {
    uint64_t address = 0;
    uint64_t offset = 0;
    uint64_t size = 0;  // in the file
    bool executable = false;
  };
  explicit ElfImage(const DebugPlace& debug) : session_(debug) {}
  void read_segments();
  void read_symbols();
  void read_sections();

  std::string file_;
  DebugSession session_;
  Dwfl_Module* module_ = nullptr;
  std::vector<Segment> segments_;
  std::vector<Symbol> functions_;
  std::vector<Symbol> variables_;
  std::vector<Marker> markers_;
  std::vector<Range> frames_;  // by begin
};

}  // namespace tsomon::attach
