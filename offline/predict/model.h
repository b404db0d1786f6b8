// A trace as prediction looks at it: one pass, then queries.
//
// Nodes       The events that can matter: accesses to cells that several threads use and somebody
//             writes, outermost lock operations and upgrades, both ends of hard edges, ends of
//             blocks of memory (which write their cells) and of locks, and the branches that bind
//             such reads. Everything else happens whenever its thread gets
//             there. Node numbers ascend in trace order; `position` counts the nodes of a thread.
// Clocks      A clock has a number for each thread: so many of its nodes are needed before. It
//             contains everything that every reordering with the node contains, and before it:
//             program order, hard edges, and the writes that bound reads saw. Nodes share the
//             clocks that are equal; a clock says nothing about its own thread.
// Buffers     With store buffers each thread has two: number 2t has its events as they are issued, 2t+1
//             the commits of its stores, in the same order. A store is two nodes, of which the second
//             one is the write. It commits after its issue and before anything that drains the
//             buffer; a load that it is forwarded to needs it to be issued only. A release drains
//             the buffer here, which some schedules under TSO do not: see releases_late().
// Memory      4 bytes an event, 36 a node, about 20 for each cell it accesses, and 4 bytes a thread
//             for each node that learns of another thread. Bounded by WorkMeter.
// Complexity  O(n log n) and O(threads) for each node that learns of another thread.
// Errors      Throws WorkEnded (tso/support/work.h).
// Thread-safety: immutable after construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "offline/predict/branches.h"
#include "offline/predict/cells.h"
#include "offline/predict/grouped_lists.h"
#include "offline/predict/hard_edges.h"
#include "offline/predict/semaphores.h"
#include "tso/model/trace.h"
#include "tso/support/flat_map.h"
#include "tso/support/none.h"

namespace tsomon::predict {

using NodeId = uint32_t;

struct Node {
  uint32_t event = 0;  // of the trace
  uint32_t thread : 30 = 0;
  uint32_t reads : 1 = 0;
  uint32_t writes : 1 = 0;
  uint32_t position = 0;
  // Of a read: it is bound where so many nodes of its thread are executed. Of others: the section
  // that it begins or ends.
  uint32_t bound_or_section = kNone;
  uint32_t first_use = 0;  // the uses of a node are consecutive
  uint32_t held = 0;       // what its thread holds before it: see Model::held(NodeId)

  uint32_t bound_at() const { return reads != 0 ? bound_or_section : kNone; }
  uint32_t section() const { return reads != 0 ? kNone : bound_or_section; }
};
static_assert(sizeof(Node) == 24, "there are nearly as many as events");

// One cell of one access.
struct Use {
  uint32_t cell = 0;
  NodeId node = 0;
  // Of a read: the use of the write that it saw; kNone: the initial value. Of what only writes: the
  // next write of the cell; kNone: there is none.
  uint32_t source = kNone;
};

struct Section {
  uint32_t lock = 0;
  uint32_t thread = 0;
  NodeId acquire = kNone;
  NodeId release = kNone;  // kNone: never released
  bool shared = false;
  bool tried = false;  // whoever acquired it would not have waited

  bool excludes(const Section& other) const { return !shared || !other.shared; }
};

// A wait for a condition variable that does not end by time. It begins when the mutex is given back.
struct Wait {
  uint32_t event = 0;
  NodeId release = kNone;
  NodeId acquire = kNone;  // of the mutex, after that; kNone: it never did
};

// A semaphore that is counted.
struct Counter {
  struct Mine {
    uint32_t thread = 0;
    std::vector<NodeId> posts;  // in program order
    std::vector<NodeId> takes;
  };
  struct Step {
    NodeId node = kNone;
    bool takes = false;
    int64_t before = 0;  // the count before it, in the trace
  };
  int64_t initial = 0;
  std::vector<Mine> threads;
  std::vector<Step> steps;  // in the order of the trace
};

// Locks and whether they are held by readers, sorted.
using LockSet = std::vector<std::pair<uint32_t, bool>>;

class Model {
 public:
  // `branches` is not kAuto. The arguments must outlive it.
  Model(const Trace& trace, const CellTable& cells, const std::vector<HardEdge>& edges,
        Branches branches, bool buffers = false);

