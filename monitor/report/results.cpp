#include "monitor/report/results.h"

#include <algorithm>
#include <istream>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "monitor/report/from_json.h"
#include "monitor/report/json_fields.h"

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
  for_each_object(array_of(object, "faults"), [&](const Json& each) {  // of `critical-races`
    count(exploration_of(each));
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
  const bool races = text_of(object, "tool") == "tsomon critical-races";
  const bool known = object.contains("verdict") || object.contains("findings") || races;
  if (!known || object.contains("eliminators") || text_of(object, "tool") == "tsomon doctor") {
    return false;
  }
  judged_.push_back(judged_of(object, name));
  const uint64_t before = waiting_.size();
  name_waiting(judged_.back().name);
  judged_.back().findings += before;
  add_findings(object, &judged_.back());
  if (races || (object.contains("decided") && object["decided"].is_object())) {
    decisions_.push_back(decisions_of(object));
  }
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
          "{}: line {}: expected a result of check, run, attach, predict, explore or "
          "critical-races, found {}",
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
