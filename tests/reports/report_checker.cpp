#include "tests/reports/report_checker.h"

#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>

namespace tsomon::reports {
namespace {

using nlohmann::json;

void require(bool holds, const std::string& otherwise) {
  if (!holds) {
    throw std::runtime_error(otherwise);
  }
}

std::string number(size_t n) { return std::to_string(n); }

// The witness, replayed. SC-serializability orders accesses by their issues, in an execution whose stores may
// commit late all the same: values are those of memory.
class Replay {
 public:
  Replay(const PlainTrace& trace, const json& steps, bool by_issues, bool at_once)
      : trace_(trace), by_issues_(by_issues) {
    std::map<std::string, size_t> last;
    for (size_t at = 0; at < steps.size(); ++at) {
      const json& step = steps[at];
      require(step.is_object() && step.size() == 1, "step " + number(at) + " is no step");
      const bool commit = step.begin().key() == "commit";
      require(commit || step.begin().key() == "issue", "step of unknown kind");
      const size_t e = step.begin().value().get<size_t>();
      require(e < trace.events.size() && trace.events[e].node(), "no such event: " + number(e));
      const PlainEvent& event = trace.events[e];
      std::deque<size_t>& buffer = buffers_[event.thread];
      if (commit) {
        require(!buffer.empty() && buffer.front() == e, "commit out of turn: " + number(e));
        require(!at_once || steps[at - 1] == json{{"issue", e}},
                "late commit of a set: " + number(e));
        buffer.pop_front();
        effect_[e] = 2 * at;
        continue;
      }
      require(issue_.count(e) == 0, "issued twice: " + number(e));
      require(last.count(event.thread) == 0 || last[event.thread] < e,
              "issued against program order: " + number(e));
      last[event.thread] = e;
      issue_[e] = at;
      issue(e, at);
    }
    for (const auto& [thread, buffer] : buffers_) {
      require(buffer.empty(), "a store of " + thread + " never commits");
    }
  }

  bool has(size_t e) const { return issue_.count(e) != 0; }

  // e's effect on their common bytes precedes f's. A load that was forwarded from its own buffer
  // comes right after the store that it saw.
  bool before(size_t e, size_t f) const {
    return by_issues_ ? issue_.at(e) < issue_.at(f) : effect(e) < effect(f);
  }

  void keep_proved_orders() const {
    for (const auto& [e, unused] : issue_) {
      for (const auto& [f, also_unused] : issue_) {
        if (trace_.events[e].thread != trace_.events[f].thread && trace_.proved_before(e, f)) {
          require(before(e, f), "the trace has " + number(e) + " before " + number(f));
        }
      }
    }
  }

  // The units (`per_event`: events) of the witness, by the conflicts in it and by what its events,
  // and no others, order inside of threads, have a cycle.
  bool cyclic(const std::string& property) const {
    std::vector<size_t> kept;
    for (const auto& [e, unused] : issue_) {
      kept.push_back(e);
    }
    const PlainTrace own = trace_.only(kept);
    const bool sets = property == "atomic-sets";
    const bool full = property == "robustness" || property == "sc-serializability";
    std::map<size_t, std::set<size_t>> after;
    for (size_t i = 0; i < kept.size(); ++i) {
      for (size_t j = 0; j < kept.size(); ++j) {
        const PlainEvent& from = own.events[i];
        const PlainEvent& to = own.events[j];
        const bool same = from.thread == to.thread;
        bool edge = false;
        if (sets) {
          edge = issue_.at(kept[i]) < issue_.at(kept[j]) && own.same_bytes(i, j) &&
                 !(from.load() && to.load());
        } else if (same) {
          edge = i < j && (full || own.kept_in_thread(i, j));
        } else {
          edge = own.conflict(i, j) ? before(kept[i], kept[j]) : own.proved_before(i, j);
        }
        const auto node = [&](size_t at) {
          return property == "robustness" ? at : static_cast<size_t>(own.events[at].unit);
        };
        if (i != j && edge && node(i) != node(j)) {
          after[node(i)].insert(node(j));
        }
      }
    }
    // What nothing comes before is taken away until nothing changes.
    for (size_t left = after.size() + 1; left != after.size();) {
      left = after.size();
      std::set<size_t> entered;
      for (const auto& [from, all] : after) {
        entered.insert(all.begin(), all.end());
      }
      for (auto at = after.begin(); at != after.end();) {
        at = entered.count(at->first) != 0 ? std::next(at) : after.erase(at);
      }
    }
    return !after.empty();
  }

