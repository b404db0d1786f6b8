// Conflicts per atomic set, as events arrive.
//
// Source      Theory section 7 (Sumner, Hammer, Dolby: Marathon, RV 2011).
// Purpose     The same edges as tso/check/atomic_sets.h: for every set a graph of its own, in which
//             an access belongs to the outermost enclosing unit that is declared on the set. An
//             access gets an edge from the latest write of its location and, if it writes, from the
//             loads since then, of other locations where both have bytes of the set in common. No
//             program order.
// Order       That of the events. Conflicting accesses whose intervals overlap are counted in
//             DetectorStatistics::uncertain, which makes the result incomplete; their edge is a
//             kOverlap, and the two units become a candidate once both have ended. Not of a set, or
//             an object, that no unit accesses more than once: it has no cycle in whatever order.
// State       A cell for each location and set: the latest write and the units that read since
//             then. Units that were collected drop out; what their intervals still overlap is
//             remembered.
// Complexity  O(sets of the location * overlapping ranges * units that read since the last write).
//             A new location: O(log ranges) for declared sets (ranges that nest deeply cost more),
//             O(log objects) for objects.
// Misses      A set that is declared after accesses to its members, and a first allocation after
//             accesses under SetChoice::kAuto: counted in `late_events`.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "online/graph/open_units.h"
#include "online/graph/policy.h"
#include "online/set_policy/live_objects.h"
#include "online/set_policy/set_members.h"
#include "online/structures/location_index.h"
#include "online/structures/prune_schedule.h"
#include "tso/check/atomic_sets.h"

namespace tsomon {

class AtomicSetPolicy : public Policy {
 public:
  using Report = std::function<void(const DetectedCycle&)>;
  using Flag = std::function<void(DetectedCandidate&&)>;  // absent: no candidates
  // Candidates of two units with the same labels, by conflicts of the same source locations, before
  // only those whose number is a power of two are flagged.
  static constexpr uint64_t kCandidatesOfAPlace = 16;

  AtomicSetPolicy(ConflictGraph& graph, const Symbols& symbols, SetChoice choice, Report report,
                  Report repeat, Flag flag)
      : graph_(graph),
        symbols_(symbols),
        choice_(choice),
        report_(std::move(report)),
        repeat_(std::move(repeat)),
        flag_(std::move(flag)) {
    mode_ = choice == SetChoice::kObjects ? Mode::kObjects : Mode::kEverything;
  }

  void add(const EventBlock& block, uint64_t first_index) override;
  void lost(ThreadId thread) override;
  void finish() override;
  bool closed(Node node) override { return graph_.unit(node).finished; }
  void after_sweep() override;
  size_t locations() const override { return index_.size(); }
  bool wants_sweep() const override { return pace_.many(index_.size()); }

  // The graph has found a cycle; of an object it is reported once that is certain.
  // `repeated`: one that is known.
  void on_cycle(const DetectedCycle& cycle, bool repeated);

 private:
  static constexpr Node kNone = ConflictGraph::kNone;
  using CellId = uint32_t;
  static constexpr CellId kNoCell = 0xFFFFFFFFU;
  static constexpr CellId kFurther = 0x80000000U;  // ids of cells beyond the first of a location

  enum class Mode : uint8_t { kEverything, kDeclared, kObjects };

  // An access, as later ones need it.
  struct Point {
    uint64_t index = 0;
    int64_t hi = 0;
    Node unit = kNone;
    uint32_t location = Event::kNoLocation;
    ThreadId thread = 0;
    uint16_t generation = 0;  // of `unit`
    EventKind kind = EventKind::kRead;
    bool present : 1 = false;
    bool shaky : 1 = false;   // may be to another object
    bool latest : 1 = false;  // of the unit of the point before, with a longer interval
    bool more : 1 = false;    // of the first read: Cell::reads is not all
  };
  static_assert(sizeof(Point) == 32);
  // What happened at a location, as one set sees it: one cache line.
  struct alignas(64) Cell {
    Point write;
    Point read;  // the first since then
  };
  // The rest of the reads, one for each unit, and reads of units that are gone.
  struct MoreReads {
    std::vector<Point> points;
    size_t prune_at = 8;
    Reach gone;
  };
  struct CellInfo {
    uint32_t set = 0;
    uint32_t birth = 0;  // of an object: LiveObjects::birth
    CellId next = kNoCell;
    bool used = false;
    std::unique_ptr<MoreReads> more;
  };
  // The event in hand.
  struct Current {
    const Event* event = nullptr;
    uint64_t index = 0;
    int64_t hi = 0;
    Node unit = kNone;
    bool writes = false;
    bool shaky = false;
    uint32_t set = 0;         // of its cell
    LocationKey theirs = {};  // location of the access that it conflicts with
  };
  // By set, or by the slot of an object.
  struct Scope {
    uint32_t birth = 0;         // of the object
    bool units_of_two = false;  // some unit has accessed it more than once
    uint64_t uncertain = 0;     // before that
  };
  // A cycle inside an object, until all accesses to it so far are over.
  struct Held {
    DetectedCycle cycle;
    LiveObjects::Slot object = 0;
    int64_t until = 0;
    bool repeated = false;
  };

