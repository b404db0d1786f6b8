// Instruction pointers of a recorded program to functions and source lines, with elfutils libdw.
//
// Addresses   Recorded pcs are return addresses (decoders/capture/record.h): pc - 1 is looked up.
// Inlining    frames() gives the whole chain of inlined calls. The text of a location names the
//             innermost frame outside the system's headers: the line that uses std::atomic, not
//             the line inside <atomic>. The frames around that one are its callers. Code that ended
//             up in several functions has one text: the callers that all agree on, and then those that it may have been.
// Library     What libstdc++ does to count references (ext/atomicity.h, shared_ptr_base.h), and what it
//             looks at before it waits for an atomic (atomic_wait.h) or a future (atomic_futex.h), is called
//             so, before the line that uses it: says_library_own().
// Copies      Compilers make several instructions of one place: SourcePlace::within is the same for them.
// Files       Where they are: module_files.h.
// Build-ids   A file that has another build-id than the recorded module is not used: its lines
//             would be wrong. Then, and without symbols, the text is "module+0xOFFSET", where
//             OFFSET is the address as the file counts it.
// Variables   variable() names what lies in the data of a file: its symbol and the offset in it. No
//             symbol is there for memory of threads (thread-local), of the heap and of stacks.
// Calls       calls() has those that may have led from one function to another one that was not inlined, from the
//             code (call_paths.h says what it misses).
// Misses      Lines of code that was unloaded and replaced at the same address; code generated at run time.
// Complexity  A module is opened at its first lookup; every pc is looked up once.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decoders/capture/reader.h"
#include "monitor/process/file_search.h"
#include "tso/model/trace.h"

namespace tsomon {

struct SourceFrame {
  std::string function;  // demangled, without parameters; "" when it is not known
  std::string file;      // as the compiler recorded it; "" when it is not known
  int line = 0;
  int column = 0;           // 0: not known
  std::string folder = {};  // that a relative `file` is relative to; "" when it is not known
  // By line.
  bool operator==(const SourceFrame& other) const {
    return function == other.function && file == other.file && line == other.line;
  }
};

// Calls that may have led to a place, the innermost first; of each the places in the code that it may have been made at.
using SourceCalls = std::vector<std::vector<SourceFrame>>;

// Where code is, as far as it is known. The same code has the same build-id, function and line on
// every machine and in every run; without a line, the same text.
struct SourcePlace {
  std::string text;      // as reports show it
  std::string module;    // the file that the code is in
  std::string code;      // the file here that was read for it; empty: `module`
  std::string build_id;  // of that file, in hexadecimal
  std::string function;
  std::string file;  // as the compiler recorded it
  int line = 0;      // 0: not known
  uint64_t pc = 0;   // one that the text stands for; 0: not known
  // The calls that it was inlined for, the innermost first; those in system headers are left out.
  std::vector<SourceFrame> callers;
  // Around those, where code with this text was inlined for different ones.
  SourceCalls more_callers;
  // The text of `file`, where it came with the recording; null: it is looked for on this machine.
  std::shared_ptr<const std::string> source = {};
  // Tells it from other places with this text: its column, and where it was inlined ("12/34:5").
  std::string within = {};
  std::string folder = {};  // that a relative `file` is relative to; "" when it is not known

  // Both, as Symbols::place_text() has them.
  std::string exact() const { return within.empty() ? text : text + Symbols::kWithin + within; }
};
// By text. Where different places have one text (an inlined function of several files) the first
// by build-id.
using SourcePlaces = std::unordered_map<std::string, SourcePlace>;
void add_place(const SourcePlace& place, SourcePlaces* places);
// The place with this text; where none is known the text alone.
SourcePlace place_in(const SourcePlaces& places, const std::string& text);

// Whether the text of a place says that the C++ library accesses something for its own ends there:
// "reference count in function file.cpp:123", or "look before waiting in ...".
bool says_library_own(std::string_view text);

// "function file.cpp:123", as far as it is known.
std::string frame_text(const SourceFrame& frame);

// "ns::f(int)" as "ns::f", for the name that the linker knows.
std::string readable_name(const char* linker_name);

class Symboliser {
 public:
  explicit Symboliser(std::vector<capture::Module> modules, FileSearch search = {});
  ~Symboliser();
  Symboliser(const Symboliser&) = delete;
  Symboliser& operator=(const Symboliser&) = delete;

  // Innermost first; empty when nothing is known.
  std::vector<SourceFrame> frames(uint64_t pc);
  // Its text is "function file.cpp:123", "function+0x1a module", "module+0x401136" or "0x401136".
  const SourcePlace& place(uint64_t pc);
  const std::string& text(uint64_t pc) { return place(pc).text; }
  // Of the data at `address`: "counter", "accounts+0x10", "module+0x4028" where no symbol covers
  // it; empty when it is in no file.
  std::string variable(uint64_t address);
  // Between two instructions; empty where they lie in one function.
  SourceCalls calls(uint64_t from, uint64_t to);
  // Whether the atomic load at the instruction is done again until it finds something else (waiting_loops.h).
  bool waits(uint64_t pc);
  // Files that could not be used, and why.
  std::vector<std::string> warnings() const;
  const std::vector<capture::Module>& modules() const { return modules_; }

 private:
  struct OpenModule;
  const capture::Module* find(uint64_t address) const;
  OpenModule& open(const capture::Module& module);
  SourcePlace make_place(uint64_t pc);

  std::vector<capture::Module> modules_;
  FileSearch search_;
  std::unordered_map<std::string, std::unique_ptr<OpenModule>> open_;
  std::unordered_map<uint64_t, SourcePlace> places_;
  std::vector<std::string> warnings_;
};

}  // namespace tsomon
