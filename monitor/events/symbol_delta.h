// What is new of Symbols that grow on one thread and are looked at on another.
//
// Purpose     Each block of events carries the names that go with it, so who judges the block has
//             the symbols as they were when it was read.
// Complexity  O(what is new), and O(sets and their members) where there are atomic sets.
// Thread-safety: SymbolDeltaWriter belongs to the thread that reads, the learnt Symbols to the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon {

struct SymbolDelta {
  std::vector<std::string> labels;
  std::vector<std::string> threads;
  std::vector<std::string> locations;
  std::vector<InitialValue> initial_values;
  std::optional<std::vector<AtomicSet>> sets;  // all of them, when they have changed
  bool initial_zero = true;
};

class SymbolDeltaWriter {
 public:
  // kJudged: labels, atomic sets and initial values, on which verdicts depend. kAll: the names of
  // threads and the source locations as well, which reports show.
  enum class What : uint8_t { kJudged, kAll };
  explicit SymbolDeltaWriter(What what) : what_(what) {}

  // Replaces `delta` by what is new since the last call.
  void write(const Symbols& symbols, SymbolDelta& delta);

 private:
  static void write(const Interner& texts, uint32_t* written, std::vector<std::string>& delta);

  What what_;
  uint32_t labels_ = 0;
  uint32_t threads_ = 0;
  uint32_t locations_ = 0;
  size_t initial_values_ = 0;
  size_t sets_ = 0;
  size_t members_ = 0;
};

// What was written becomes part of `symbols`.
void learn(SymbolDelta&& delta, Symbols& symbols);

}  // namespace tsomon
