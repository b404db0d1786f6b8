#include "offline/predict/atomicity.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "offline/predict/access_groups.h"
#include "offline/predict/kept_witnesses.h"
#include "tso/model/units.h"

namespace tsomon::predict {
namespace {

bool has_units(const Trace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(),
                     [](const Event& event) { return event.kind() == EventKind::kUnitBegin; });
}

// Accesses of a unit of one thread to `far` and later to the cell in question, alike in all that
// rules out a violation at once.
struct UnitPairs {
  uint32_t thread = 0;
  uint32_t far = 0;  // cell
  bool first_writes = false;
  bool last_writes = false;
  LockSet locks;                                  // held from the first to the last
  std::vector<std::pair<NodeId, NodeId>> access;  // first, last; both ascend
};

class AtomicitySearch {
 public:
  AtomicitySearch(const AtomicityOptions& options, Query& query, AtomicityResult* result)
      : options_(options),
        result_(*result),
        query_(query),
        model_(query.model()),
        units_(model_.trace()),
        kept_(query.model(), options.max_witness_events) {}

  void run() {
    find_units();
    for (uint32_t cell = 0; cell < model_.cell_count(); ++cell) {
      spend(1);
      const std::vector<UnitPairs> locals = locals_of(cell);
      if (locals.empty()) {
        continue;
      }
      const std::vector<AccessGroup> groups = groups_of(model_, cell);
      for (const UnitPairs& local : locals) {
        for (const AccessGroup& group : groups) {
          spend(2);
          if (local.thread != group.thread && (local.last_writes || group.writes)) {
            pairs(cell, local, group);
          }
        }
      }
    }
  }

 private:
  // The first accesses of a unit to a cell.
  struct Touched {
    uint32_t cell = 0;
    NodeId first = kNone;
    NodeId write = kNone;
  };
  struct Span {
    uint32_t touched = 0;  // of touched_
    uint32_t count = 0;
    NodeId last = kNone;
  };
  struct Tried {
    bool found = false;
    uint32_t attempts = 0;
  };
  using Places = std::array<uint64_t, 4>;

  UnitId unit_of(NodeId id) const { return units_.of_event(model_.node(id).event); }
  bool is_unit(UnitId unit) const {
    return unit != UnitTable::kNone && units_[unit].label != Interner::kNone;
  }

  void find_units() {
    spans_.resize(units_.size());
    for (uint32_t thread = 0; thread < model_.threads(); ++thread) {
      std::map<uint32_t, uint32_t> known;  // cells of the present unit, in touched_
      UnitId current = UnitTable::kNone;
      for (const NodeId id : model_.of_thread(thread)) {
        const UnitId unit = unit_of(id);
        spend(2);
        if (!is_unit(unit)) {
          continue;
        }
        if (unit != current) {
          current = unit;
          known.clear();
          spans_[unit].touched = static_cast<uint32_t>(touched_.size());
        }
        spans_[unit].last = id;
        touch(id, &spans_[unit], &known);
      }
    }
  }

  void touch(NodeId id, Span* span, std::map<uint32_t, uint32_t>* known) {
    for (const Use& use : model_.uses(id)) {
      spend(4);
      const auto [at, is_new] =
          known->try_emplace(use.cell, static_cast<uint32_t>(touched_.size()));
      if (is_new) {
        touched_.push_back({use.cell, id, kNone});
        ++span->count;
      }
      Touched& touched = touched_[at->second];
      if (touched.write == kNone && model_.node(id).writes) {
        touched.write = id;
      }
    }
  }

