// Which declared sets a location belongs to, and which units are declared on them.
//
// Complexity  refresh(): O(members * log members) when something was declared, else O(sets). A
//             location: O(log members + members that overlap), a little more where ranges nest. A
//             label: O(sets that it names).
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tso/model/set_bytes.h"
#include "tso/model/trace.h"

namespace tsomon {

class SetMembers {
 public:
  // True when sets or members were declared since the last time.
  bool refresh(const Symbols& symbols);
  // Numbers of the sets, increasing.
  void sets_of(const LocationKey& key, std::vector<uint32_t>* sets) const;
  // What two locations have in common is in the set.
  bool share(uint32_t set, const LocationKey& a, const LocationKey& b) const {
    return bytes_[set].meets_both(a, b);
  }
  // Units whose labels name no set are declared on all of them; the others on these.
  bool is_on_all(const Symbols& symbols, uint32_t label) { return known(symbols, label).all; }
  const std::vector<uint32_t>& sets_of_label(const Symbols& symbols, uint32_t label) {
    return known(symbols, label).sets;
  }

 private:
  struct Range {
    uint64_t first = 0;
    uint64_t last = 0;   // the last byte; of names: 0
    uint64_t reach = 0;  // the largest `last` up to here
    uint32_t set = 0;
  };
  struct Label {
    bool known = false;
    bool all = false;
    std::vector<uint32_t> sets;
  };

  const Label& known(const Symbols& symbols, uint32_t label);

  uint64_t known_members_ = 0;
  size_t known_sets_ = 0;
  std::vector<Range> ranges_;    // by first byte
  std::vector<Range> names_;     // by id
  std::vector<SetBytes> bytes_;  // of each set
  std::vector<Label> labels_;
  std::unordered_map<std::string, std::vector<uint32_t>> by_name_;
};

}  // namespace tsomon
