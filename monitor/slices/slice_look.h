// What a slice shows of where watching is worth it.
//
// Purpose     Which code accesses what units of several threads had in common at one time: a violation needs that
//             (monitor/slices/plan.h).
// Units       As recorded; an access outside of all is one by itself. Time is that of events (theory section 5.2): a unit lasts
//             from its first event's begin to its last one's. Two meet when they belong to two threads, were open at
//             one time, and access the same word, one of them as a store.
// Words       Of 8 bytes, aligned; locks and the like are not looked at.
// Labels      With patterns (shell patterns of whole labels) one of the two is to be a unit with such a label.
// Complexity  O(n log n) time, O(n) memory in the accesses that differ in unit, word or instruction.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon {

struct SliceLook {
  uint64_t events = 0;
  // Return addresses of the runtime's calls, ascending: of all accesses and units; of those to words at which units have
  // met, and of where these units begin; of all that these units do.
  std::vector<uint64_t> seen;
  std::vector<uint64_t> met;
  std::vector<uint64_t> met_units;
};

class SliceLooker {
 public:
  explicit SliceLooker(std::vector<std::string> labels = {}) : patterns_(std::move(labels)) {}

  // In the order of time. `symbols` grow, and have addresses for locations.
  void add(const EventBlock& block, const Symbols& symbols);
  SliceLook finish();

 private:
  struct Unit {
    uint32_t thread = 0;
    uint64_t pc = 0;  // where it begins
    int64_t begin = 0;
    int64_t end = 0;
    bool labelled = false;  // as asked for
  };
  struct Use {
    uint64_t word = 0;
    uint32_t unit = 0;
    uint64_t pc = 0;
    bool stores = false;
  };
  struct Thread {
    uint32_t depth = 0;
    uint32_t unit = 0;  // the outermost one that is open
  };

  uint32_t new_unit(const Event& event, const Symbols& symbols, bool labelled);
  uint64_t address(uint32_t location, const Symbols& symbols);
  bool label_matches(uint64_t label, const Symbols& symbols);

  std::vector<std::string> patterns_;
  std::vector<int8_t> labels_;                        // by id: whether they match; -1: not known
  std::unordered_map<uint32_t, uint64_t> addresses_;  // by location
  std::unordered_map<uint32_t, Thread> threads_;
  std::vector<Unit> units_;
  std::vector<Use> uses_;
  std::unordered_map<uint64_t, uint32_t> last_use_;  // of a word
  uint64_t events_ = 0;
};

// Of a capture: how many events it has. O(1) memory.
Result<uint64_t> events_of_slice(const std::string& file);
// Of a capture.
Result<SliceLook> look_at_slice(const std::string& file, const std::vector<std::string>& labels);

}  // namespace tsomon