  // Loads return what they recorded, for named locations whose stores are all in the window.
  void return_values() const {
    for (const auto& [e, unused] : issue_) {
      const PlainEvent& event = trace_.events[e];
      if (!event.read || event.size != 0) {
        continue;
      }
      uint64_t value = 0;
      size_t newest = 0;
      bool known = true;
      for (size_t f = 0; f < trace_.events.size(); ++f) {
        if (f == e || !trace_.same_bytes(e, f) || trace_.events[f].load()) {
          continue;
        }
        known = known && has(f) && trace_.events[f].written.has_value();
        if (known && effect(f) < effect(e) && effect(f) + 1 > newest) {
          newest = effect(f) + 1;
          value = *trace_.events[f].written;
        }
      }
      require(!known || value == *event.read, "event " + number(e) + " reads " +
                                                  std::to_string(value) + ", but recorded " +
                                                  std::to_string(*event.read));
    }
  }

 private:
  void issue(size_t e, size_t at) {
    const PlainEvent& event = trace_.events[e];
    std::deque<size_t>& buffer = buffers_[event.thread];
    require(!event.drains() || buffer.empty(), "passes a full buffer: " + number(e));
    if (event.store()) {
      buffer.push_back(e);
      return;
    }
    if (event.op == "join") {
      require(buffers_[event.location].empty(), "joins a thread with stores in its buffer");
    }
    effect_[e] = 2 * at;
    if (event.load()) {
      for (auto own = buffer.rbegin(); own != buffer.rend(); ++own) {
        if (trace_.same_bytes(*own, e)) {
          require(trace_.inside(e, *own), "load sees half a buffered store: " + number(e));
          forwarded_from_[e] = *own;
          return;
        }
      }
    }
  }

  size_t effect(size_t e) const {
    const auto source = forwarded_from_.find(e);
    return source == forwarded_from_.end() ? effect_.at(e) : effect_.at(source->second) + 1;
  }

  const PlainTrace& trace_;
  bool by_issues_;
  std::map<std::string, std::deque<size_t>> buffers_;
  std::map<size_t, size_t> issue_;
  std::map<size_t, size_t> effect_;  // twice the step, so that there is room between two steps
  std::map<size_t, size_t> forwarded_from_;
};

class Report {
 public:
  Report(const PlainTrace& trace, const Question& question, const json& report)
      : trace_(trace),
        question_(question),
        report_(report),
        robustness_(question.property == "robustness"),
        sc_(question.property == "sc-serializability"),
        sets_(question.property == "atomic-sets") {}

  // Loads whose thread looks at the same bytes again before it stores anything, and finds the same.
  size_t repeated_loads() const {
    size_t count = 0;
    for (size_t e = 0; e < trace_.events.size(); ++e) {
      const PlainEvent& event = trace_.events[e];
      for (size_t f = e + 1; event.load() && event.read && f < trace_.events.size(); ++f) {
        const PlainEvent& next = trace_.events[f];
        if (next.thread != event.thread) {
          continue;
        }
        if (next.read == event.read && trace_.same_bytes(e, f)) {
          ++count;
          break;
        }
        if (next.store() || next.op == "rmw") {
          break;
        }
      }
    }
    return count;
  }

  void check(const std::string& file) const {
    require(report_.at("file") == file, "another file");
    require(report_.at("events") == trace_.events.size(), "another number of events");
    require(report_.at("threads") == trace_.threads(), "another number of threads");
    // A load that its thread repeats at once may be left out as idle, and is no unit then.
    const auto units = report_.at("units").get<size_t>();
    require(units <= trace_.units.size() && units + repeated_loads() >= trace_.units.size(),
            "another number of units");
    require(report_.at("property") == question_.property, "another property");
    const std::string verdict = report_.at("verdict").get<std::string>();
    const bool violation = verdict == "possible" || verdict == "definite";
    if (sets_ || question_.short_history) {
      require(violation || report_.at("complete") == (verdict != "inconclusive"),
              "inconclusive if and only if something is missing");
      require(report_.at("complete") == true || report_.contains("notes"), "it does not say why");
    } else {
      require(report_.at("complete") == true, "not complete");
    }
    require(violation || verdict == "inconclusive" ||
                verdict == (robustness_ ? "robust" : "serializable"),
            "no such verdict: " + verdict);
    require(report_.contains("cycle") == violation, "a cycle if and only if there is a violation");
    require(report_.contains("witness") == violation, "a witness likewise");
    if (violation) {
      check_violation();
    }
    if (report_.contains("unfenced_units")) {
      require(violation && question_.property == "serializability", "advice for nothing");
      for (const json& advice : report_.at("unfenced_units")) {
        check_advice(advice);
      }
    }
  }

 private:
  // The store is the last one of its unit that other threads could see, and nothing in the unit
  // finds it committed.
  void check_advice(const json& advice) const {
    const auto after = advice.at("after").get<size_t>();
    require(after < trace_.events.size() && trace_.events[after].store(),
            "a fence after no store: " + number(after));
    const int unit = trace_.events[after].unit;
    const PlainUnit& named = trace_.units.at(static_cast<size_t>(unit));
    require(advice.at("thread") == named.thread && advice.at("label") == named.label &&
                advice.at("first") == named.first && advice.at("last") == named.last,
            "another unit lacks the fence after " + number(after));
    require(advice.at("units").get<size_t>() >= 1 && advice.at("location").is_string(),
            "advice without its fields");
    for (size_t e = after + 1; e < trace_.events.size(); ++e) {
      if (trace_.events[e].unit == unit) {
        require(!trace_.events[e].drains() && !(trace_.events[e].store() && is_shared(e)),
                "no fence is missing after " + number(after));
      }
    }
  }

