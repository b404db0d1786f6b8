#include "monitor/report/groups.h"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace tsomon::report {
namespace {

// Of the accesses that make the cycle, else of all.
std::set<std::string> variables_of(const Finding& finding) {
  std::set<std::string> variables;
  const auto add = [&](const Access& access) {
    if (!access.variable.empty()) {
      variables.insert(access.variable);
    }
  };
  for (const Unit& unit : finding.cycle) {
    if (unit.edge == "program-order") {
      continue;  // of these the other edges have both ends that conflict
    }
    for (const uint64_t event : {unit.from, unit.to}) {
      if (const Access* const access = finding.access(event); access != nullptr) {
        add(*access);
      }
    }
  }
  if (finding.cycle.empty()) {
    for (const Access& access : finding.accesses) {
      add(access);
    }
  }
  return variables;
}

std::pair<std::string, std::string> group_name(const Finding& finding) {
  constexpr size_t kMostNamed = 3;
  const std::set<std::string> variables = variables_of(finding);
  if (!variables.empty()) {
    std::string name;
    size_t named = 0;
    for (const std::string& variable : variables) {
      if (named == kMostNamed) {
        name += fmt::format(" and {} more", variables.size() - named);
        break;
      }
      name += (named++ == 0 ? "" : ", ") + variable;
    }
    return {variables.size() == 1 ? "variable" : "variables", name};
  }
  const Place* const place = finding.place();
  if (place != nullptr && !place->function.empty()) {
    return {"function", place->function};
  }
  if (place != nullptr && !place->file.empty()) {
    return {"file", place->file};
  }
  return {"kind of finding", rule_of(finding.rule).name};
}

}  // namespace

std::vector<Group> groups_of(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (size_t i = 0; i < findings.size(); ++i) {
    auto name = group_name(findings[i]);
    const auto [at, is_new] = known.try_emplace(name, groups.size());
    if (is_new) {
      groups.push_back({std::move(name.first), std::move(name.second), {}, 0});
    }
    Group& group = groups[at->second];
    group.members.push_back(i);
    group.times += findings[i].times;
  }
  return groups;
}

}  // namespace tsomon::report
