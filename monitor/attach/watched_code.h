// What a watch point was hit by: the instruction before the one that was to run next.
//
// Contract    Instructions are decoded from the start of the function on, so that the one that ends
//             where the hit was is certain. A repeated string instruction is met before its end:
//             then the hit is at the instruction itself.
// Misses      Code without a symbol and without unwinding data; accesses of the kernel.
// Complexity  A function is decoded at its first hit; each place is looked at once.
// Thread-safety: none.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "monitor/attach/hits_to_events.h"
#include "monitor/attach/plan.h"
#include "monitor/process/symbols.h"

namespace tsomon::attach {

class WatchedCode {
 public:
  // All must live on.
  WatchedCode(const Target& target, const Plan& plan, Symbols& symbols)
      : target_(target), plan_(plan), symbols_(symbols) {}

  WatchedAccess find(const Hit& hit);
  // Modules have come or gone, or the plan has grown.
  void forget_places() { places_.clear(); }

 private:
  struct Place {
    bool known = false;
    bool probed = false;
    std::vector<x86::Access> accesses;
    uint32_t location = Event::kNoLocation;
  };
  struct Code {
    std::unique_ptr<ElfImage> elf;
    std::unique_ptr<Symboliser> symboliser;
  };
  const Place& place_at(uint64_t address);
  Place decode(uint64_t address);
  bool is_probed(uint32_t module, uint64_t address) const;

  const Target& target_;
  const Plan& plan_;
  Symbols& symbols_;
  std::map<uint32_t, Code> modules_;
  std::unordered_map<uint64_t, Place> places_;  // by address in memory
};

}  // namespace tsomon::attach
