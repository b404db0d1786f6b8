#include "monitor/report/results.h"

#include <algorithm>
#include <istream>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "monitor/findings/finding_places.h"

namespace tsomon::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostProblems = 20;

constexpr Rule kRules[] = {
    {"atomicity-violation", "Atomicity violation",
     "Units of work overlap such that no order of whole units explains what they read and wrote."},
    {"atomicity-violation-sc", "Atomicity violation under SC",
     "Units of work overlap such that no order of whole units explains them, even if no store is "
     "delayed."},
    {"atomic-set-violation", "Atomic set violation",
     "Units see, or leave, parts of a set of locations that belong together as no order of whole "
     "units does."},
    {"not-robust", "Reordering by store buffers",
     "The execution is one that store buffers alone allow: no interleaving of the threads explains "
     "it."},
    {"inconsistent-values", "Inconsistent values",
     "No execution of the memory model reads these values."},
    {"not-linearizable", "Not linearizable", "No order of the calls explains what they returned."},
    {"data-race", "Data race", "Another schedule makes two conflicting accesses meet."},
    {"deadlock", "Deadlock",
     "Threads wait for each other, or for a notification that is gone, in the run or in another "
     "schedule of it."},
    {"predicted-atomicity-violation", "Predicted atomicity violation",
     "Another schedule makes units of work overlap as no order of whole units allows."},
    {"use-after-free", "Use after free",
     "Memory is accessed after it was given back, in the run or in another schedule of it."},
    {"use-after-destroy", "Use after destruction",
     "Another schedule uses a lock, condition variable or semaphore after its end."},
    {"assertion", "Assertion",
     "An execution of the program ends by an assertion or a wrong status."},
    {"crash", "Crash", "An execution of the program ends by a signal or an error of memory."},
    {"livelock", "Livelock", "An execution of the program comes to no end."},
    {"uninitialised", "Uninitialised memory",
     "An execution of the program reads what nothing was written to."},
    {"other", "Finding", "What this version has no name for."},
};

// Fields that are missing, or of another type than they should be, are as if they were empty.
std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

uint64_t number_of(const Json& value) {
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

uint64_t number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() ? number_of(*found) : 0;
}

bool flag_of(const Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

const Json& array_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
}

// Calls function(part) for the objects among the parts.
template <typename Function>
void for_each_object(const Json& array, const Function& function) {
  for (const Json& part : array) {
    if (part.is_object()) {
      function(part);
    }
  }
}

std::vector<std::string> texts_of(const Json& array) {
  std::vector<std::string> texts;
  for (const Json& part : array) {
    if (part.is_string()) {
      texts.push_back(part.get<std::string>());
    }
  }
  return texts;
}

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

std::string value_text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_structured() || found->is_null() ? std::string()
         : found->is_string() ? found->get<std::string>()
                              : found->dump();
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

void add_accesses(const Json& array, Finding* finding) {
  for_each_object(array, [&](const Json& object) {
    Access access;
    access.event = number_of(object, "event");
    access.thread = text_of(object, "thread");
    access.what = what_text(object);
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
    finding.details.push_back(fmt::format("a store at {} may commit after the end of {} of {}",
                                          text_of(unit, "location"), text_of(unit, "label"),
                                          text_of(unit, "thread")));
  });
  return finding;
}

// How often it is there, and whether it is hidden.
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

// That a run ended in.
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
    std::vector<std::string> held;
    for_each_object(array_of(each, "holds"), [&](const Json& lock) {
      held.push_back(text_of(lock, "lock") + " since " + text_of(lock, "location"));
    });
    finding.details.push_back(
        held.empty() ? line : fmt::format("{}, and holds {}", line, fmt::join(held, ", ")));
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
  const std::string said = text_of(object, "text");
  finding.headline = rule_of(finding.rule).name + (said.empty() ? "" : ": " + said);
  for (const std::string& text : texts_of(array_of(object, "locations"))) {
    const size_t space = text.find(' ');  // "read explore.cpp:33": what was done there
    Place place = place_of(space == std::string::npos ? text : text.substr(space + 1));
    place.text = text;
    finding.places.push_back(std::move(place));
  }
  const std::string outcome = text_of(object, "outcome");
  if (!outcome.empty()) {
    finding.details.push_back("outcome: " + outcome);
  }
  return finding;
}

// Of an object that says what an input came to.
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

}  // namespace

const Rule& rule_of(std::string_view id) {
  const auto found = std::find_if(std::begin(kRules), std::end(kRules),
                                  [&](const Rule& rule) { return rule.id == id; });
  return found != std::end(kRules) ? *found : kRules[std::size(kRules) - 1];
}

const Access* Finding::access(uint64_t event) const {
  const auto found =
      std::lower_bound(accesses.begin(), accesses.end(), event,
                       [](const Access& access, uint64_t number) { return access.event < number; });
  return found != accesses.end() && found->event == event ? &*found : nullptr;
}

const Place* Finding::place() const {
  for (const Unit& unit : cycle) {
    const Access* const found = access(unit.from);
    if (found != nullptr && !found->place.file.empty()) {
      return &found->place;
    }
  }
  for (const Access& access : accesses) {
    if (!access.place.file.empty()) {
      return &access.place;
    }
  }
  return places.empty() ? nullptr : &places.front();
}

