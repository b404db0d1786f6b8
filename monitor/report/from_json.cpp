#include "monitor/report/from_json.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "monitor/findings/finding_places.h"
#include "monitor/report/json_fields.h"

namespace tsomon::report {
namespace {

using Json = nlohmann::ordered_json;

// "bank.cpp:53", also behind the name of a function: what text traces have for a place.
void split_text(Place* place) {
  const SourceFrame frame = frame_of_text(place->text);
  if (frame.file.empty()) {
    return;
  }
  place->file = frame.file;
  place->line = static_cast<uint64_t>(frame.line);
  if (place->function.empty()) {
    place->function = frame.function;
  }
}

Place place_of(const std::string& text) {
  Place place;
  place.text = text;
  split_text(&place);
  return place;
}

Place place_of(const Json& object) {
  Place place;
  place.text = text_of(object, "location");
  place.function = text_of(object, "function");
  place.file = text_of(object, "file");
  place.line = number_of(object, "line");
  if (place.file.empty()) {
    split_text(&place);
  }
  return place;
}

// "store counter = 1", "locked x: 1, then 2".
std::string what_text(const Json& object) {
  std::string where = text_of(object, "variable");
  if (where.empty()) {
    where = text_of(object, "name");
  }
  if (where.empty()) {
    where = value_text(object, "address");
  }
  const std::string read = value_text(object, "read");
  const std::string written = value_text(object, "written");
  std::string text = text_of(object, "operation");
  text += where.empty() ? "" : (text.empty() ? "" : " ") + where;
  if (!read.empty() && !written.empty()) {
    return text + ": " + read + ", then " + written;
  }
  return read.empty() && written.empty() ? text : text + " = " + read + written;
}

// By its name, without the place in it; empty: it has an address alone.
std::string variable_of(const Json& object) {
  std::string name = text_of(object, "variable");
  if (name.empty()) {
    name = text_of(object, "name");
  }
  if (name.rfind("0x", 0) == 0) {
    return {};
  }
  const size_t offset = name.rfind("+0x");
  return offset == std::string::npos ||
                 name.find_first_not_of("0123456789abcdef", offset + 3) != std::string::npos
             ? name
             : name.substr(0, offset);
}

void add_accesses(const Json& array, Finding* finding) {
  for_each_object(array, [&](const Json& object) {
    Access access;
    access.event = number_of(object, "event");
    access.thread = text_of(object, "thread");
    access.what = what_text(object);
    access.operation = text_of(object, "operation");
    access.variable = variable_of(object);
    access.read = value_text(object, "read");
    access.written = value_text(object, "written");
    access.place = place_of(object);
    for_each_object(array_of(object, "called_from"),
                    [&](const Json& call) { access.called_from.push_back(place_of(call)); });
    finding->accesses.push_back(std::move(access));
  });
  std::stable_sort(finding->accesses.begin(), finding->accesses.end(),
                   [](const Access& a, const Access& b) { return a.event < b.event; });
}

// Events, or steps; of those that are not described nothing is shown.
void add_witness(const Json& array, Finding* finding) {
  for (const Json& entry : array) {
    Step step;
    if (entry.is_object()) {
      step.commit = entry.contains("commit");
      step.event = number_of(entry, step.commit ? "commit" : "issue");
    } else {
      step.event = number_of(entry);
    }
    if (finding->access(step.event) != nullptr) {
      finding->witness.push_back(step);
    }
  }
}

void add_cycle(const Json& array, Finding* finding) {
  for_each_object(array, [&](const Json& object) {
    Unit unit;
    unit.thread = text_of(object, "thread");
    unit.label = text_of(object, "label");
    unit.first = number_of(object, "first");
    unit.last = number_of(object, "last");
    unit.is_unit = flag_of(object, "is_unit", true);
    unit.from = number_of(object, "from");
    unit.to = number_of(object, "to");
    unit.edge = text_of(object, "edge");
    unit.reason = text_of(object, "reason");
    finding->cycle.push_back(std::move(unit));
  });
}

std::string property_rule(const std::string& property) {
  return property == "serializability"      ? "atomicity-violation"
         : property == "sc-serializability" ? "atomicity-violation-sc"
         : property == "atomic-sets"        ? "atomic-set-violation"
         : property == "robustness"         ? "not-robust"
         : property == "consistency"        ? "inconsistent-values"
         : property == "linearizability"    ? "not-linearizable"
                                            : "other";
}

// The order of a predicted execution, by whose turn it is.
void add_turns(const Json& object, Finding* finding) {
  constexpr size_t kMostTurns = 200;  // `predict` lists fewer
  finding->turns_before = number_of(object, "turns_before");
  finding->turns_in_part = object.contains("short_witness");
  if (finding->turns_in_part && object["short_witness"].is_object()) {
    std::vector<std::string> last;
    for (const Json& event : array_of(object["short_witness"], "last")) {
      last.push_back(fmt::format("#{}", number_of(event)));
    }
    if (!last.empty()) {
      finding->details.push_back(
          fmt::format("before these turns all is as in the recording, for each thread up to its {}",
                      fmt::join(last, ", ")));
    }
  }
  for_each_object(array_of(object, "turns"), [&](const Json& each) {
    Turn turn;
    turn.thread = text_of(each, "thread");
    turn.commit = each.contains("commit");
    turn.first = number_of(each, turn.commit ? "commit" : "first");
    turn.last = turn.commit ? turn.first : std::max(turn.first, number_of(each, "last"));
    if (finding->turns.size() < kMostTurns) {
      finding->turns.push_back(std::move(turn));
    }
  });
}

// "lock forks+0x28" of "acquire forks+0x28".
std::string lock_text(const std::string& what) {
  for (const std::string_view begin : {"acquire shared ", "acquire "}) {
    if (what.rfind(begin, 0) == 0) {
      return "lock " + what.substr(begin.size());
    }
  }
  return what;
}

// Each waits for what the next one has; a lost notification is waited for by one thread.
void add_waits(const Json& object, Finding* finding) {
  const std::vector<std::string> held_at = texts_of(array_of(object, "holder_locations"));
  const std::vector<std::string> threads = texts_of(array_of(object, "holder_threads"));
  const Json& holders = array_of(object, "holders");
  const bool lost = text_of(object, "kind") == "lost-notification";
  size_t i = 0;
  for (const Json& event : array_of(object, "events")) {
    const Access* const access = finding->access(number_of(event));
    if (access == nullptr) {
      return;
    }
    Wait wait;
    wait.thread = access->thread;
    wait.event = access->event;
    wait.place = access->place;
    wait.for_what = lost ? "a notification" : lock_text(access->what);
    if (i < holders.size() && i < held_at.size() && i < threads.size()) {
      const std::string since = fmt::format("#{} {}", number_of(holders[i]), held_at[i]);
      if (lost) {
        wait.for_what += fmt::format(", which {} gave too early: {}", threads[i], since);
      } else {
        wait.held_by = threads[i];
        wait.held_since = since;
      }
    }
    finding->waits.push_back(std::move(wait));
    ++i;
  }
  std::unordered_map<std::string, std::vector<std::string>> held;
  for (const Wait& wait : finding->waits) {
    if (!wait.held_by.empty()) {
      held[wait.held_by].push_back(wait.for_what + " since " + wait.held_since);
    }
  }
  for (Wait& wait : finding->waits) {
    wait.holds = std::exchange(held[wait.thread], {});  // each waits once
  }
}

// "inc of T1, inc of T2".
std::string units_text(const std::vector<Unit>& cycle) {
  std::string text;
  for (const Unit& unit : cycle) {
    const std::string name = !unit.is_unit        ? "an access"
                             : unit.label.empty() ? "a unit"
                                                  : unit.label;
    text += (text.empty() ? "" : ", ") + name + " of " + unit.thread;
  }
  return text;
}

}  // namespace

Finding violation_of(const Json& object, const std::string& property, const std::string& verdict) {
  Finding finding;
  finding.rule = property_rule(property);
  finding.verdict = verdict;
  finding.fingerprint = text_of(object, "fingerprint");
  finding.repair = text_of(object, "repair");
  add_accesses(array_of(object, "accesses"), &finding);
  add_witness(array_of(object, "witness"), &finding);
  add_cycle(array_of(object, "cycle"), &finding);
  finding.headline = rule_of(finding.rule).name;
  if (!finding.cycle.empty()) {
    finding.headline += ": " + units_text(finding.cycle);
  }
  for_each_object(array_of(object, "unfenced_units"), [&](const Json& unit) {
    if (!flag_of(unit, "fence_helps", true)) {
      return;
    }
    finding.details.push_back(fmt::format("a store at {} may commit after the end of {} of {}",
                                          text_of(unit, "location"), text_of(unit, "label"),
                                          text_of(unit, "thread")));
  });
  return finding;
}

Finding counted(Finding finding, const Json& object) {
  finding.times = std::max<uint64_t>(number_of(object, "count"), 1);
  if (const std::string by = text_of(object, "suppressed_by"); !by.empty()) {
    finding.details.push_back("suppressed: " + by);
  }
  return finding;
}

// `lines` of the input, which the findings are in.
Finding history_of(const Json& object, const std::string& input) {
  Finding finding;
  finding.rule = "not-linearizable";
  finding.verdict = "definite";
  finding.fingerprint = text_of(object, "fingerprint");
  finding.headline = fmt::format("{}: {} {}", rule_of(finding.rule).name, text_of(object, "object"),
                                 text_of(object, "object_name"));
  for (const Json& line : array_of(object, "minimal")) {
    Place place;
    place.file = input;
    place.line = number_of(line);
    place.text = fmt::format("{}:{}", input, place.line);
    finding.places.push_back(std::move(place));
  }
  for_each_object(array_of(object, "minimal_operations"), [&](const Json& call) {
    finding.details.push_back(
        fmt::format("{}: {}", value_text(call, "process"), text_of(call, "operation")));
  });
  return finding;
}

Finding prediction_of(const Json& object, const char* rule) {
  Finding finding;
  finding.rule = rule;
  finding.verdict = "predicted";
  finding.fingerprint = text_of(object, "fingerprint");
  add_accesses(array_of(object, "accesses"), &finding);
  add_witness(array_of(object, "witness"), &finding);
  std::vector<std::string> places;
  for (const Access& access : finding.accesses) {
    places.push_back(access.place.text.empty() ? fmt::format("#{}", access.event)
                                               : access.place.text);
  }
  add_turns(object, &finding);
  if (finding.rule == "deadlock") {
    add_waits(object, &finding);
  }
  const std::string label = text_of(object, "label");
  finding.headline = fmt::format("{}: {}{}", rule_of(rule).name, label.empty() ? "" : label + ", ",
                                 fmt::join(places, ", "));
  if (object.contains("happened") && object["happened"] == true) {
    finding.details.emplace_back("as it happened in the run");
  }
  if (text_of(object, "kind") == "lost-notification") {
    finding.details.emplace_back("the notification comes before the wait");
  }
  return finding;
}

Finding deadlock_of(const Json& object) {
  Finding finding;
  finding.rule = "deadlock";
  finding.verdict = "definite";
  finding.fingerprint = text_of(object, "fingerprint");
  std::vector<std::string> places;
  for_each_object(array_of(object, "threads"), [&](const Json& each) {
    const Json awaited = each.value("waits_for", Json::object());
    if (!awaited.is_object()) {
      return;
    }
    const std::string kind = text_of(awaited, "kind");
    const std::string name = text_of(awaited, kind == "thread" ? "thread" : "lock");
    const auto holders = texts_of(array_of(awaited, "held_by"));
    Access access;
    access.event = number_of(awaited, "event");
    access.thread = text_of(each, "thread");
    access.what = fmt::format("waits for {}{}{}", kind == "thread" ? "the end of" : kind,
                              name.empty() ? "" : " ", name);
    access.place = place_of(text_of(awaited, "location"));
    std::string line = fmt::format("{} {}", access.thread, access.what);
    if (kind == "lock" && !holders.empty()) {
      line += fmt::format(", which {} holds", fmt::join(holders, ", "));
    }
    Wait wait;
    wait.thread = access.thread;
    wait.event = access.event;
    wait.place = access.place;
    wait.for_what = fmt::format("{}{}{}", kind == "thread" ? "the end of" : kind,
                                name.empty() ? "" : " ", name);
    wait.held_by = kind == "thread" ? name : fmt::format("{}", fmt::join(holders, ", "));
    if (const auto since = awaited.find("held_since");
        since != awaited.end() && since->is_object()) {
      wait.held_since =
          fmt::format("#{} {}", number_of(*since, "event"), text_of(*since, "location"));
    }
    access.variable = kind == "lock" ? name : std::string();
    std::vector<std::string>& held = wait.holds;
    for_each_object(array_of(each, "holds"), [&](const Json& lock) {
      held.push_back(text_of(lock, "lock") + " since " + text_of(lock, "location"));
    });
    finding.details.push_back(
        held.empty() ? line : fmt::format("{}, and holds {}", line, fmt::join(held, ", ")));
    finding.waits.push_back(std::move(wait));
    places.push_back(access.place.text);
    finding.accesses.push_back(std::move(access));
  });
  std::sort(finding.accesses.begin(), finding.accesses.end(),
            [](const Access& a, const Access& b) { return a.event < b.event; });
  finding.headline = fmt::format("{}: {}", rule_of("deadlock").name, fmt::join(places, ", "));
  finding.details.emplace_back("as it happened in the run");
  return finding;
}

Finding exploration_of(const Json& object) {
  Finding finding;
  const std::string kind = text_of(object, "kind");
  const std::string rule = property_rule(kind);
  finding.rule = rule != "other" ? rule : rule_of(kind).id;
  finding.verdict = "explored";
  finding.fingerprint = text_of(object, "fingerprint");
  finding.repair = text_of(object, "repair");
  finding.replay = text_of(object, object.contains("replay") ? "replay" : "schedule");
  finding.schedule = text_of(object, "schedule");
  const std::string said = text_of(object, "text");
  finding.headline = rule_of(finding.rule).name + (said.empty() ? "" : ": " + said);
  for (const std::string& text : texts_of(array_of(object, "locations"))) {
    Place place = place_of(text);
    finding.places.push_back(std::move(place));
  }
  for (const std::string& operation : texts_of(array_of(object, "history"))) {
    finding.details.push_back(operation);
  }
  const std::string outcome = text_of(object, "outcome");
  if (!outcome.empty()) {
    finding.details.push_back("outcome: " + outcome);
  }
  return finding;
}

Judged judged_of(const Json& object, const std::string& name) {
  Judged judged;
  judged.name = text_of(object, object.contains("file") ? "file" : "program");
  if (judged.name.empty()) {
    judged.name = name;
  }
  judged.tool = text_of(object, "tool");
  judged.question = text_of(object, "property");
  if (judged.question.empty()) {
    judged.question = fmt::format("{}", fmt::join(texts_of(array_of(object, "kinds")), ", "));
  }
  if (judged.question.empty()) {
    judged.question = text_of(object, "model");
  }
  judged.verdict = text_of(object, "verdict");
  judged.complete = flag_of(object, "complete", true);
  if (judged.verdict.empty() && object.contains("executions")) {  // of `explore`
    judged.verdict = !array_of(object, "findings").empty() ? "violation"
                     : judged.complete                     ? "none"
                                                           : "inconclusive";
  }
  if (judged.verdict.empty() && object.contains("leaves")) {  // of `critical-races`
    judged.verdict = !array_of(object, "faults").empty() ? "violation"
                     : judged.complete                   ? "none"
                                                         : "inconclusive";
  }
  for (const char* const key :
       {"events", "threads", "units", "lost_events", "executions", "classes", "blocked",
        "candidates", "refused", "leaves", "faulty"}) {
    if (object.contains(key) && object[key].is_number_unsigned()) {
      judged.counters.emplace_back(key, number_of(object, key));
    }
  }
  judged.notes = texts_of(array_of(object, "notes"));
  for_each_object(array_of(object, "shortfalls"), [&](const Json& shortfall) {
    judged.notes.push_back(text_of(shortfall, "reason"));
  });
  const auto error = object.find("error");
  if (error != object.end() && error->is_object()) {
    judged.notes.push_back("not judged: " + text_of(*error, "message"));
  }
  return judged;
}

}  // namespace tsomon::report