  const Trace& trace() const { return trace_; }
  bool buffers() const { return buffers_; }
  // How many the nodes belong to: with buffers, each thread of the trace has two.
  uint32_t threads() const { return static_cast<uint32_t>(by_thread_.size()); }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const Event& event(NodeId id) const { return trace_.events[nodes_[id].event]; }
  // The end of a block of memory, which writes its cells. No race and no part of a unit: what it
  // meets is a use of what was freed (lifetimes.h).
  bool frees(NodeId id) const { return event(id).kind() == EventKind::kFree; }
  const std::vector<NodeId>& of_thread(uint32_t thread) const { return by_thread_[thread]; }
  std::span<const Use> uses(NodeId id) const {
    const uint32_t end =
        id + 1 < nodes_.size() ? nodes_[id + 1].first_use : static_cast<uint32_t>(uses_.size());
    return {uses_.data() + nodes_[id].first_use, uses_.data() + end};
  }
  const Use& use(uint32_t index) const { return uses_[index]; }
  uint32_t use_count() const { return static_cast<uint32_t>(uses_.size()); }

  // With buffers: the thread that issues what the thread does, and the one that commits it.
  uint32_t owner(uint32_t thread) const { return buffers_ ? thread & ~1U : thread; }
  uint32_t number(ThreadId thread) const { return buffers_ ? 2 * thread : thread; }
  bool commits(uint32_t thread) const { return buffers_ && (thread & 1U) != 0; }
  NodeId issue_of(NodeId id) const { return commits(nodes_[id].thread) ? id - 1 : id; }
  // A load that its own thread's store may be forwarded to.
  bool forwards(NodeId write, NodeId read) const {
    return buffers_ && nodes_[write].thread == nodes_[read].thread + 1;
  }
  // Commits of a thread that must come before a later load of its own, if that is bound: in the
  // order of the loads. The load saw another thread's store.
  struct CommitFirst {
    NodeId read = kNone;
    NodeId commit = kNone;
  };
  std::span<const CommitFirst> commits_first() const { return commits_first_; }
  std::span<const CommitFirst> commits_first(NodeId read) const;
  // Schedules in which a store commits after its thread has released a lock are left out.
  bool releases_late() const { return releases_late_; }
  // The store is two nodes. Nobody else sees the others.
  bool split(uint32_t event) const { return split_[event]; }

  // Clocks. `before`: of what comes before the node. `needed`: of what its execution takes.
  std::span<const uint32_t> before(NodeId id) const { return row(before_[id]); }
  std::span<const uint32_t> needed(NodeId id) const { return row(needed_[id]); }
  bool always_before(NodeId a, NodeId b) const;
  // Where the node is executed and another thread reads what it has written: then it is not the last
  // one of its thread whose own read is free.
  bool before_seen(NodeId a, NodeId seen) const;
  // A read that is bound as soon as it is executed.
  bool bound_at_once(NodeId id) const { return nodes_[id].bound_at() == nodes_[id].position + 1; }

  std::span<const NodeId> hard_from(NodeId id) const {  // where hard edges that leave it lead
    return {hard_.data() + first_hard_[id], hard_.data() + first_hard_[id + 1]};
  }

  // Pairs of nodes (later, earlier): the later one may happen without the earlier one, but not
  // before it. In the order of the later ones.
  std::span<const std::pair<NodeId, NodeId>> if_both() const { return if_both_; }