  bool is_shared(size_t e) const {
    for (size_t f = 0; f < trace_.events.size(); ++f) {
      if (trace_.conflict(e, f)) {
        return true;
      }
    }
    return false;
  }

  void check_violation() const {
    const json& cycle = report_.at("cycle");
    require(cycle.size() >= 2, "the cycle is too short");
    for (size_t i = 0; i < cycle.size(); ++i) {
      check_node(cycle[i]);
      const json& next = cycle[(i + 1) % cycle.size()];
      check_edge(cycle[i], next);
    }
    const json& steps = report_.at("witness");
    if ((question_.semantics == "paper" || question_.short_history) && steps.is_null()) {
      return;  // some orientations of the plain relation have no execution
    }
    require(steps.is_array() && !steps.empty(), "no witness");
    const Replay replay(trace_, steps, sc_, sets_);
    require(replay.cyclic(question_.property), "the witness alone has no cycle");
    if (sets_) {
      return;
    }
    replay.keep_proved_orders();
    if (question_.values) {
      replay.return_values();
    }
    for (const json& node : cycle) {
      const auto from = node.at("from").get<size_t>();
      const auto to = node.at("to").get<size_t>();
      require(replay.has(from) && replay.has(to), "an edge outside the witness");
      if (trace_.events[from].thread != trace_.events[to].thread) {
        require(replay.before(from, to),
                "the witness turns edge " + number(from) + " to " + number(to) + " around");
      }
    }
  }

  void check_node(const json& node) const {
    const auto from = node.at("from").get<size_t>();
    require(from < trace_.events.size(), "no such event: " + number(from));
    const PlainUnit& unit = trace_.units.at(static_cast<size_t>(trace_.events[from].unit));
    require(node.at("thread") == unit.thread, "another thread at event " + number(from));
    require(node.at("label") == unit.label, "another label at event " + number(from));
    require(node.at("first") == (robustness_ ? from : unit.first), "first of " + number(from));
    // What the detector remembers of a unit ends where the cycle closes.
    const auto last = node.at("last").get<size_t>();
    require(question_.short_history ? from <= last && last <= unit.last
                                    : last == (robustness_ ? from : unit.last),
            "last of " + number(from));
    require(node.at("locations").is_array(), "no locations");
  }

  // Leads from its unit to the next one, and for a reason that its ends show.
  void check_edge(const json& node, const json& next) const {
    const auto e = node.at("from").get<size_t>();
    const auto f = node.at("to").get<size_t>();
    const auto next_from = next.at("from").get<size_t>();
    require(f < trace_.events.size(), "no such event: " + number(f));
    require(robustness_ ? f == next_from : trace_.events[f].unit == trace_.events[next_from].unit,
            "edge " + number(e) + " to " + number(f) + " does not lead to the next on the cycle");
    require(robustness_ || trace_.events[e].unit != trace_.events[f].unit, "edge inside a unit");
    const std::string kind = node.at("edge").get<std::string>();
    const bool same_thread = trace_.events[e].thread == trace_.events[f].thread;
    bool fits = false;
    if (kind == "program-order") {
      fits = same_thread && e < f && (robustness_ || sc_ || trace_.kept_in_thread(e, f));
    } else if (kind == "thread") {
      fits = !same_thread && trace_.proved_before(e, f);
    } else if (sets_) {
      fits = (kind == "conflict" || kind == "implied" || kind == "overlap") &&
             trace_.same_bytes(e, f) && !(trace_.events[e].load() && trace_.events[f].load());
    } else if (kind == "conflict") {
      fits = trace_.conflict(e, f) && (sc_ || trace_.proved_before(e, f));
    } else if (kind == "reordering" || kind == "implied") {
      fits = trace_.conflict(e, f) && !trace_.proved_before(f, e);
    }
    require(fits, kind + " edge " + number(e) + " to " + number(f) + " is none");
  }

  const PlainTrace& trace_;
  const Question& question_;
  const json& report_;
  bool robustness_;
  bool sc_;
  bool sets_;
};

}  // namespace

std::string find_fault(const PlainTrace& trace, const std::string& file, const Question& question,
                       const json& report) {
  try {
    Report(trace, question, report).check(file);
  } catch (const std::exception& fault) {
    return fault.what();
  }
  return {};
}

int status_of(const json& report) {
  const std::string verdict = report.at("verdict").get<std::string>();
  if (verdict == "inconclusive") {
    return 3;
  }
  return verdict == "possible" || verdict == "definite" ? 1 : 0;
}

}  // namespace tsomon::reports
