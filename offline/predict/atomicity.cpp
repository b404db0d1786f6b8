#include "offline/predict/atomicity.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "offline/predict/access_groups.h"
#include "offline/predict/kept_witnesses.h"
#include "tso/model/units.h"
#include "tso/support/flat_map.h"

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
      std::vector<AccessGroup> groups = groups_of(model_, cell);
      std::stable_sort(
          groups.begin(), groups.end(),
          [](const AccessGroup& a, const AccessGroup& b) { return a.location < b.location; });
      for (const UnitPairs& local : locals) {
        for (size_t begin = 0; begin < groups.size();) {
          begin = pairs_of_places(cell, local, groups, begin);
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
  static constexpr uint32_t kMaxSteps = 5'000;  // for three places in the source
  static constexpr size_t kMaxPassed = 64;      // cells whose loads pass a store

  struct Tried {
    bool found = false;
    uint32_t attempts = 0;
    uint64_t nodes = 0;  // of the windows in which an order was looked for

    bool over() const {
      return found || attempts >= AtomicityResult::kMaxAttempts ||
             nodes >= AtomicityResult::kMaxNodes;
    }
  };
  using Places = std::array<uint64_t, 8>;  // four places, and where there are none four addresses

  UnitId unit_of(NodeId id) const { return units_.of_event(model_.node(id).event); }
  bool is_unit(UnitId unit) const {
    return unit != UnitTable::kNone && units_[unit].label != Interner::kNone;
  }

  void find_units() {
    spans_.resize(units_.size());
    for (uint32_t thread = 0; thread < model_.threads(); thread += model_.buffers() ? 2 : 1) {
      std::map<uint32_t, uint32_t> known;  // cells of the present unit, in touched_
      UnitId current = UnitTable::kNone;
      for (const NodeId id : nodes_of(thread)) {
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

  // All that it issues and commits.
  std::vector<NodeId> nodes_of(uint32_t thread) const {
    const std::vector<NodeId>& issued = model_.of_thread(thread);
    if (!model_.buffers()) {
      return issued;
    }
    const std::vector<NodeId>& committed = model_.of_thread(thread + 1);
    std::vector<NodeId> all;
    std::merge(issued.begin(), issued.end(), committed.begin(), committed.end(),
               std::back_inserter(all));
    spend(all.size());
    return all;
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
        if (model_.commits(list.thread)) {
          add_late(last, &locals);
        }
      }
    }
    return locals;
  }

  // A store that commits after later loads of its unit, to other places. What is passed is not
  // drained in between.
  void add_late(NodeId commit, std::vector<UnitPairs>* locals) {
    const UnitId unit = unit_of(commit);
    const auto& mine = model_.of_thread(model_.owner(model_.node(commit).thread));
    std::vector<uint32_t> cells;
    const auto after =
        std::partition_point(mine.begin(), mine.end(), [&](NodeId id) { return id < commit; });
    for (auto at = after; at != mine.end() && unit_of(*at) == unit; ++at) {
      spend(1);
      if (model_.always_before(commit, *at)) {
        break;
      }
      for (const Use& use : model_.uses(*at)) {
        const bool known = std::find(cells.begin(), cells.end(), use.cell) != cells.end();
        if (model_.node(*at).reads == 0 || known || touches(commit, use.cell)) {
          continue;
        }
        if (cells.size() >= kMaxPassed) {
          result_.bounded = true;
          return;
        }
        cells.push_back(use.cell);
        add_local(*at, commit, use.cell, locals);
      }
    }
  }

  bool touches(NodeId id, uint32_t cell) const {
    const auto uses = model_.uses(id);
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.cell == cell; });
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
                               begin.writes, end.writes, first > last, locks},
                           locals->size());
    if (is_new) {
      locals->push_back({model_.owner(begin.thread),
                         far,
                         begin.writes != 0,
                         end.writes != 0,
                         std::move(locks),
                         {}});
    }
    (*locals)[at->second].access.emplace_back(first, last);
  }

  // The last node of its unit.
  NodeId unit_end(NodeId id) const {
    const UnitId unit = unit_of(id);
    return is_unit(unit) ? spans_[unit].last : id;
  }

  // Groups of one place in the source, which differ in threads and locks. Where the next one begins.
  size_t pairs_of_places(uint32_t cell, const UnitPairs& local,
                         const std::vector<AccessGroup>& groups, size_t begin) {
    uint32_t own = 0;
    uint32_t* const steps = &steps_of(local, groups[begin].location, &own);
    size_t at = begin;
    for (; at < groups.size() && groups[at].location == groups[begin].location; ++at) {
      const AccessGroup& group = groups[at];
      spend(2);
      if (local.thread == model_.owner(group.thread) || !(local.last_writes || group.writes)) {
        continue;
      }
      if (++*steps > kMaxSteps) {
        result_.bounded = true;
        break;
      }
      pairs(cell, local, group, steps);
    }
    return static_cast<size_t>(
        std::partition_point(
            groups.begin() + static_cast<ptrdiff_t>(at), groups.end(),
            [&](const AccessGroup& group) { return group.location == groups[begin].location; }) -
        groups.begin());
  }

  void pairs(uint32_t cell, const UnitPairs& local, const AccessGroup& group, uint32_t* steps) {
    if (exclude(local.locks, model_.lock_sets()[group.set])) {
      return;
    }
    if (local.far == cell) {
      two_access_patterns(local, group, steps);
    } else {
      two_conflicts(local, group, steps);
    }
  }

  // That were taken for these places in the source so far, whatever the cells. Different places may
  // share a number: there is a bit less for each then. `own`: where there are no places.
  uint32_t& steps_of(const UnitPairs& local, uint32_t location, uint32_t* own) {
    uint64_t key = 0;
    for (const uint32_t place : {model_.event(local.access.front().first).location,
                                 model_.event(local.access.front().second).location, location}) {
      if (place == Event::kNoLocation) {
        return *own;
      }
      key = (key ^ place) * 0x9E3779B97F4A7C15U;
      key ^= key >> 29;
    }
    return *steps_.try_emplace(key, 0).first;
  }

  // The other thread's access conflicts with both.
  void two_access_patterns(const UnitPairs& local, const AccessGroup& group, uint32_t* steps) {
    const auto [first_of_all, last_of_all] = local.access.front();
    const NodeId there = group.nodes.front();
    if (!(local.first_writes || group.writes) || over({first_of_all, there, there, last_of_all})) {
      return;
    }
    size_t begin = 0;
    for (const auto& [first, last] : local.access) {
      if (++*steps > kMaxSteps) {
        result_.bounded = true;
        return;
      }
      begin = skip_while(group.nodes, begin,
                         [&, id = first](NodeId from) { return model_.always_before(from, id); });
      for (size_t at = begin; at < group.nodes.size(); ++at) {
        const NodeId from = group.nodes[at];
        spend(2);
        if (model_.always_before(last, from)) {
          break;
        }
        if (!consider({first, from, from, last})) {
          return;
        }
      }
    }
  }

  // The other thread goes from an access that conflicts with the first to one of the group.
  void two_conflicts(const UnitPairs& local, const AccessGroup& group, uint32_t* steps) {
    const auto far =
        local.first_writes ? model_.accesses_of(local.far) : model_.writes_of(local.far);
    const uint32_t there = model_.owner(model_.node(group.nodes.front()).thread);
    for (const ThreadList& ways : far) {
      if (model_.owner(ways.thread) == there && !kept_away(local, ways)) {
        two_conflicts_by(local, group, ways, steps);
      }
    }
  }

  void two_conflicts_by(const UnitPairs& local, const AccessGroup& group, const ThreadList& ways,
                        uint32_t* steps) {
    size_t begin = 0;
    uint32_t asked = 0;
    for (const auto& [first, last] : local.access) {
      if (++*steps > kMaxSteps) {
        result_.bounded = true;
        return;
      }
      begin = skip_while(group.nodes, begin,
                         [&, id = first](NodeId from) { return all_before(unit_end(from), id); });
      for (size_t at = begin; at < group.nodes.size(); ++at) {
        const NodeId from = group.nodes[at];
        spend(2);
        if (model_.always_before(last, from)) {
          break;
        }
        if (++*steps > kMaxSteps) {
          result_.bounded = true;
          return;
        }
        for (const NodeId to : ways_out(ways.items, first, from)) {
          if (exclude(local.locks, model_.lock_sets()[model_.lock_set(to)])) {
            continue;
          }
          consider({first, to, from, last});
          if (++asked > AtomicityResult::kMaxAttempts) {
            result_.bounded = true;
            return;
          }
        }
      }
    }
  }

  // The unit holds a lock that keeps out all these accesses of the other thread to `far`.
  bool kept_away(const UnitPairs& local, const ThreadList& ways) {
    if (local.locks.empty()) {
      return false;
    }
    const auto [at, is_new] =
        sets_.try_emplace({local.far, ways.thread, local.first_writes}, std::vector<uint32_t>());
    std::vector<uint32_t>& sets = at->second;
    if (is_new) {
      spend(4 * ways.items.size());
      for (const uint32_t use : ways.items) {
        const uint32_t set = model_.lock_set(model_.use(use).node);
        if (std::find(sets.rbegin(), sets.rend(), set) == sets.rend()) {
          sets.push_back(set);
        }
      }
    }
    return std::all_of(sets.begin(), sets.end(),
                       [&](uint32_t set) { return exclude(local.locks, model_.lock_sets()[set]); });
  }

  // All that the thread has issued and will have committed of it then.
  bool all_before(NodeId end, NodeId id) const {
    if (!model_.always_before(end, id)) {
      return false;
    }
    if (!model_.buffers()) {
      return true;
    }
    const auto& commits = model_.of_thread(model_.owner(model_.node(end).thread) + 1);
    const auto after = std::upper_bound(commits.begin(), commits.end(), end);
    return after == commits.begin() || model_.always_before(*(after - 1), id);
  }

  // Accesses of the other thread that `first` may come before and that lead on to `from`: the last
  // one up to there, and the first one later in its unit.
  std::vector<NodeId> ways_out(std::span<const uint32_t> ways, NodeId first, NodeId from) const {
    std::vector<NodeId> found;
    const auto after = std::partition_point(
        ways.begin(), ways.end(), [&](uint32_t use) { return model_.use(use).node <= from; });
    if (after != ways.begin()) {
      const NodeId to = model_.use(*(after - 1)).node;
      if (!model_.always_before(to, first)) {
        found.push_back(to);
      }
    }
    const NodeId end = unit_end(from);
    for (auto at = after; at != ways.end() && model_.use(*at).node <= end; ++at) {
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
                        : (uint64_t{1} << 63) | (uint64_t{event.thread} << 8) | event.kind_bits;
      places[4 + i] = known ? 0 : model_.address_of(model_.uses(nodes[i]).front().cell);
    }
    return places;
  }

  static AskedPlaces::Places listed(const Places& places) { return {places.begin(), places.end()}; }

  // In another window of the input.
  bool found_before(const Places& places) const {
    return options_.asked != nullptr && options_.asked->found(listed(places));
  }

  // Nothing more is to be learnt about these places.
  bool over(const Detour& detour) {
    const auto at = tried_.find(places(detour));
    if (at == tried_.end()) {
      return false;
    }
    result_.bounded = result_.bounded || (at->second.over() && !at->second.found);
    return at->second.over();
  }

  // False: enough of these places.
  bool consider(const Detour& detour) {
    if (mirrored(detour)) {
      return true;
    }
    const auto [at, is_new] = tried_.try_emplace(places(detour));
    Tried& tried = at->second;
    tried.found = tried.found || (is_new && found_before(at->first));
    if (tried.over()) {
      result_.bounded = result_.bounded || !tried.found;
      return false;
    }
    ++tried.attempts;
    if (is_new) {
      ++result_.candidates;
      ++result_.refused;
    }
    const uint64_t before = query_.looked_at();
    tried.found = ask(detour);
    tried.nodes += query_.looked_at() - before;
    if (options_.asked != nullptr) {
      options_.asked->asked(listed(at->first), tried.found);
    }
    result_.refused -= tried.found ? 1 : 0;
    return !tried.found;
  }

  // The same two conflicts, closed by the other one.
  bool mirrored(const Detour& detour) {
    if (options_.every_end || detour.to == detour.from || !is_unit(unit_of(detour.to)) ||
        unit_of(detour.to) != unit_of(detour.from)) {
      return false;
    }
    const Places other = places({detour.from, detour.last, detour.first, detour.to});
    const auto there = tried_.find(other);
    return there != tried_.end() ? there->second.found : found_before(other);
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
            [&](Validator& validator) {
              return validator.check_atomicity(witness.tail, witness.start, events, units_);
            },
            &result_.invalid)) {
      return false;
    }
    kept_.keep(witness, violation.tier == Tier::kSyncPreserving, &violation.witness,
               &violation.brief);
    result_.without_witness = kept_.in_short();
    result_.violations.push_back(std::move(violation));
    return true;
  }

  using Key = std::tuple<uint32_t, uint32_t, uint32_t, bool, bool, bool, LockSet>;

  const AtomicityOptions& options_;
  AtomicityResult& result_;
  Query& query_;
  const Model& model_;
  const UnitTable units_;
  std::vector<Touched> touched_;
  std::vector<Span> spans_;  // by unit
  // Locks that a thread holds at accesses to a cell, all of them or those that write.
  std::map<std::tuple<uint32_t, uint32_t, bool>, std::vector<uint32_t>> sets_;
  std::map<Key, size_t> known_;  // locals of the present cell and thread
  FlatMap<uint64_t, uint32_t> steps_;
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
