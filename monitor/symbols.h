// Instruction pointers of a recorded program to functions and source lines, with elfutils libdw.
//
// Addresses   Recorded pcs are return addresses (decoders/capture/record.h): pc - 1 is looked up.
// Inlining    frames() gives the whole chain of inlined calls. The text of a location names the
//             innermost frame outside the system's headers: the line that uses std::atomic, not
//             the line inside <atomic>.
// Build-ids   A file that has another build-id than the recorded module is not used: its lines
//             would be wrong. Then, and without symbols, the text is "module+0xOFFSET", where
//             OFFSET is the address as the file counts it.
// Misses      Lines of code that was unloaded and replaced at the same address; the callers of a
//             function that was not inlined; code generated at run time.
// Complexity  A module is opened at its first lookup; every pc is looked up once.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "decoders/capture/reader.h"
#include "tso/trace.h"

namespace tsomon {

struct SourceFrame {
  std::string function;  // demangled, without parameters; "" when it is not known
  std::string file;      // as the compiler recorded it; "" when it is not known
  int line = 0;
};

// "ns::f(int)" as "ns::f", for the name that the linker knows.
std::string readable_name(const char* linker_name);

class Symboliser {
 public:
  explicit Symboliser(std::vector<capture::Module> modules);
  ~Symboliser();
  Symboliser(const Symboliser&) = delete;
  Symboliser& operator=(const Symboliser&) = delete;

  // Innermost first; empty when nothing is known.
  std::vector<SourceFrame> frames(uint64_t pc);
  // "function file.cpp:123", "function+0x1a module", "module+0x401136" or "0x401136".
  const std::string& text(uint64_t pc);
  // Modules that could not be used, and why.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct OpenModule;
  const capture::Module* find(uint64_t address) const;
  const OpenModule& open(const capture::Module& module);
  std::string make_text(uint64_t pc);

  std::vector<capture::Module> modules_;
  std::unordered_map<std::string, std::unique_ptr<OpenModule>> open_;
  std::unordered_map<uint64_t, std::string> texts_;
  std::vector<std::string> warnings_;
};

// Replaces source locations that are pcs ("0x401136") by their text, block by block.
class LocationTexts {
 public:
  explicit LocationTexts(std::vector<capture::Module> modules) : symboliser_(std::move(modules)) {}

  // `pcs` may have grown since the last call; it is always the same table.
  void replace(const Interner& pcs, EventBlock& block);
  // The table that the replaced locations refer to.
  Interner take() { return std::move(texts_.locations); }
  const std::vector<std::string>& warnings() const { return symboliser_.warnings(); }

 private:
  Symboliser symboliser_;
  std::vector<uint32_t> ids_;  // by id in `pcs`
  Symbols texts_;              // its locations
};

// The same for a whole trace. Returns the warnings.
std::vector<std::string> symbolise(Trace& trace, const std::vector<capture::Module>& modules);

}  // namespace tsomon