void Results::add(Finding finding, const std::string& input) {
  const auto [known, is_new] =
      known_.try_emplace({finding.rule, finding.fingerprint}, findings_.size());
  size_t at = known->second;
  if (is_new || finding.fingerprint.empty()) {
    at = findings_.size();
    findings_.push_back(std::move(finding));
  } else {
    findings_[at].times += finding.times;
  }
  if (input.empty()) {
    waiting_.push_back(at);
  } else {
    add_input(at, input);
  }
}

uint64_t Results::repeat(const std::string& fingerprint, uint64_t times) {
  const auto found = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& finding) {
    return finding.fingerprint == fingerprint && !fingerprint.empty();
  });
  if (found == findings_.end() || times == 0) {
    return 0;
  }
  found->times += times - 1;  // the one that came is counted
  return times - 1;
}

void Results::add_input(size_t finding, const std::string& input) {
  std::vector<std::string>& inputs = findings_[finding].inputs;
  if (inputs.size() < kMostInputs &&
      std::find(inputs.begin(), inputs.end(), input) == inputs.end()) {
    inputs.push_back(input);
  }
}

void Results::name_waiting(const std::string& input) {
  for (const size_t at : std::exchange(waiting_, {})) {
    add_input(at, input);
  }
}

// The last one that was judged is the one before it, with another question.
bool Results::asked_again() const {
  if (judged_.size() < 2) {
    return false;
  }
  const Judged& last = judged_.back();
  const Judged& before = judged_[judged_.size() - 2];
  return last.name == before.name && last.tool == before.tool && last.question != before.question;
}

void Results::add_findings(const Json& object, Judged* judged) {
  const auto count = [&](Finding finding) {
    judged->findings += finding.times;
    add(std::move(finding), judged->name);
  };
  const std::string property = text_of(object, "property");
  if (property == "linearizability" && judged->verdict == "violation") {
    count(history_of(object, judged->name));
  } else if (property == "consistency" && judged->verdict == "inconsistent") {
    count(violation_of(object, property, "definite"));
  } else if (object.contains("cycle") && array_of(object, "findings").empty()) {
    count(violation_of(object, property, judged->verdict));
  }
  for_each_object(array_of(object, "findings"), [&](const Json& each) {
    if (each.contains("violation")) {  // how often one was seen that came before
      judged->findings += repeat(text_of(each, "fingerprint"), number_of(each, "count"));
      return;
    }
    count(each.contains("kind")
              ? exploration_of(each)
              : counted(violation_of(each, property, text_of(each, "verdict")), each));
  });
  const auto happened = object.find("deadlock");
  if (happened != object.end() && happened->is_object() && !asked_again()) {
    count(deadlock_of(*happened));
  }
  const auto predictions = [&](const char* key, const char* rule) {
    for_each_object(array_of(object, key),
                    [&](const Json& each) { count(prediction_of(each, rule)); });
  };
  predictions("races", "data-race");
  predictions("deadlocks", "deadlock");
  predictions("atomicity_violations", "predicted-atomicity-violation");
  predictions("uses_after_free", "use-after-free");
  predictions("uses_after_destroy", "use-after-destroy");
}

bool Results::add(const Json& object, const std::string& name) {
  if (!object.is_object() || text_of(object, "tool").rfind("tsomon ", 0) != 0) {
    return false;
  }
  if (object.contains("violation")) {  // of a program that still ran
    add(violation_of(object, text_of(object, "property"), text_of(object, "verdict")), {});
    return true;
  }
  if (object.contains("event")) {  // a count on the way
    return true;
  }
  const bool known = object.contains("verdict") || object.contains("findings");
  if (!known || object.contains("eliminators") || text_of(object, "tool") == "tsomon doctor") {
    return false;
  }
  judged_.push_back(judged_of(object, name));
  const uint64_t before = waiting_.size();
  name_waiting(judged_.back().name);
  judged_.back().findings += before;
  add_findings(object, &judged_.back());
  return true;
}

void Results::read(std::istream& input, const std::string& name) {
  uint64_t line = 0;
  uint64_t bad = 0;
  for (std::string one; std::getline(input, one);) {
    ++line;
    if (one.empty() || one.front() != '{') {
      continue;  // of the program that ran
    }
    const Json object = Json::parse(one.begin(), one.end(), nullptr, false);
    if (add(object, name)) {
      continue;
    }
    if (++bad <= kMostProblems) {
      problems_.push_back(fmt::format(
          "{}: line {}: expected a result of check, run, attach, predict or explore, found {}",
          name, line,
          object.is_discarded() ? "what is no JSON object"
          : object.is_object()  ? fmt::format("an object of '{}'", text_of(object, "tool"))
                                : "another value"));
    }
  }
  if (bad > kMostProblems) {
    problems_.push_back(fmt::format("{}: and {} lines more", name, bad - kMostProblems));
  }
  name_waiting(name);
}

void Results::finish() {
  const auto rank = [](const Finding& finding) {
    return std::tuple(finding.certain() ? 0 : 1, finding.verdict == "predicted" ? 1 : 0);
  };
  std::stable_sort(findings_.begin(), findings_.end(), [&](const Finding& a, const Finding& b) {
    return std::tuple_cat(rank(a), std::tuple(b.times)) <
           std::tuple_cat(rank(b), std::tuple(a.times));
  });
  known_.clear();
}

bool are_results(std::string_view beginning) {
  while (!beginning.empty()) {
    const size_t end = std::min(beginning.find('\n'), beginning.size());
    if (beginning.rfind("{\"", 0) == 0) {
      return true;
    }
    beginning.remove_prefix(std::min(end + 1, beginning.size()));
  }
  return false;
}

}  // namespace tsomon::report
