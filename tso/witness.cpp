#include "tso/witness.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "tso/lock_order.h"
#include "tso/units.h"

namespace tsomon {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFFU;

tl::unexpected<Error> reject(std::string why) {
  return fail(ErrorKind::kMalformed, "the witness " + std::move(why));
}

RelationOptions claimed_options(const WitnessClaim& claim) {
  RelationOptions options = claim.options;
  if (claim.property == Property::kScSerializability) {
    options.model = MemoryModel::kSc;
  }
  return options;
}

// The trace as the definitions see it. Deliberately shares no code with Relation.
class Definitions {
 public:
  Definitions(const Trace& trace, const RelationOptions& options)
      : trace_(trace), options_(options), position_(trace.events.size()) {
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      const ThreadId thread = trace.events[e].thread;
      if (thread >= threads_.size()) {
        threads_.resize(thread + 1);
      }
      position_[e] = static_cast<uint32_t>(threads_[thread].size());
      threads_[thread].push_back(e);
      note_lock(e);
      if (event(e).kind() == EventKind::kRelease) {
        releases_[{event(e).address, event(e).size}].push_back(e);
      } else if (is(event(e), kinds::kAccesses) && !reader(e)) {
        writes_[{event(e).address, event(e).size}].push_back(e);
      }
    }
  }

  // The release by which the thread of an acquisition no longer holds the lock; kNone: the event is
  // none by which it begins to, there is none, the thread waits before it, or others release the
  // lock, too.
  uint32_t end_of_section(uint32_t e) const {
    const auto found = sections_.find(e);
    return found == sections_.end() || given_away_.contains(lock_of(e)) ? kNone : found->second;
  }

  const Event& event(uint32_t e) const { return trace_.events[e]; }
  uint32_t position(uint32_t e) const { return position_[e]; }
  bool same_thread(uint32_t e, uint32_t f) const { return event(e).thread == event(f).thread; }

  bool drains(uint32_t e) const {
    switch (event(e).kind()) {
      case EventKind::kReadModifyWrite:
      case EventKind::kFence:
      case EventKind::kAcquire:
      case EventKind::kAcquireShared:
      case EventKind::kReleaseShared:
      case EventKind::kFork:
        return true;
      case EventKind::kRelease:
        return options_.fenced_release;
      default:
        return false;
    }
  }
  bool store(uint32_t e) const {
    const EventKind kind = event(e).kind();
    return kind == EventKind::kWrite || (kind == EventKind::kRelease && !options_.fenced_release);
  }
  bool load(uint32_t e) const { return event(e).kind() == EventKind::kRead; }
  bool load_like(uint32_t e) const { return load(e) || event(e).kind() == EventKind::kJoin; }

  bool same_bytes(uint32_t e, uint32_t f) const {
    const Event& a = event(e);
    const Event& b = event(f);
    if (!is(a, kinds::kAccesses) || !is(b, kinds::kAccesses)) {
      return false;
    }
    if (a.size == 0 || b.size == 0) {
      return a.address == b.address && a.size == b.size;
    }
    const auto first_after = [](const Event& x) {
      return static_cast<unsigned __int128>(x.address) + x.size;
    };
    return a.address < first_after(b) && b.address < first_after(a);
  }
  bool inside(uint32_t load, uint32_t store) const {
    const Event& a = event(load);
    const Event& b = event(store);
    if (a.size == 0 || b.size == 0) {
      return a.address == b.address && a.size == b.size;
    }
    return a.address >= b.address && static_cast<unsigned __int128>(a.address) + a.size <=
                                         static_cast<unsigned __int128>(b.address) + b.size;
  }
  bool conflict(uint32_t e, uint32_t f) const {
    return !same_thread(e, f) && same_bytes(e, f) && !(reader(e) && reader(f));
  }
  // e starts the thread of f, or f ends that of e.
  bool of_thread(uint32_t e, uint32_t f) const {
    return (event(e).kind() == EventKind::kFork && event(e).address == event(f).thread) ||
           (event(f).kind() == EventKind::kJoin && event(f).address == event(e).thread);
  }
  // Calls function(w) for the stores and locked operations on bytes of e.
  template <typename Function>
  void for_each_writer(uint32_t e, const Function& function) const {
    for_each_on_bytes(writes_, e, function);
  }
  // Events of one lock that are ordered by their beginnings.
  bool of_lock(uint32_t e, uint32_t f) const {
    return is_lock_by_start(event(e)) && is_lock_by_start(event(f)) && same_bytes(e, f);
  }
  bool earlier(uint32_t e, uint32_t f) const {
    if (of_lock(e, f)) {
      return options_.order == TraceOrder::kIssue && trace_.lo(event(e)) < trace_.lo(event(f));
    }
    return options_.order == TraceOrder::kIssue && trace_.hi(event(e)) < trace_.lo(event(f));
  }

