#include "monitor/judge/certain_cycles.h"

#include <algorithm>
#include <utility>

#include "monitor/judge/cycle_finding.h"

namespace tsomon {
Finding CertainCycles::finding_of(const DetectedCycle& cycle) const {
  return finding_of_cycle(cycle, options_.property, options_.analysis.relation);
}

void CertainCycles::close(const DetectedCycle& cycle) {
  any_certain_ = any_certain_ || cycle.certain();
  if (options_.analysis.told == Told::kFirst) {
    keep_first(cycle);
    return;
  }
  const auto [known, is_new] =
      kind_numbers_.try_emplace(kind_of(cycle, symbols_.names.size()), kinds_.size());
  if (is_new) {
    kinds_.push_back({cycle, std::nullopt, false, false});
  }
  Open open{known->second, begin_of(cycle), std::nullopt};
  if (options_.analysis.told == Told::kAll) {
    open.cycle = cycle;
  }
  const auto [at, is_first] = open_.try_emplace(cycle.component, std::move(open));
  if (!is_first && cycle.certain() && !kinds_[at->second.kind].cycle.certain()) {
    at->second = std::move(open);
  }
}

// One of each component, a certain one if there is one.
void CertainCycles::keep_first(const DetectedCycle& cycle) {
  const auto same = std::find_if(first_.begin(), first_.end(), [&](const DetectedCycle& kept) {
    return kept.component == cycle.component && kept.set == cycle.set;
  });
  if (same != first_.end()) {
    if (cycle.certain() && !same->certain()) {
      *same = cycle;
    }
  } else if (first_.size() < options_.analysis.max_findings) {
    first_.push_back(cycle);
  }
}

void CertainCycles::join(uint64_t part, uint64_t whole) {
  if (const auto at = open_.find(part); at != open_.end()) {
    open_.try_emplace(whole, std::move(at->second));
    open_.erase(part);
  }
}

CertainCycles::Open* CertainCycles::open_of(const DetectedCandidate& candidate) {
  Open* found = nullptr;
  for (const uint64_t component : candidate.components) {
    const auto at = open_.find(component);
    if (at != open_.end() && (found == nullptr || (!kinds_[found->kind].cycle.certain() &&
                                                   kinds_[at->second.kind].cycle.certain()))) {
      found = &at->second;
    }
  }
  return found;
}

void CertainCycles::resolve(const DetectedCandidate& candidate) {
  for (const uint64_t component : candidate.components) {
    open_.erase(component);
  }
}

CertainCycles::Next CertainCycles::next(const DetectedCandidate& candidate) {
  const Open* const open = options_.analysis.told == Told::kEachKind ? open_of(candidate) : nullptr;
  if (open == nullptr) {
    return Next::kAnalyse;
  }
  Kind& kind = kinds_[open->kind];
  if (kind.finding) {
    FindingKinds::repeat(open->begin, *kind.finding, &report_);
    resolve(candidate);
    return Next::kCounted;
  }
  if (kind.asked) {
    return Next::kWait;
  }
  kind.asked = !kind.each;
  return Next::kAnalyse;
}

void CertainCycles::analysed(const DetectedCandidate& candidate, const std::vector<Taken>& taken) {
  const auto is_of_it = [&](const Taken& one) {
    return std::any_of(one.accesses.begin(), one.accesses.end(), [&](const auto& access) {
      return std::any_of(candidate.units.begin(), candidate.units.end(),
                         [&](const DetectedUnit& unit) {
                           return unit.thread == access.first && unit.first <= access.second &&
                                  access.second <= unit.last;
                         });
    });
  };
  if (const Open* const open = open_of(candidate); open != nullptr) {
    Kind& kind = kinds_[open->kind];
    const auto shown = std::find_if(taken.begin(), taken.end(), [&](const Taken& one) {
      return one.definite && is_of_it(one);
    });
    if (shown != taken.end()) {
      kind.finding = shown->finding;
    }
    kind.asked = false;
    kind.each = !kind.finding;
  }
  resolve(candidate);
}

void CertainCycles::count(const Open& open) {
  Kind& kind = kinds_[open.kind];
  kind.asked = false;
  if (open.cycle) {
    findings_.add(finding_of(*open.cycle), &report_);
  } else if (kind.finding) {
    FindingKinds::repeat(open.begin, *kind.finding, &report_);
  } else {
    kind.finding = findings_.add(finding_of(kind.cycle), &report_);
  }
}

bool CertainCycles::show(const DetectedCandidate& candidate) {
  if (const Open* const open = open_of(candidate); open != nullptr) {
    count(*open);
    resolve(candidate);
    return true;
  }
  return false;
}

bool CertainCycles::is_told(const DetectedCycle& cycle, bool sure) const {
  return std::any_of(report_.findings.begin(), report_.findings.end(), [&](const Finding& finding) {
    return shows(finding, cycle) &&
           (!sure || !cycle.certain() || verdict_of(finding) == Verdict::kDefinite);
  });
}

uint64_t CertainCycles::show_rest(bool early, bool sure) {
  const auto stands = [&](const DetectedCycle& cycle) {
    return !early || (sure && cycle.certain());
  };
  uint64_t added = 0;
  for (const DetectedCycle& cycle : first_) {
    if (stands(cycle) && !is_told(cycle, sure)) {
      report_.findings.push_back(finding_of(cycle));
      ++added;
    }
  }
  if (early) {
    // Which of them the analysis has counted is not known: of each kind one.
    for (Kind& kind : kinds_) {
      if (!kind.finding && stands(kind.cycle) && !is_told(kind.cycle, sure)) {
        kind.finding = findings_.add(finding_of(kind.cycle), &report_);
        ++added;
      }
    }
    return added;
  }
  // In the order of the input, whatever that of the components is.
  std::vector<const Open*> rest;
  for (const auto& [component, open] : open_) {
    rest.push_back(&open);
  }
  std::sort(rest.begin(), rest.end(),
            [](const Open* a, const Open* b) { return a->begin < b->begin; });
  for (const Open* const open : rest) {
    count(*open);
    ++added;
  }
  return added;
}

void CertainCycles::forget() {
  first_.clear();
  kinds_.clear();
  kind_numbers_.clear();
  open_.clear();
}

}  // namespace tsomon