  // Two units of which each may have come first. At most kMaxOpenPairs wait for the end of a unit.
  static constexpr size_t kMaxOpenPairs = 64;
  struct OpenPair {
    struct Side {
      Node node = kNone;  // until it has ended
      DetectedUnit unit;
    };
    std::array<Side, 2> sides;
    DetectedCandidate candidate;
  };

  OpenUnits& thread(ThreadId id) { return id < threads_.size() ? threads_[id] : new_thread(id); }
  OpenUnits& new_thread(ThreadId id);
  void refresh_sets();
  void restart(Mode mode);
  void reopen_units();
  void find_sets(LocationId id);
  void boundary(const Event& event, uint64_t index);
  void finish_unit(Node node) {
    graph_.unit(node).finished = true;
    if (!open_pairs_.empty()) {
      settle(node);
    }
  }
  void note_open_order(const Point& from, const Current& now);
  void settle(Node ended);
  void flag(OpenPair& pair);
  LocationId find_location(const Event& event);
  void access(const EventBlock& block, const Event& event, uint64_t index, LocationId here);
  void access_object(const EventBlock& block, const Event& event, uint64_t index);
  void access_cell(Current& now, CellId mine, LocationId here);
  Node unit_of(const Event& event, uint64_t index, uint32_t set);
  Scope& scope(uint32_t set);
  void count_uncertain(uint32_t set);
  void conflicts(CellId id, const Current& now);
  void link(const Point& from, const Current& now);
  void record(CellId id, const Current& now);
  void record_read(CellId id, const Point& point, int64_t lo);
  void allocate(const EventBlock& block, const Event& event, uint64_t index);
  void end_object(const LiveObjects::Ended& ended);
  void report_held(int64_t now);
  void tell(const DetectedCycle& cycle, bool repeated) const {
    if (const Report& to = repeated ? repeat_ : report_; to) {
      to(cycle);
    }
  }

  bool gone(const Point& point) const {
    return point.unit == kNone || point.generation != graph_.generation(point.unit);
  }
  // For the reads of units that are gone, prunes when `now` is past.
  void prune(MoreReads& more, int64_t now);
  bool follow(Point* point) const;
  bool clean_up(CellId id);
  void drop_cells(LocationId id);

  Cell& cell(CellId id) {
    return (id & kFurther) == 0 ? cells_[id] : further_cells_[id & ~kFurther];
  }
  CellInfo& info(CellId id) {
    return (id & kFurther) == 0 ? infos_[id] : further_infos_[id & ~kFurther];
  }
  CellId add_cell(LocationId id, uint32_t set, uint32_t birth);
  void clear_cell(CellId id);

  ConflictGraph& graph_;
  const Symbols& symbols_;
  SetChoice choice_;
  Report report_;
  Report repeat_;
  Flag flag_;
  Mode mode_ = Mode::kEverything;
  uint64_t accesses_ = 0;  // since the mode was chosen
  SetMembers members_;
  std::vector<Scope> scopes_;
  std::vector<OpenUnits> threads_;
  LocationIndex index_;
  std::vector<Cell> cells_;  // the first one of each location, by its id
  std::vector<CellInfo> infos_;
  std::vector<Cell> further_cells_;
  std::vector<CellInfo> further_infos_;
  std::vector<CellId> free_cells_;  // of the further ones
  struct Tied {
    CellId cell = kNoCell;
    ThreadId thread = 0;
  };
  std::vector<Tied> tied_;  // reads at now_ that their cells do not show
  int64_t now_ = kTimeMin;
  std::vector<OpenPair> open_pairs_;  // the oldest first
  // How often, by source locations and labels of both sides.
  std::map<std::array<uint32_t, 4>, uint64_t> open_orders_;
  uint64_t next_index_ = 0;
  uint64_t lost_before_ = 0;  // units that began earlier may lack events
  // Objects.
  LiveObjects objects_;
  std::vector<LiveObjects::Ended> ended_;
  std::vector<Held> held_;
  LiveObjects::Slot object_ = LiveObjects::kNone;  // in hand
  PruneSchedule pace_;
};

}  // namespace tsomon