  // The newest store before `load` that matches and that no fence separates from it.
  uint32_t newest_match(uint32_t load) const {
    const auto known = newest_match_.find(load);
    return known != newest_match_.end()
               ? known->second
               : newest_match_.emplace(load, find_newest_match(load)).first->second;
  }

  // The event of its thread that finds the store committed; kNone: the trace does not say.
  uint32_t settled(uint32_t s) const {
    const auto known = settled_.find(s);
    return known != settled_.end() ? known->second
                                   : settled_.emplace(s, find_settled(s)).first->second;
  }
  bool settled_by(uint32_t s, uint32_t e) const {
    const uint32_t by = settled(s);
    return by != kNone && position_[by] <= position_[e];
  }

  uint32_t source(uint32_t load) const {
    const uint32_t match = newest_match(load);
    return match != kNone && !settled_by(match, load) ? match : kNone;
  }

  // Directed edge e -> f of the trace (theory section 2 with 5.2 and 5.4).
  bool directed(uint32_t e, uint32_t f) const {
    if (same_thread(e, f)) {
      return directed_in_thread(e, f);
    }
    if (of_thread(e, f)) {
      return options_.thread_order;
    }
    if (!conflict(e, f) || !earlier(e, f)) {
      return false;
    }
    if (options_.model == MemoryModel::kSc || drains(e) || of_lock(e, f)) {
      return true;
    }
    const uint32_t held_by = store(e) ? e : source(e);
    if (held_by == kNone) {
      return true;  // a load from memory cannot see a store that is not issued yet
    }
    const uint32_t by = settled(held_by);
    return (by != kNone && earlier(by, f)) || reads_release(f, e);
  }

 private:
  using Ranges = std::map<std::pair<uint64_t, uint32_t>, std::vector<uint32_t>>;

  using Lock = std::pair<uint64_t, uint32_t>;
  Lock lock_of(uint32_t e) const { return {event(e).address, event(e).size}; }

  void note_lock(uint32_t e) {
    std::map<Lock, std::vector<uint32_t>>& held = held_[event(e).thread];
    switch (event(e).kind()) {
      case EventKind::kAcquire:
      case EventKind::kAcquireShared:
        held[lock_of(e)].push_back(e);
        break;
      case EventKind::kRelease:
      case EventKind::kReleaseShared:
        if (auto& acquired = held[lock_of(e)]; acquired.empty()) {
          given_away_.insert(lock_of(e));
        } else {
          if (acquired.size() == 1 && acquired.front() != kNone) {
            sections_.emplace(acquired.front(), e);
          }
          acquired.pop_back();
        }
        break;
      case EventKind::kWait:
        for (auto& [lock, acquired] : held) {
          std::fill(acquired.begin(), acquired.end(), kNone);
        }
        break;
      default:
        break;
    }
  }

  bool reader(uint32_t e) const {
    const EventKind kind = event(e).kind();
    return kind == EventKind::kRead || kind == EventKind::kAcquireShared ||
           kind == EventKind::kReleaseShared;
  }

  template <typename Function>
  void for_each_on_bytes(const Ranges& ranges, uint32_t e, const Function& function) const {
    for (const auto& [range, events] : ranges) {
      if (same_bytes(events.front(), e)) {
        std::for_each(events.begin(), events.end(), function);
      }
    }
  }

  uint32_t find_newest_match(uint32_t load) const {
    const auto& thread = threads_[event(load).thread];
    for (uint32_t at = position_[load]; at-- > 0;) {
      if (drains(thread[at])) {
        return kNone;
      }
      if (store(thread[at]) && same_bytes(thread[at], load)) {
        return thread[at];
      }
    }
    return kNone;
  }

  uint32_t find_settled(uint32_t s) const {
    const auto& thread = threads_[event(s).thread];
    uint32_t later_stores = 0;
    for (uint32_t at = position_[s] + 1; at < thread.size(); ++at) {
      const uint32_t e = thread[at];
      if (drains(e)) {
        return e;
      }
      if (store(e) && ++later_stores == options_.store_buffer) {
        return e;
      }
      if (load(e)) {
        const uint32_t match = newest_match(e);
        if (match != kNone && !inside(e, match) && position_[match] >= position_[s]) {
          return e;
        }
      }
    }
    return kNone;
  }