  const std::vector<Section>& sections() const { return sections_; }
  uint32_t lock_count() const { return cells_.locations(); }
  uint32_t lock_of(NodeId id) const { return cells_.lock_of(nodes_[id].event); }
  // Acquisitions for itself alone of a lock that the thread holds as a reader. They begin no
  // section: that of the reader goes on.
  const std::vector<NodeId>& upgrades() const { return upgrades_; }
  const std::vector<Wait>& waits() const { return waits_; }
  const std::vector<Counter>& counters() const { return counters_; }
  // That the node posts or takes; kNone.
  uint32_t counter_of(NodeId id) const {
    const uint32_t* const found = counters_.empty() ? nullptr : counter_of_.find(id);
    return found != nullptr ? *found : kNone;
  }
  // Races of it are not to be reported: the program said so (tso/model/channels.h).
  bool unreported(NodeId id) const { return id < unreported_.size() && unreported_[id]; }
  bool benign(uint32_t cell) const;
  bool takes(NodeId id) const { return event(id).kind() == EventKind::kTake; }
  // Notifications of the condition variable of an event, in the order of the trace.
  std::span<const NodeId> notifications_of(const Event& event) const;
  // By lock.
  GroupedLists::Lists sections_of(uint32_t lock) const { return lock_sections_.of(lock); }
  // Of `list`, the last section that begins among the first `count` nodes of its thread and
  // excludes sections of this mode; kNone.
  uint32_t last_section(const ThreadList& list, uint32_t count, bool shared) const;
  // The sections that the thread is in when it has executed so many nodes.
  std::span<const uint32_t> held(uint32_t thread, uint32_t count) const;
  // Before the node.
  std::span<const uint32_t> held(NodeId id) const;
  // Number of the set of locks that is held before the node: below lock_sets().size().
  uint32_t lock_set(NodeId id) const { return helds_[nodes_[id].held].set; }
  const std::vector<LockSet>& lock_sets() const { return lock_sets_; }

  uint32_t cell_count() const { return cells_.size(); }
  uint64_t address_of(uint32_t cell) const { return cells_.address_of(cell); }
  // Uses, by cell and thread.
  GroupedLists::Lists writes_of(uint32_t cell) const { return writes_.of(cell); }
  GroupedLists::Lists accesses_of(uint32_t cell) const { return accesses_.of(cell); }
  // Of `list`, the last use among the first `count` nodes of its thread; kNone.
  uint32_t last_use(const ThreadList& list, uint32_t count) const;
  // visit(list) for each thread that reads what the write, or kNone: nobody, has left in the cell,
  // until it returns false. What it returned at last. Uses are numbered in the order of the trace:
  // the reads are those up to the next write.
  template <typename Visit>
  bool each_readers(uint32_t cell, uint32_t write_use, const Visit& visit) const {
    const uint32_t end = end_of_value(cell, write_use);
    for (const ThreadList& list : accesses_.of(cell)) {
      const auto first = write_use == kNone
                             ? list.items.begin()
                             : std::upper_bound(list.items.begin(), list.items.end(), write_use);
      const auto last = std::lower_bound(first, list.items.end(), end);
      if (first != last && !visit(ThreadList{list.thread, {first, last}})) {
        return false;
      }
    }
    return true;
  }
  // Of `list`, the last read that is bound where so many nodes of its thread are executed.
  uint32_t last_bound(const ThreadList& list, uint32_t count) const;
  // The set of those locks that are held at all accesses to the cell, shared where one of these shares it; kNone: nobody accesses it.
  uint32_t common_set(uint32_t cell) const { return common_set_[cell]; }

  // The position of the event of a node among all events of its thread. O(log n).
  uint32_t place(NodeId id) const;
  // All events of a thread, those that are no nodes included.
  std::span<const uint32_t> events_of(uint32_t thread) const { return events_[thread]; }

 private:
  struct ThreadState;

