#include "offline/predict/atomicity.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "offline/predict/access_groups.h"
#include "offline/predict/kept_witnesses.h"
#include "offline/predict/questions.h"
#include "offline/predict/three_units.h"
#include "offline/predict/unit_accesses.h"
#include "offline/predict/word_sections.h"
#include "tso/support/flat_map.h"

namespace tsomon::predict {
namespace {

bool has_units(const Trace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(),
                     [](const Event& event) { return event.kind() == EventKind::kUnitBegin; });
}

class AtomicitySearch {
 public:
  AtomicitySearch(const AtomicityOptions& options, Query& query, AtomicityResult* result)
      : options_(options),
        result_(*result),
        query_(query),
        model_(query.model()),
        units_(model_, options.values),
        words_(model_, options.values),
        questions_(query, options.jobs),
        kept_(query.model(), options.max_witness_events) {}

  void run() {
    for (uint32_t cell = 0; cell < model_.cell_count(); ++cell) {
      spend(1);
      const std::vector<UnitPairs> locals = units_.pairs_of(cell);
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
    while (!waiting_.empty()) {
      ask_all();
    }
    result_.bounded = result_.bounded || units_.bounded() ||
                      std::any_of(tried_.begin(), tried_.end(), [](const auto& entry) {
                        return entry.second.more && !entry.second.found;
                      });
    three_unit_violations(query_, options_, units_, &kept_, &result_);
  }

 private:
  // For three places in the source: accesses of units that are passed, and what is tried of them.
  static constexpr uint32_t kMaxSteps = 5'120'000;
  static constexpr uint32_t kTried = 1'024;

  // Of four places.
  struct Tried {
    bool asked = false;
    bool found = false;
    bool more = false;      // than are tried
    uint32_t attempts = 0;  // those that wait included
    uint64_t nodes = 0;     // of the windows in which an order was looked for
    std::vector<Detour> waiting;

    bool over() const {
      return found || attempts >= AtomicityResult::kMaxAttempts ||
             nodes >= AtomicityResult::kMaxNodes;
    }
  };
  struct Answer {
    std::optional<AtomicityViolation> violation;  // without its witness
    std::optional<Detour> detour;
    Witness witness;
    uint64_t nodes = 0;
    uint64_t invalid = 0;
    bool windowed = false;
    bool bounded = false;
  };
  using Places = std::array<uint64_t, 8>;  // four places, and where there are none four addresses
  using Entry = std::pair<const Places, Tried>;

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
      if (exclude(local.locks, model_.lock_sets()[group.set])) {
        ++*steps;
        continue;
      }
      if ((*steps += kTried) > kMaxSteps) {
        const auto [first, last] = local.access.front();
        const NodeId there = group.nodes.front();
        if (local.far == cell) {
          leave_out({first, there, there, last});
        } else {
          result_.bounded = true;
        }
        break;
      }
      if (local.far == cell) {
        two_access_patterns(local, group, steps);
      } else {
        two_conflicts(local, group, steps);
      }
    }
    return static_cast<size_t>(
        std::partition_point(
            groups.begin() + static_cast<ptrdiff_t>(at), groups.end(),
            [&](const AccessGroup& group) { return group.location == groups[begin].location; }) -
        groups.begin());
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
        leave_out({first_of_all, there, there, last_of_all});
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
        ++*steps;
        const Detour detour{first, from, from, last};
        if (!units_.accesses(from) || excluded(detour)) {
          continue;
        }
        *steps += kTried;
        if (!consider(detour)) {
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
      begin = skip_while(group.nodes, begin, [&, id = first](NodeId from) {
        return all_before(units_.unit_end(from), id);
      });
      for (size_t at = begin; at < group.nodes.size(); ++at) {
        const NodeId from = group.nodes[at];
        spend(2);
        if (model_.always_before(last, from)) {
          break;
        }
        if (!units_.accesses(from)) {
          continue;
        }
        if (++*steps > kMaxSteps) {
          result_.bounded = true;
          return;
        }
        for (const NodeId to : ways_out(ways.items, first, from, steps)) {
          if (!units_.accesses(to) ||
              exclude(local.locks, model_.lock_sets()[model_.lock_set(to)])) {
            continue;
          }
          const Detour detour{first, to, from, last};
          if (excluded(detour)) {
            continue;
          }
          *steps += kTried;
          consider(detour);
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
  std::vector<NodeId> ways_out(std::span<const uint32_t> ways, NodeId first, NodeId from,
                               uint32_t* steps) const {
    std::vector<NodeId> found;
    const auto after = std::partition_point(
        ways.begin(), ways.end(), [&](uint32_t use) { return model_.use(use).node <= from; });
    auto before = after;
    while (before != ways.begin() && !units_.accesses(model_.use(*(before - 1)).node)) {
      spend(1);
      ++*steps;
      --before;
    }
    if (before != ways.begin()) {
      const NodeId to = model_.use(*(before - 1)).node;
      if (!model_.always_before(to, first)) {
        found.push_back(to);
      }
    }
    const NodeId end = units_.unit_end(from);
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

  // Nothing more is to be learnt about these places.
  bool over(const Detour& detour) {
    const auto at = tried_.find(places(detour));
    if (at == tried_.end() || !at->second.over()) {
      return false;
    }
    at->second.more = true;
    return true;
  }

  // Other accesses at these places are not looked at.
  void leave_out(const Detour& detour) {
    const auto at = tried_.find(places(detour));
    if (at == tried_.end()) {
      result_.bounded = true;
    } else {
      at->second.more = true;
    }
  }

  // What the access read was written by `earlier`, or after it.
  bool has_seen(NodeId earlier, NodeId read) const {
    const auto uses = model_.uses(read);
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      const NodeId write = use.source != kNone ? model_.use(use.source).node : kNone;
      return write != kNone && (write == earlier || model_.before_seen(earlier, write));
    });
  }

  // So it is of the access, or of one that its thread has made shortly before it, and that is bound when
  // so many nodes of the thread are executed: the access comes after `earlier`.
  bool follows(NodeId earlier, NodeId access, uint32_t executed) const {
    constexpr uint32_t kNear = 16;
    const uint32_t end = model_.node(access).position + 1;
    const auto& mine = model_.of_thread(model_.node(access).thread);
    for (uint32_t i = end; i > end - std::min(end, kNear); --i) {
      spend(2);
      if (model_.node(mine[i - 1]).bound_at() <= executed && has_seen(earlier, mine[i - 1])) {
        return true;
      }
    }
    return false;
  }

  // No schedule has it: what the two threads go on to do binds what they have read before, and an
  // attempt that reads something else fails.
  bool excluded(const Detour& detour) const {
    if (model_.buffers()) {
      return false;
    }
    const auto& [first, to, from, last] = detour;
    return words_.exclude(detour) || follows(to, first, model_.node(last).position + 1) ||
           follows(last, from, model_.node(from).position) ||
           (units_.attempts().waits(from) && has_seen(last, from));
  }

  // False: enough of these places.
  bool consider(const Detour& detour) {
    if (mirrored(detour)) {
      return true;
    }
    const auto at = tried_.try_emplace(places(detour)).first;
    Tried& tried = at->second;
    if (tried.over()) {
      tried.more = true;
      return false;
    }
    waiting_.add(&*at, tried.waiting.empty(), 1);
    ++tried.attempts;
    tried.waiting.push_back(detour);
    if (waiting_.full()) {
      ask_all();
    }
    return !tried.over();
  }

  // About what waits, in the order of its coming.
  void ask_all() {
    waiting_.ask(
        questions_, [&](Query& query, const Entry& entry) { return ask(query, entry.second); },
        [&](Entry* entry, Answer&& answer) { commit(entry, std::move(answer)); });
  }

  Answer ask(Query& query, const Tried& tried) const {
    Answer answer;
    const uint64_t looked_at = query.looked_at();
    const uint64_t cut_short = query.cut_short();
    for (const Detour& detour : tried.waiting) {
      if (tried.nodes + answer.nodes >= AtomicityResult::kMaxNodes) {
        answer.bounded = true;
        break;
      }
      if (ask(query, detour, &answer)) {
        answer.detour = detour;
        break;
      }
      answer.nodes = query.looked_at() - looked_at;
    }
    answer.windowed = query.cut_short() > cut_short;
    return answer;
  }

  void commit(Entry* entry, Answer&& answer) {
    auto& [places, tried] = *entry;
    std::vector<Detour> asked;
    asked.swap(tried.waiting);
    tried.nodes += answer.nodes;
    tried.more = tried.more || answer.bounded;
    result_.invalid += answer.invalid;
    result_.windowed = result_.windowed || answer.windowed;
    if (!answer.detour || mirrored(*answer.detour)) {
      // What has been found since it began to wait is not found again: others may be.
      tried.attempts -= static_cast<uint32_t>(
          std::erase_if(asked, [&](const Detour& detour) { return mirrored(detour); }));
      if (asked.empty()) {
        return;
      }
    }
    if (answer.detour && mirrored(*answer.detour)) {
      waiting_.add(entry, true, asked.size());
      tried.waiting = std::move(asked);
      return;
    }
    tried.found = answer.violation.has_value();
    result_.candidates += tried.asked ? 0 : 1;
    result_.refused += tried.asked ? 0 : 1;
    result_.refused -= tried.found ? 1 : 0;
    tried.asked = true;
    if (options_.asked != nullptr) {
      options_.asked->asked(listed(places), tried.found);
    }
    if (tried.found) {
      AtomicityViolation& violation = result_.violations.emplace_back(*answer.violation);
      if (options_.asked != nullptr) {
        violation.in.places = listed(places);
        if (has_mirror(*answer.detour)) {
          violation.in.mirror = listed(mirror_places(*answer.detour));
        }
      }
      kept_.keep(answer.witness, violation.tier == Tier::kSyncPreserving, &violation.witness,
                 &violation.brief);
      result_.without_witness = kept_.in_short();
    }
  }

  // The same two conflicts may be closed by the other one.
  bool has_mirror(const Detour& detour) const {
    return !options_.every_end && detour.to != detour.from &&
           units_.is_unit(units_.unit_of(detour.to)) &&
           units_.unit_of(detour.to) == units_.unit_of(detour.from);
  }
  Places mirror_places(const Detour& detour) const {
    return places({detour.from, detour.last, detour.first, detour.to});
  }
  // They are, and it was found.
  bool mirrored(const Detour& detour) const {
    if (!has_mirror(detour)) {
      return false;
    }
    const auto there = tried_.find(mirror_places(detour));
    return there != tried_.end() && there->second.found;
  }

  bool ask(Query& query, const Detour& detour, Answer* answer) const {
    auto meeting = query.between(detour, options_.sync_preserving);
    if (!meeting) {
      return false;
    }
    const auto event = [&](NodeId id) { return model_.node(id).event; };
    AtomicityViolation violation;
    violation.first = event(detour.first);
    violation.to = event(detour.to);
    violation.from = event(detour.from);
    violation.last = event(detour.last);
    violation.label = units_.units()[units_.unit_of(detour.first)].label;
    violation.tier = meeting->tier;
    const std::array<uint32_t, 4> events = {violation.first, violation.to, violation.from,
                                            violation.last};
    const Witness& witness = meeting->witness;
    if (!query.accepted(
            [&](Validator& validator) {
              return validator.check_atomicity(witness.tail, witness.start, events, units_.units());
            },
            &answer->invalid) ||
        units_.attempts().fails(witness, detour.from) ||
        units_.attempts().fails(witness, detour.last)) {
      return false;
    }
    answer->violation = std::move(violation);
    answer->witness = std::move(meeting->witness);
    return true;
  }

  const AtomicityOptions& options_;
  AtomicityResult& result_;
  Query& query_;
  const Model& model_;
  UnitAccesses units_;
  const WordSections words_;
  Questions questions_;
  // Locks that a thread holds at accesses to a cell, all of them or those that write.
  std::map<std::tuple<uint32_t, uint32_t, bool>, std::vector<uint32_t>> sets_;
  FlatMap<uint64_t, uint32_t> steps_;
  std::map<Places, Tried> tried_;
  WaitingQuestions<Entry> waiting_;
  KeptWitnesses kept_;
};

}  // namespace

AtomicityResult predict_atomicity(Query& query, const AtomicityOptions& options) {
  AtomicityResult result;
  try {
    if (has_units(query.model().trace())) {
      AtomicitySearch(options, query, &result).run();
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
