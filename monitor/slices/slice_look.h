// What a slice shows of where watching is worth it.
//
// Purpose     Which code accesses what units of several threads had in common at one time: a violation needs that
//             (monitor/slices/plan.h).
// Units       As recorded; an access outside of all is one by itself. Time is that of events (theory section 5.2): a unit lasts
//             from its first event's begin to its last one's. Two meet when they belong to two threads, were open at
//             one time, and access the same word, one of them as a store.
// Words       Of 8 bytes, aligned; locks and the like are not looked at.
// Labels      With patterns (shell patterns of whole labels) one of the two is to be a unit with such a label.
// Symbols     Events name code and labels by number: what these are is asked at the end.
// Complexity  O(n log n) time, O(n) memory in the accesses that differ in unit, word or instruction.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "monitor/input/open_events.h"
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

class SliceLooker : public EventOnlooker {
 public:
  explicit SliceLooker(std::vector<std::string> labels = {}) : patterns_(std::move(labels)) {}

  void add(const EventBlock& block) override;
  // `symbols` have addresses for locations.
  void end(const Symbols& symbols) override;
  // What the events show; once end() was called.
  const SliceLook& look() const { return look_; }

 private:
  struct Unit {
    uint32_t thread = 0;
    uint32_t location = Event::kNoLocation;  // where it begins
    int64_t begin = 0;
    int64_t end = 0;
    uint64_t label = kNone;
    bool labelled = false;  // as asked for; at the end
  };
  struct Use {
    uint64_t word = 0;
    uint32_t unit = 0;
    uint32_t location = Event::kNoLocation;
    bool stores = false;
  };
  struct Thread {
    uint32_t depth = 0;
    uint32_t unit = 0;  // the outermost one that is open
  };

  static constexpr uint64_t kNone = UINT64_MAX;

  uint32_t new_unit(const Event& event, uint64_t label);
  bool matches(uint64_t label, const Symbols& symbols) const;
  void find_labelled(const Symbols& symbols);

  std::vector<std::string> patterns_;
  std::unordered_map<uint32_t, Thread> threads_;
  std::vector<Unit> units_;
  std::vector<Use> uses_;
  std::unordered_map<uint64_t, uint32_t> last_use_;  // of a word
  SliceLook look_;
};

// Of a capture: how many events it has. O(1) memory.
Result<uint64_t> events_of_slice(const std::string& file);

}  // namespace tsomon
