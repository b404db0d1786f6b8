// Conflicts per atomic set, as events arrive.
//
// Source      Theory section 7 (Sumner, Hammer, Dolby: Marathon, RV 2011).
// Purpose     The same edges as tso/atomic_sets.h: for every set a graph of its own, in which an
//             access belongs to the outermost enclosing unit that is declared on the set. An
//             access gets an edge from the latest write of its location and, if it writes, from
//             the loads since then. No program order.
// Order       That of the events. Conflicting accesses whose intervals overlap are counted in
//             DetectorStatistics::uncertain, which makes the result incomplete.
// State       Per location and set the latest write and the units that read since then; collected
//             units leave that list.
// Complexity  O(sets of the location * overlapping ranges * units that read since the last write).
// Misses      A set that is declared after accesses to its members: counted in `late_events`.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "online/location_index.h"
#include "online/policy.h"

namespace tsomon {

class AtomicSetPolicy : public Policy {
 public:
  AtomicSetPolicy(ConflictGraph& graph, const Symbols& symbols)
      : graph_(graph), symbols_(symbols) {}

  void add(const EventBlock& block, uint64_t first_index) override;
  void lost(ThreadId thread) override;
  bool closed(Node node) override { return graph_.unit(node).finished; }
  void after_sweep() override;
  size_t locations() const override { return index_.size(); }
  size_t worth_a_sweep() const override { return index_.size() / 4; }

 private:
  static constexpr Node kNone = ConflictGraph::kNone;

  struct Point {
    Node unit = kNone;
    uint64_t index = 0;
    int64_t hi = 0;
    uint32_t location = Event::kNoLocation;
    ThreadId thread = 0;
    EventKind kind = EventKind::kRead;
  };
  // What happened at a location, as one set sees it.
  struct SetAccesses {
    uint32_t set = 0;
    Point write;
    std::vector<Point> reads;  // since then, one for each unit
  };
  struct OpenUnit {
    bool open = false;
    size_t depth = 0;  // of the frame that opened it
    uint32_t label = Interner::kNone;
    uint64_t begin = 0;
    Node node = kNone;  // created with its first access
  };
  struct Thread {
    std::vector<uint32_t> frames;  // labels of the open units
    std::vector<OpenUnit> units;   // per set
  };

  Thread& thread(ThreadId id);
  void refresh_sets();
  bool declared(uint32_t label, uint32_t set);
  void begin(Thread& thread, const Event& event, uint64_t index);
  void end(Thread& thread);
  void wait(Thread& thread, uint64_t index);
  void finish(OpenUnit& unit);
  void access(const EventBlock& block, const Event& event, uint64_t index);
  Node unit_of(const Event& event, uint64_t index, uint32_t set);
  void find_sets(LocationId id);
  void link(const Point& from, const Event& event, uint64_t index, Node unit);
  uint32_t sets() const {
    return symbols_.sets.empty() ? 1 : static_cast<uint32_t>(symbols_.sets.size());
  }

  ConflictGraph& graph_;
  const Symbols& symbols_;
  size_t known_members_ = 0;  // of all sets, when locations were last told their sets
  size_t known_sets_ = 0;
  std::vector<Thread> threads_;
  LocationIndex index_;
  std::vector<std::vector<SetAccesses>> locations_;  // by location; only sets it belongs to
  std::vector<std::vector<bool>> declared_;          // by label, by set; empty: not looked up
};

}  // namespace tsomon