  // Pairs of accesses of units, the second one to the cell.
  std::vector<UnitPairs> locals_of(uint32_t cell) {
    std::vector<UnitPairs> locals;
    for (const ThreadList& list : model_.accesses_of(cell)) {
      known_.clear();
      for (const uint32_t use : list.items) {
        const NodeId last = model_.use(use).node;
        const UnitId unit = unit_of(last);
        spend(2);
        if (!is_unit(unit)) {
          continue;
        }
        const Span& span = spans_[unit];
        result_.bounded = result_.bounded || span.count > AtomicityResult::kMaxCells;
        for (uint32_t i = 0; i < std::min(span.count, AtomicityResult::kMaxCells); ++i) {
          const Touched& touched = touched_[span.touched + i];
          if (touched.first >= last) {
            break;
          }
          add_local(touched.first, last, touched.cell, &locals);
          if (touched.write != touched.first && touched.write < last) {
            add_local(touched.write, last, touched.cell, &locals);
          }
        }
      }
    }
    return locals;
  }

  void add_local(NodeId first, NodeId last, uint32_t far, std::vector<UnitPairs>* locals) {
    const Node& begin = model_.node(first);
    const Node& end = model_.node(last);
    const auto before = model_.held(first);
    std::vector<uint32_t> both;
    for (const uint32_t section : model_.held(last)) {
      if (std::find(before.begin(), before.end(), section) != before.end()) {
        both.push_back(section);
      }
    }
    LockSet locks = lock_set(model_, both);
    spend(8 + 4 * before.size());
    const auto [at, is_new] =
        known_.try_emplace(Key{far, model_.event(first).location, model_.event(last).location,
                               begin.writes, end.writes, locks},
                           locals->size());
    if (is_new) {
      locals->push_back(
          {begin.thread, far, begin.writes != 0, end.writes != 0, std::move(locks), {}});
    }
    (*locals)[at->second].access.emplace_back(first, last);
  }

  // The last node of its unit.
  NodeId unit_end(NodeId id) const {
    const UnitId unit = unit_of(id);
    return is_unit(unit) ? spans_[unit].last : id;
  }

  void pairs(uint32_t cell, const UnitPairs& local, const AccessGroup& group) {
    if (exclude(local.locks, model_.lock_sets()[group.set])) {
      return;
    }
    size_t begin = 0;
    uint32_t asked = 0;
    for (const auto& [first, last] : local.access) {
      spend(2);
      while (begin < group.nodes.size() &&
             model_.always_before(unit_end(group.nodes[begin]), first)) {
        spend(2);
        ++begin;
      }
      for (size_t at = begin; at < group.nodes.size(); ++at) {
        const NodeId from = group.nodes[at];
        spend(2);
        if (model_.always_before(last, from)) {
          break;
        }
        if (local.far == cell) {
          const bool conflict = local.first_writes || group.writes;
          if (conflict && !model_.always_before(from, first) &&
              !consider({first, from, from, last})) {
            return;
          }
          continue;
        }
        for (const NodeId to : ways_out(local, first, from)) {
          consider({first, to, from, last});
          if (++asked > AtomicityResult::kMaxAttempts) {
            return;
          }
        }
      }
    }
  }

  // Accesses of the other thread that `first` may come before and that lead on to `from`: the last
  // one up to there, and the first one later in its unit.
  std::vector<NodeId> ways_out(const UnitPairs& local, NodeId first, NodeId from) const {
    std::vector<NodeId> found;
    const uint32_t thread = model_.node(from).thread;
    const auto lists =
        local.first_writes ? model_.accesses_of(local.far) : model_.writes_of(local.far);
    const auto list = std::find_if(lists.begin(), lists.end(),
                                   [&](const ThreadList& mine) { return mine.thread == thread; });
    if (list == lists.end()) {
      return found;
    }
    const auto after =
        std::partition_point((*list).items.begin(), (*list).items.end(),
                             [&](uint32_t use) { return model_.use(use).node <= from; });
    if (after != (*list).items.begin()) {
      const NodeId to = model_.use(*(after - 1)).node;
      if (!model_.always_before(to, first)) {
        found.push_back(to);
      }
    }
    const NodeId end = unit_end(from);
    for (auto at = after; at != (*list).items.end() && model_.use(*at).node <= end; ++at) {
      spend(1);
      const NodeId to = model_.use(*at).node;
      if (!model_.always_before(to, first)) {
        found.push_back(to);
        break;
      }
    }
    return found;
  }