  bool directed_in_thread(uint32_t e, uint32_t f) const {
    if (position_[e] >= position_[f]) {
      return false;
    }
    if (options_.model == MemoryModel::kSc || !load_like(f)) {
      return true;
    }
    const uint32_t held_by = store(e) ? e : load(e) ? source(e) : kNone;
    return held_by == kNone || settled_by(held_by, f) || (load(f) && same_bytes(e, f));
  }

  // acq reads the latest earlier rel of its lock.
  bool reads_release(uint32_t acquire, uint32_t release) const {
    const EventKind kind = event(acquire).kind();
    if (!options_.lock_order ||
        (kind != EventKind::kAcquire && kind != EventKind::kAcquireShared) ||
        event(release).kind() != EventKind::kRelease) {
      return false;
    }
    uint32_t latest = kNone;
    for_each_on_bytes(releases_, acquire, [&](uint32_t e) {
      const auto over = [&](uint32_t release) {
        return is_lock_by_start(event(release)) ? trace_.lo(event(release))
                                                : trace_.hi(event(release));
      };
      if (over(e) < trace_.lo(event(acquire)) && (latest == kNone || over(e) >= over(latest))) {
        latest = e;
      }
    });
    return latest == release;
  }

  const Trace& trace_;
  RelationOptions options_;
  std::vector<uint32_t> position_;
  std::vector<std::vector<uint32_t>> threads_;
  Ranges releases_;
  Ranges writes_;
  std::map<ThreadId, std::map<Lock, std::vector<uint32_t>>> held_;  // acquired and not released
  std::map<uint32_t, uint32_t> sections_;                           // acquisition to release
  std::set<Lock> given_away_;
  // Answers given before: the definitions are asked about every pair of events of a window.
  mutable std::unordered_map<uint32_t, uint32_t> newest_match_;
  mutable std::unordered_map<uint32_t, uint32_t> settled_;
};

class Replay {
 public:
  Replay(const Trace& trace, const Definitions& definitions, const UnitTable& units,
         const std::vector<Step>& steps, const WitnessClaim& claim)
      : trace_(trace), defs_(definitions), units_(units), steps_(steps), claim_(claim) {}

  Result<std::vector<uint32_t>> run() {
    for (const auto rule : {&Replay::follow_machine, &Replay::keep_directed_edges,
                            &Replay::return_values, &Replay::exclude}) {
      if (std::string why = (this->*rule)(); !why.empty()) {
        return reject(std::move(why));
      }
    }
    std::vector<uint32_t> cycle = find_cycle();
    if (cycle.empty()) {
      return reject("shows an execution without a cycle");
    }
    return cycle;
  }

 private:
  bool sc() const { return claim_.options.model == MemoryModel::kSc; }

  // Rules 1 and 2; fills issue_, commit_, forwarded_from_ and events_.
  std::string follow_machine() {
    std::map<ThreadId, std::vector<uint32_t>> buffers;
    std::map<ThreadId, uint32_t> last_issued;
    for (uint32_t at = 0; at < steps_.size(); ++at) {
      const Step& step = steps_[at];
      if (step.event >= trace_.events.size() || !is(trace_.events[step.event], kinds::kNodes)) {
        return fmt::format("names event {}, which has no step", step.event);
      }
      const uint32_t e = step.event;
      auto& buffer = buffers[trace_.events[e].thread];
      if (step.commit) {
        if (buffer.empty() || buffer.front() != e) {
          return fmt::format("commits event {} out of turn", e);
        }
        if (sc() && (at == 0 || steps_[at - 1] != Step{false, e})) {
          return fmt::format("delays the commit of event {} under SC", e);
        }
        buffer.erase(buffer.begin());
        commit_[e] = at;
        continue;
      }
      const auto last = last_issued.find(trace_.events[e].thread);
      if (issue_.contains(e) ||
          (last != last_issued.end() && defs_.position(last->second) >= defs_.position(e))) {
        return fmt::format("issues event {} against program order", e);
      }
      last_issued[trace_.events[e].thread] = e;
      issue_[e] = at;
      events_.push_back(e);
      if (defs_.drains(e)) {
        if (!buffer.empty()) {
          return fmt::format("lets event {} pass with stores in the buffer", e);
        }
      } else if (defs_.store(e)) {
        buffer.push_back(e);
        if (claim_.options.store_buffer != 0 && buffer.size() > claim_.options.store_buffer) {
          return fmt::format("holds more stores than fit at event {}", e);
        }
      } else if (defs_.load(e)) {
        for (size_t i = buffer.size(); i-- > 0;) {
          if (defs_.same_bytes(buffer[i], e)) {
            if (!defs_.inside(e, buffer[i])) {
              return fmt::format("lets load {} pass a store that it only overlaps", e);
            }
            forwarded_from_[e] = buffer[i];
            break;
          }
        }
      }
    }
    for (const auto& [thread, buffer] : buffers) {
      if (!buffer.empty()) {
        return fmt::format("never commits event {}", buffer.front());
      }
    }
    return {};
  }

