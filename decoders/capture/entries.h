// The payloads that are lists of entries: of all chunks but those with events.
//
// The read_ functions return false when an entry is cut off; those before it count.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/clock_margin.h"
#include "decoders/capture/format.h"
#include "decoders/capture/reader.h"
#include "decoders/capture/stream.h"

namespace tsomon::capture {

// Reads entries of fixed size with bytes after them from a payload.
class EntryReader {
 public:
  explicit EntryReader(std::string_view payload) : rest_(payload) {}
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  template <typename Entry>
  bool entry(Entry& entry) {
    if (rest_.size() < sizeof entry) {
      return false;
    }
    std::memcpy(&entry, rest_.data(), sizeof entry);
    rest_.remove_prefix(sizeof entry);
    return true;
  }
  bool bytes(uint64_t size, std::string_view& bytes) {
    if (rest_.size() < size) {
      return false;
    }
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

 private:
  std::string_view rest_;
};

// Code without hooks, from all chunks of kNotInstrumented.
struct UnseenCode {
  std::string linked;
  std::vector<std::string> modules;
  std::string system_modules;
  std::string children;       // of fork, not recorded
  std::string shared_memory;  // with other processes
  // Asm statements that were executed and are not understood: they may be accesses, locks, fences.
  std::vector<std::string> assembly;

  bool read(EntryReader& reader);  // as the functions below
  // What is wrong with a recording that has such asm statements; empty: there are none.
  std::string assembly_problem() const;
  // Why the recording of this process alone shows nothing to be clean; empty: nothing speaks for it.
  std::string other_writers() const;
  // For reports: none when all of the program is seen.
  std::vector<std::string> notes() const;
};

bool read_modules(EntryReader& reader, std::vector<Module>& modules);
bool read_texts(EntryReader& reader, ChunkType type, Names& names);
void read_command_line(std::string_view payload, std::vector<std::string>& command_line);
// What is wrong with them goes to `problems`. `ranges` counts them over all chunks.
bool read_sets(EntryReader& reader, std::vector<AtomicSet>& sets, uint32_t& ranges,
               std::vector<std::string>& problems);
bool read_clock(EntryReader& reader, ClockMargin& clock, uint64_t place = 0);
// By thread; a later trailer knows more.
bool read_end(EntryReader& reader, std::map<uint32_t, EndEntry>& totals);

}  // namespace tsomon::capture