  Places places(const Detour& detour) const {
    Places places{};
    const std::array<NodeId, 4> nodes = {detour.first, detour.to, detour.from, detour.last};
    const bool known = std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      return model_.event(id).location != Event::kNoLocation;
    });
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Event& event = model_.event(nodes[i]);
      places[i] = known ? event.location
                        : (uint64_t{1} << 63) | (uint64_t{event.thread & 0x7FFFFFU} << 40) |
                              (uint64_t{model_.uses(nodes[i]).front().cell} << 8) | event.kind_bits;
    }
    return places;
  }

  // False: enough of these places.
  bool consider(const Detour& detour) {
    if (mirrored(detour)) {
      return true;
    }
    const auto [at, is_new] = tried_.try_emplace(places(detour));
    Tried& tried = at->second;
    if (tried.found) {
      return false;
    }
    if (tried.attempts == AtomicityResult::kMaxAttempts) {
      result_.bounded = true;
      return false;
    }
    ++tried.attempts;
    if (is_new) {
      ++result_.candidates;
      ++result_.refused;
    }
    if (ask(detour)) {
      tried.found = true;
      --result_.refused;
      return false;
    }
    return true;
  }

  // The same two conflicts, closed by the other one.
  bool mirrored(const Detour& detour) {
    if (options_.every_end || detour.to == detour.from || !is_unit(unit_of(detour.to)) ||
        unit_of(detour.to) != unit_of(detour.from)) {
      return false;
    }
    const auto there = tried_.find(places({detour.from, detour.last, detour.first, detour.to}));
    return there != tried_.end() && there->second.found;
  }

  bool ask(const Detour& detour) {
    auto meeting = query_.between(detour, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    const auto event = [&](NodeId id) { return model_.node(id).event; };
    AtomicityViolation violation;
    violation.first = event(detour.first);
    violation.to = event(detour.to);
    violation.from = event(detour.from);
    violation.last = event(detour.last);
    violation.label = units_[unit_of(detour.first)].label;
    violation.tier = meeting->tier;
    const std::array<uint32_t, 4> events = {violation.first, violation.to, violation.from,
                                            violation.last};
    const Witness& witness = meeting->witness;
    if (!query_.accepted(
            query_.validator().check_atomicity(witness.tail, witness.start, events, units_),
            &result_.invalid)) {
      return false;
    }
    kept_.keep(witness, violation.tier == Tier::kSyncPreserving, &violation.witness,
               &violation.brief);
    result_.without_witness = kept_.in_short();
    result_.violations.push_back(std::move(violation));
    return true;
  }

  using Key = std::tuple<uint32_t, uint32_t, uint32_t, bool, bool, LockSet>;

  const AtomicityOptions& options_;
  AtomicityResult& result_;
  Query& query_;
  const Model& model_;
  const UnitTable units_;
  std::vector<Touched> touched_;
  std::vector<Span> spans_;      // by unit
  std::map<Key, size_t> known_;  // locals of the present cell and thread
  std::map<Places, Tried> tried_;
  KeptWitnesses kept_;
};

}  // namespace

AtomicityResult predict_atomicity(Query& query, const AtomicityOptions& options) {
  AtomicityResult result;
  try {
    if (has_units(query.model().trace())) {
      const uint64_t cut_short = query.cut_short();
      AtomicitySearch(options, query, &result).run();
      result.windowed = query.cut_short() > cut_short;
    }
  } catch (const WorkEnded& ended) {
    result.ended = ended.limit();
  }
  std::sort(result.violations.begin(), result.violations.end(),
            [](const AtomicityViolation& a, const AtomicityViolation& b) {
              return std::tie(a.first, a.last, a.to, a.from) <
                     std::tie(b.first, b.last, b.to, b.from);
            });
  return result;
}

}  // namespace tsomon::predict