  // The first use of the cell that certainly does not read what the write has left there.
  uint32_t end_of_value(uint32_t cell, uint32_t write_use) const;
  std::span<const uint32_t> row(uint32_t index) const {
    return {rows_.data() + static_cast<size_t>(index) * threads(), threads()};
  }
  std::vector<bool> find_shared();
  void find_locks();
  bool limits_lock(const Event& event) const;
  void add(uint32_t event, ThreadState& state, bool lock_operation);
  void add_uses(NodeId id, CellSpan span, ThreadState& state);
  bool lock_operation(uint32_t event, ThreadState& state);
  void note_condition(uint32_t event, ThreadState& state);
  void note_step(NodeId id, uint32_t thread, uint32_t counter, bool takes);
  bool tried(uint32_t event, const ThreadState& state) const;
  bool upgrade(uint32_t event, const ThreadState& state) const;
  void learn(ThreadState& state, NodeId id, NodeId source);
  void note_held(uint32_t thread, ThreadState& state);
  uint32_t set_after(uint32_t set, const Section& section, bool acquired);
  uint32_t set_of_both(uint32_t one, uint32_t other);
  uint32_t set_number(LockSet&& set);
  void group();
  void reserve();
  NodeId add_commit(uint32_t event, ThreadState& state);
  NodeId drained_by(uint32_t event, std::vector<ThreadState>& states);
  void note_store(uint32_t event, ThreadState& state, NodeId commit);
  struct Waiting {
    uint32_t store = kNone;  // number among its thread's
    bool whole = true;
  };
  Waiting waiting_store(CellSpan span, const ThreadState& state) const;
  NodeId covered_in_part_by(uint32_t event, const ThreadState& state) const;
  void note_load(NodeId id, CellSpan span, ThreadState& state);
  void note_ignored(const Event& event, ThreadState& state);
  void put_node(uint32_t event, ThreadState& state, bool reads, bool writes);

  const Trace& trace_;
  const CellTable& cells_;
  const std::vector<HardEdge>& edges_;
  Branches branches_;
  bool buffers_;
  bool releases_late_ = false;
  std::vector<CommitFirst> commits_first_;
  std::vector<bool> split_;               // by event
  FlatMap<uint64_t, uint32_t> last_own_;  // number of the store, by thread and cell; while made
  std::vector<bool> shared_;              // by cell
  std::vector<Node> nodes_;
  std::vector<Use> uses_;
  std::vector<std::vector<NodeId>> by_thread_;
  std::vector<std::vector<uint32_t>> events_;
  std::vector<uint32_t> before_;
  std::vector<uint32_t> needed_;
  std::vector<uint32_t> rows_;
  std::vector<uint32_t> first_hard_;
  std::vector<NodeId> hard_;
  std::vector<std::pair<NodeId, NodeId>> if_both_;
  std::vector<uint64_t> locks_;  // where locks and condition variables lie, sorted
  std::vector<Section> sections_;
  std::vector<NodeId> upgrades_;
  std::vector<Wait> waits_;
  std::vector<Counter> counters_;
  FlatMap<NodeId, uint32_t> counter_of_;
  std::vector<bool> unreported_;                       // by node; as far as there are some
  std::vector<std::pair<uint64_t, uint64_t>> benign_;  // addresses and sizes
  std::map<std::pair<uint64_t, uint32_t>, std::vector<NodeId>> notifications_;
  GroupedLists lock_sections_;
  // The sections that a thread is in change at its lock operations. The first entry: none.
  struct Held {
    uint32_t from = 0;  // nodes executed
    uint32_t first = 0;
    uint32_t last = 0;  // in held_pool_
    uint32_t set = 0;   // in lock_sets_
  };
  std::vector<Held> helds_;
  std::vector<std::vector<uint32_t>> held_;  // by thread, in helds_
  std::vector<uint32_t> held_pool_;
  std::vector<LockSet> lock_sets_;
  std::map<LockSet, uint32_t> set_numbers_;
  FlatMap<uint64_t, uint32_t> next_sets_;  // by set and change; while it is made
  FlatMap<uint64_t, uint32_t> both_sets_;  // by two sets; likewise
  GroupedLists writes_;
  GroupedLists accesses_;
  // By cell, while it is made: what accesses of the cell look at, in one place of memory.
  struct CellState {
    uint32_t last_write = kNone;  // use
    uint32_t set = kNone;         // of locks, held at all accesses so far
  };
  std::vector<CellState> cell_states_;
  std::vector<bool> last_reads_;      // the last write of the cell reads it, too
  std::vector<uint32_t> common_set_;  // CellState::set, by cell
};

}  // namespace tsomon::predict