  uint32_t effect(uint32_t e) const {
    const auto at = commit_.find(e);
    return at != commit_.end() ? at->second : issue_.at(e);
  }

  std::string keep_directed_edges() {
    for (const uint32_t e : events_) {
      for (const uint32_t f : events_) {
        if (e == f || !defs_.directed(e, f)) {
          continue;
        }
        // Within a thread the machine keeps program order; what remains is a store that the trace
        // shows committed before a later load.
        const bool kept = defs_.same_thread(e, f)
                              ? !defs_.store(e) || !defs_.load_like(f) || !defs_.settled_by(e, f) ||
                                    effect(e) < issue_.at(f)
                              : effect(e) < issue_.at(f);
        if (!kept) {
          return fmt::format("turns round the directed edge from event {} to event {}", e, f);
        }
      }
    }
    return {};
  }

  // Conflicting events of different threads: does e come before f in this execution?
  bool before(uint32_t e, uint32_t f) const {
    const auto forwarded_e = forwarded_from_.find(e);
    const auto forwarded_f = forwarded_from_.find(f);
    const uint32_t at_e =
        forwarded_e != forwarded_from_.end() ? effect(forwarded_e->second) : effect(e);
    const uint32_t at_f =
        forwarded_f != forwarded_from_.end() ? effect(forwarded_f->second) : effect(f);
    return at_e < at_f;
  }

  // Rule 5: checked for loads of locations all of whose stores are in the window.
  std::string return_values() {
    if (!claim_.values || !trace_.complete) {
      return {};
    }
    for (const uint32_t load : events_) {
      const auto recorded = trace_.read_value(trace_.events[load]);
      if (!recorded) {
        continue;
      }
      bool comparable = true;
      uint32_t read_from = kNone;
      defs_.for_each_writer(load, [&](uint32_t w) {
        const EventKind kind = trace_.events[w].kind();
        if (!comparable || w == load ||
            (kind != EventKind::kWrite && kind != EventKind::kReadModifyWrite)) {
          return;
        }
        comparable = issue_.contains(w) && w >= trace_.in_front &&
                     trace_.write_value(trace_.events[w]).has_value() && defs_.inside(load, w) &&
                     defs_.inside(w, load);
        if (comparable && effect(w) < issue_.at(load) &&
            (read_from == kNone || effect(read_from) < effect(w))) {
          read_from = w;
        }
      });
      if (const auto own = forwarded_from_.find(load); own != forwarded_from_.end()) {
        read_from = own->second;
      }
      if (comparable && read_from != kNone &&
          trace_.write_value(trace_.events[read_from]) != recorded) {
        return fmt::format("lets load {} return a value that was not recorded", load);
      }
    }
    return {};
  }

  // Rule 6.
  std::string exclude() {
    if (!claim_.exclusion || !trace_.complete || !claim_.options.lock_order ||
        claim_.options.semantics != Semantics::kExact) {
      return {};
    }
    for (const uint32_t begin : events_) {
      const uint32_t end = defs_.end_of_section(begin);
      if (end == kNone || !issue_.contains(end)) {
        continue;
      }
      for (const uint32_t other : events_) {
        if (defs_.end_of_section(other) != kNone && defs_.conflict(begin, other) &&
            issue_.at(begin) < issue_.at(other) && issue_.at(other) < effect(end)) {
          return fmt::format("lets event {} acquire the lock of event {}", other, begin);
        }
      }
    }
    return {};
  }

