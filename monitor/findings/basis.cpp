#include "monitor/findings/basis.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tsomon {
namespace {

// How to get units, and how to get what they access.
struct Remedies {
  const char* units;
  const char* accesses;
};

Remedies remedies(BasisSource source) {
  switch (source) {
    case BasisSource::kAttached:
      return {"name the functions that are units with --unit",
              "watch longer, and name functions that run meanwhile and access memory themselves "
              "(--unit, --accesses, --watch)"};
    case BasisSource::kPerf:
      return {"name the functions that are units with --unit, or record their breakpoints",
              "record longer, and what the units access"};
    case BasisSource::kFed:
      return {"call begin() and end() around what is meant to be atomic",
              "feed the accesses of the units with read(), write() and update()"};
    default:
      return {
          "declare units with TSOMON_UNIT(\"name\") or name functions with "
          "TSOMON_OPTIONS=unit=NAME, and check how they are spelt",
          "build the code of the units with tsomon-c++ or tsomon-cc, that in libraries, too"};
  }
}

std::string counted(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

Basis basis_of(const EventCount& count, const Symbols& symbols, const Selection& selection,
               BasisSource source) {
  return {source,
          count.matter(),
          count.accesses(),
          count.declared_units(),
          count.larger_units(),
          count.cancelled_units(),
          count.labels(),
          symbols.sets.size(),
          selection,
          std::nullopt};
}

std::vector<Shortfall> shortfalls(const Basis& basis, bool about_units) {
  const Remedies remedy = remedies(basis.source);
  if (basis.matter == 0) {
    return {basis.no_event.value_or(Shortfall{"there is no event to judge", remedy.accesses})};
  }
  if (basis.source == BasisSource::kWritten) {
    return {};
  }
  if (basis.selection.only_sets && basis.sets == 0) {
    return {{"accesses=sets records accesses to declared sets alone, and no set is declared",
             "declare sets with TSOMON_ATOMIC_SET, or record without accesses=sets"}};
  }
  if (basis.accesses == 0) {
    return {basis.selection.only_sets
                ? Shortfall{"accesses=sets, and there is no access to a declared set",
                            "record without accesses=sets, or build what uses the sets with "
                            "tsomon-c++"}
                : Shortfall{"no access to memory was recorded", remedy.accesses}};
  }
  if (!about_units || basis.larger_units != 0) {
    return {};
  }
  if (basis.declared_units == 0 && basis.cancelled_units != 0) {
    return {{fmt::format("every unit was cancelled, or did not end ({})",
                         counted(basis.cancelled_units, "unit")),
             "record until attempts succeed, and end their units"}};
  }
  if (basis.declared_units == 0) {
    return {{"no unit was recorded: every event is a unit of its own", remedy.units}};
  }
  return {{fmt::format("no unit has two or more accesses that were recorded ({} declared)",
                       counted(basis.declared_units, "unit")),
           remedy.accesses}};
}

std::string basis_text(const Basis& basis) {
  return fmt::format("rests on: {} with {}, {} of them with two or more accesses; {} accesses{}",
                     counted(basis.declared_units, "declared unit"), counted(basis.labels, "label"),
                     basis.larger_units, basis.accesses,
                     basis.cancelled_units == 0
                         ? std::string()
                         : fmt::format("; {} cancelled", counted(basis.cancelled_units, "unit")));
}

std::string shortfall_lines(const Shortfall& shortfall) {
  return fmt::format("  shows nothing: {}\n  remedy: {}\n", shortfall.reason, shortfall.remedy);
}

nlohmann::ordered_json basis_json(const Basis& basis) {
  return {{"declared_units", basis.declared_units},
          {"labels", basis.labels},
          {"units_with_two_accesses", basis.larger_units},
          {"cancelled_units", basis.cancelled_units},
          {"accesses", basis.accesses},
          {"declared_sets", basis.sets}};
}

nlohmann::ordered_json shortfalls_json(const std::vector<Shortfall>& shortfalls) {
  auto list = nlohmann::ordered_json::array();
  for (const Shortfall& each : shortfalls) {
    list.push_back({{"reason", each.reason}, {"remedy", each.remedy}});
  }
  return list;
}

}  // namespace tsomon
