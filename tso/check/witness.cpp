#include "tso/check/witness.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "tso/check/definitions.h"
#include "tso/model/units.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

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

class Replay {
 public:
  Replay(const Trace& trace, const TraceDefinitions& definitions, const UnitTable& units,
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
  // Of an order of issues, the execution under TSO whose it is.
  bool by_issues() const {
    return claim_.property == Property::kScSerializability &&
           claim_.values != WitnessValues::kIgnored;
  }

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
        if (sc() && !by_issues() && (at == 0 || steps_[at - 1] != Step{false, e})) {
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

  // What orders it with others.
  uint32_t place(uint32_t e) const { return by_issues() ? issue_.at(e) : effect(e); }

  uint32_t effect(uint32_t e) const {
    const auto at = commit_.find(e);
    return at != commit_.end() ? at->second : issue_.at(e);
  }

  std::string keep_directed_edges() {
    for (const uint32_t e : events_) {
      spend(8 * events_.size());
      for (const uint32_t f : events_) {
        if (e == f || !defs_.directed(e, f)) {
          continue;
        }
        // Within a thread the machine keeps program order; what remains is a store that the trace
        // shows committed before a later load.
        const bool kept = defs_.same_thread(e, f)
                              ? !defs_.store(e) || !defs_.load_like(f) || !defs_.visible_by(e, f) ||
                                    place(e) < issue_.at(f)
                              : place(e) < issue_.at(f);
        if (!kept) {
          return fmt::format("turns round the directed edge from event {} to event {}", e, f);
        }
      }
    }
    return {};
  }

  // Conflicting events of different threads: does e come before f in this execution?
  bool before(uint32_t e, uint32_t f) const {
    if (by_issues()) {
      return issue_.at(e) < issue_.at(f);
    }
    const auto forwarded_e = forwarded_from_.find(e);
    const auto forwarded_f = forwarded_from_.find(f);
    const uint32_t at_e =
        forwarded_e != forwarded_from_.end() ? effect(forwarded_e->second) : effect(e);
    const uint32_t at_f =
        forwarded_f != forwarded_from_.end() ? effect(forwarded_f->second) : effect(f);
    return at_e < at_f;
  }

  // Rule 5: checked for loads of locations all of whose stores are in the slice.
  std::string return_values() {
    const bool shown = claim_.values == WitnessValues::kShown;
    if (claim_.values == WitnessValues::kIgnored || !trace_.complete) {
      return {};
    }
    for (const uint32_t load : events_) {
      spend(1 + (shown ? events_.size() : 0));
      const auto recorded = trace_.read_value(trace_.events[load]);
      if (!recorded) {
        continue;
      }
      uint32_t read_from = kNone;
      // Whether the value that w leaves is known, and that of the load can be compared with it.
      const auto compare = [&](uint32_t w) {
        const EventKind kind = trace_.events[w].kind();
        if (w == load || defs_.reader(w) ||
            (kind != EventKind::kWrite && kind != EventKind::kReadModifyWrite)) {
          return true;
        }
        if (!issue_.contains(w) || (!shown && w < trace_.pending_prefix) ||
            !trace_.write_value(trace_.events[w]) || !defs_.inside(load, w) ||
            !defs_.inside(w, load)) {
          return false;
        }
        if (effect(w) < issue_.at(load) && (read_from == kNone || effect(read_from) < effect(w))) {
          read_from = w;
        }
        return true;
      };
      const bool comparable =
          shown ? std::all_of(events_.begin(), events_.end(),
                              [&](uint32_t w) { return !defs_.same_bytes(w, load) || compare(w); })
                : defs_.all_writers(load, compare);
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
      spend(1 + (end == kNone ? 0 : events_.size()));
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
    // Of the events of the witness alone: what orders them has to be there.
    const ThreadDefinitions own(trace_, claim_.options, events_);
    std::map<uint32_t, std::map<uint32_t, uint32_t>> edges;  // node -> next node -> event behind it
    for (const uint32_t e : events_) {
      spend(8 * events_.size());
      for (const uint32_t f : events_) {
        if (node_of(e) == node_of(f)) {
          continue;
        }
        bool edge = false;
        if (defs_.same_thread(e, f)) {
          edge = full_program_order ? defs_.position(e) < defs_.position(f)
                                    : own.directed_in_thread(e, f);
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
  const TraceDefinitions& defs_;
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
  TraceDefinitions definitions;
  UnitTable units;
};

WitnessChecker::WitnessChecker(const Trace& trace, const WitnessClaim& claim)
    : trace_(trace), claim_(claim) {
  claim_.options = claimed_options(claim);
  tables_ =
      std::make_unique<Tables>(Tables{TraceDefinitions(trace, claim_.options), UnitTable(trace)});
}

WitnessChecker::~WitnessChecker() = default;

Result<std::vector<uint32_t>> WitnessChecker::check(const std::vector<Step>& witness,
                                                    WitnessValues values) const {
  WitnessClaim claim = claim_;
  claim.values = values;
  return Replay(trace_, tables_->definitions, tables_->units, witness, claim).run();
}

Result<std::vector<uint32_t>> check_witness(const Trace& trace, const std::vector<Step>& witness,
                                            const WitnessClaim& claim) {
  return WitnessChecker(trace, claim).check(witness, claim.values);
}

std::vector<Step> minimal_witness(const WitnessChecker& checker, const Relation& relation,
                                  const std::vector<Step>& witness, WitnessValues values,
                                  const std::vector<uint32_t>& first_kept, Ends ends) {
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
  const std::set<uint32_t> stay = ends == Ends::kStay ? kept : std::set<uint32_t>();
  if (!checker.check(restricted(kept), values)) {
    kept = std::move(all);
  }
  if (kept.size() > kMaxMinimised) {
    return restricted(kept);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t e : std::vector<uint32_t>(kept.begin(), kept.end())) {
      if (stay.contains(e)) {
        continue;
      }
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