  std::vector<uint32_t> find_cycle() {
    const bool per_event = claim_.property == Property::kRobustness;
    const auto node_of = [&](uint32_t e) { return per_event ? e : units_.of_event(e); };
    const bool full_program_order = per_event || sc();
    std::map<uint32_t, std::map<uint32_t, uint32_t>> edges;  // node -> next node -> event behind it
    for (const uint32_t e : events_) {
      for (const uint32_t f : events_) {
        if (node_of(e) == node_of(f)) {
          continue;
        }
        bool edge = false;
        if (defs_.same_thread(e, f)) {
          edge = full_program_order ? defs_.position(e) < defs_.position(f) : defs_.directed(e, f);
        } else {
          const bool open =
              defs_.conflict(e, f) ||
              ((defs_.of_thread(e, f) || defs_.of_thread(f, e)) && !claim_.options.thread_order);
          edge = open ? before(e, f) : defs_.directed(e, f);
        }
        if (edge) {
          edges[node_of(e)].emplace(node_of(f), e);
        }
      }
    }
    // Depth first; `state`: 1 on the path, 2 done.
    std::map<uint32_t, int> state;
    std::vector<std::pair<uint32_t, std::map<uint32_t, uint32_t>::const_iterator>> path;
    for (const auto& [root, out] : edges) {
      if (state[root] != 0) {
        continue;
      }
      path.emplace_back(root, out.begin());
      state[root] = 1;
      while (!path.empty()) {
        auto& [node, next] = path.back();
        if (next == edges[node].end()) {
          state[node] = 2;
          path.pop_back();
          continue;
        }
        const uint32_t to = next->first;
        ++next;
        if (state[to] == 1) {
          std::vector<uint32_t> cycle;
          for (size_t i = path.size(); i-- > 0;) {
            cycle.push_back(std::prev(path[i].second)->second);
            if (path[i].first == to) {
              break;
            }
          }
          std::reverse(cycle.begin(), cycle.end());
          return cycle;
        }
        if (state[to] == 0 && edges.contains(to)) {
          state[to] = 1;
          path.emplace_back(to, edges[to].begin());
        }
      }
    }
    return {};
  }

  const Trace& trace_;
  const Definitions& defs_;
  const UnitTable& units_;
  const std::vector<Step>& steps_;
  WitnessClaim claim_;
  std::vector<uint32_t> events_;
  std::unordered_map<uint32_t, uint32_t> issue_;   // step
  std::unordered_map<uint32_t, uint32_t> commit_;  // step
  std::unordered_map<uint32_t, uint32_t> forwarded_from_;
};

}  // namespace

struct WitnessChecker::Tables {
  Definitions definitions;
  UnitTable units;
};

WitnessChecker::WitnessChecker(const Trace& trace, const WitnessClaim& claim)
    : trace_(trace), claim_(claim) {
  claim_.options = claimed_options(claim);
  tables_ = std::make_unique<Tables>(Tables{Definitions(trace, claim_.options), UnitTable(trace)});
}

WitnessChecker::~WitnessChecker() = default;

Result<std::vector<uint32_t>> WitnessChecker::check(const std::vector<Step>& witness,
                                                    bool values) const {
  WitnessClaim claim = claim_;
  claim.values = values;
  return Replay(trace_, tables_->definitions, tables_->units, witness, claim).run();
}

Result<std::vector<uint32_t>> check_witness(const Trace& trace, const std::vector<Step>& witness,
                                            const WitnessClaim& claim) {
  return WitnessChecker(trace, claim).check(witness, claim.values);
}

std::vector<Step> minimal_witness(const WitnessChecker& checker, const Relation& relation,
                                  const std::vector<Step>& witness, bool values,
                                  const std::vector<uint32_t>& first_kept) {
  const auto restricted = [&](const std::set<uint32_t>& events) {
    std::vector<Step> steps;
    std::copy_if(witness.begin(), witness.end(), std::back_inserter(steps),
                 [&](const Step& step) { return events.contains(step.event); });
    return steps;
  };
  std::set<uint32_t> all;
  for (const Step& step : witness) {
    all.insert(step.event);
  }
  // The stores that loads may be forwarded from stay with them.
  const auto is_source = [&](const std::set<uint32_t>& events, uint32_t store) {
    return std::any_of(events.begin(), events.end(),
                       [&](uint32_t e) { return relation.source(e) == store; });
  };
  std::set<uint32_t> kept;
  for (const uint32_t e : first_kept) {
    kept.insert(e);
    if (relation.source(e) != Relation::kNever) {
      kept.insert(relation.source(e));
    }
  }
  if (!checker.check(restricted(kept), values)) {
    kept = std::move(all);
  }
  if (kept.size() > kMaxMinimised) {
    return restricted(kept);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t e : std::vector<uint32_t>(kept.begin(), kept.end())) {
      std::set<uint32_t> fewer = kept;
      fewer.erase(e);
      if (!is_source(fewer, e) && checker.check(restricted(fewer), values)) {
        kept = std::move(fewer);
        changed = true;
      }
    }
  }
  return restricted(kept);
}

}  // namespace tsomon
