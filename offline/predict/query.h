// Whether nodes of different threads can meet: each of them next in its thread, in one reordering.
//
// Purpose     What races and deadlocks ask. Everything that is made once for a trace is here; the
//             result is a witness of whole events, which the caller has the validator check.
// Tiers       The sync-preserving set, which takes the time of the set alone; then the closed order
//             (reordering.h), with as few sections completed as possible, then all.
// Windows     The closed order is looked for among the latest nodes, then among more of them, up to
//             Windows::last: what comes before stays as it is in the trace. A refusal is final
//             where no larger window could change it; otherwise it is counted in cut_short().
// Errors      Throws WorkEnded.
// Thread-safety: none, as a query has scratch memory; but another() may be used in another thread.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "offline/predict/access_groups.h"
#include "offline/predict/feasible_set.h"
#include "offline/predict/model.h"
#include "offline/predict/reordering.h"
#include "offline/predict/validator.h"
#include "offline/predict/witness.h"

namespace tsomon::predict {

enum class Tier : uint8_t { kSyncPreserving, kClosure };

struct Meeting {
  Tier tier = Tier::kSyncPreserving;
  Witness witness;  // up to the nodes that meet and without them
};

// Nodes of the trace among which the closed order is looked for.
struct Windows {
  uint32_t first = 1U << 12;
  uint32_t factor = 16;
  uint32_t last = 1U << 20;
};

// What another thread does between two accesses of a thread: `first` comes before `to`, `from`
// before `last`. `to` and `from` are of one thread and may be the same. Stores are their commits.
struct Detour {
  NodeId first = kNone;
  NodeId to = kNone;
  NodeId from = kNone;
  NodeId last = kNone;  // after `first` in its thread
};

class Query {
 public:
  // `branches` is not kAuto. The trace must outlive it. `buffers`: under TSO, else sequential
  // consistency. `carried`: so many events at the beginning of the trace were carried to it
  // (window_start.h): they stay where they are, and are not asked about.
  Query(const Trace& trace, Branches branches, const Windows& windows = {}, bool buffers = false,
        uint32_t carried = 0);
  Query& operator=(const Query&) = delete;

  // About the same trace.
  std::unique_ptr<Query> another() const { return std::unique_ptr<Query>(new Query(*this)); }

  Branches branches() const { return shared_->branches; }
  const Model& model() const { return shared_->model; }
  const CellTable& cells() const { return shared_->cells; }
  bool carried(NodeId id) const { return model().node(id).event < shared_->carried; }

  // Whether a witness is valid: check(validator) is empty. Where readers upgrade their locks the
  // search takes more to be possible than there is; elsewhere it is an internal error. The validator
  // is made when it is first asked: many traces have no candidates. All queries have the same one.
  template <typename Check>
  bool accepted(const Check& check, uint64_t* invalid) const {
    const std::lock_guard<std::mutex> held(shared_->validating);
    const std::string wrong = check(shared_->get_validator());
    *invalid += !wrong.empty() && model().upgrades().empty() ? 1 : 0;
    return wrong.empty();
  }

  // Whoever asks about a cell again and again may keep what it has made of it here.
  struct OfCell {
    uint32_t cell = kNone;
    std::vector<AccessGroup> groups;
  };
  OfCell& of_cell() { return of_cell_; }

  // Refusals that a larger window might have turned into an answer; nodes of all windows.
  uint64_t cut_short() const { return cut_short_; }
  uint64_t looked_at() const { return looked_at_; }

  // Appends what comes last, events as in a witness. What comes before is complete then.
  void end(Witness* witness, std::span<const uint32_t> last) const;

  // The witness has the events before the nodes.
  std::optional<Meeting> meet(std::span<const NodeId> nodes, bool sync_preserving = true);
  // The node comes next when all others, of other threads, have been executed.
  std::optional<Meeting> lost(NodeId node, std::span<const NodeId> before, bool sync_preserving);
  // The detour with its last access at the end. The witness has all four accesses and is complete.
  std::optional<Meeting> between(const Detour& detour, bool sync_preserving = true);
  // The first of the six comes before the second, the third before the fourth, the fifth before the
  // last, which is at the end. Without store buffers.
  std::optional<Meeting> circle(const std::array<NodeId, 6>& nodes, bool sync_preserving);

 private:
  // Made once for a trace.
  struct Shared {
    Shared(const Trace& trace, Branches how, bool buffers, uint32_t carried_events)
        : branches(how),
          carried(carried_events),
          cells(trace),
          edges(hard_edges(trace, cells, carried_events)),
          model(trace, cells, edges, how, buffers) {
      for (uint32_t thread = 0; thread < model.threads(); ++thread) {
        if (!model.of_thread(thread).empty()) {
          by_first.push_back(thread);
        }
      }
      std::sort(by_first.begin(), by_first.end(), [&](uint32_t a, uint32_t b) {
        return model.of_thread(a).front() < model.of_thread(b).front();
      });
    }

    Validator& get_validator() {
      if (!validator) {
        validator.emplace(model.trace(), cells, edges, branches, model.buffers(), carried);
      }
      return *validator;
    }

    Branches branches;
    uint32_t carried;
    CellTable cells;
    std::vector<HardEdge> edges;
    Model model;
    std::vector<uint32_t> by_first;  // threads that have nodes, in the order of the first one
    std::mutex validating;
    std::optional<Validator> validator;
  };

  Query(const Query& other) : shared_(other.shared_), windows_(other.windows_) {}

  struct Asked {
    std::span<const NodeId> meeting;
    std::span<const NodeId> included;
    std::span<const Reordering::Pair> orders;
  };

  std::optional<Meeting> answer(const Asked& asked, bool sync_preserving);
  std::optional<Meeting> between_commits(const Detour& detour, bool sync_preserving);
  std::optional<Witness> reordered(const std::vector<uint32_t>& counts, const Asked& asked);
  NodeId first_left_out(const std::vector<uint32_t>& counts) const;
  NodeId first_moved(const std::vector<uint32_t>& counts, const Asked& asked) const;
  Witness in_trace_order(const std::vector<uint32_t>& counts, std::span<const NodeId> nodes);
  Witness events(NodeId first, const std::vector<NodeId>& order, std::span<const NodeId> nodes);
  Witness start_from(NodeId first) const;
  uint32_t begin_of(const Witness& witness, uint32_t thread) const;

  std::shared_ptr<Shared> shared_;
  Windows windows_;
  std::optional<Reordering> reordering_;
  struct Part {
    uint32_t thread = 0;
    uint32_t begin = 0;  // its first event behind the start of a witness
  };
  std::vector<uint32_t> next_;  // event of each thread
  std::vector<Part> parts_;
  OfCell of_cell_;
  uint64_t cut_short_ = 0;
  uint64_t looked_at_ = 0;
};

}  // namespace tsomon::predict
