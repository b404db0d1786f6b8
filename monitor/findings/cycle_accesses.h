// What watches need to fill a ReportedCycle with, and to tell one from another.
//
// Complexity  O(size), times its logarithm. Thread-safety: none; the functions are pure.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "monitor/findings/reported_cycle.h"

namespace tsomon {

// The same cycle, wherever it begins, has the same key.
inline std::string key_of(const ReportedCycle& cycle) {
  std::vector<std::string> steps;
  const size_t size = cycle.steps.size();
  steps.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    const ReportedStep& step = cycle.steps[i];
    const ReportedStep& before = cycle.steps[(i + size - 1) % size];
    steps.push_back(fmt::format("{}|{}|{}", step.label, cycle.accesses[before.to].place.text,
                                cycle.accesses[step.from].place.text));
  }
  std::rotate(steps.begin(), std::min_element(steps.begin(), steps.end()), steps.end());
  return fmt::format("{}", fmt::join(steps, "\n"));
}

// The accesses of a cycle, each once, in the order of the input.
class CycleAccesses {
 public:
  void add(ReportedAccess access) { by_index_.try_emplace(access.index, std::move(access)); }
  // When all were added.
  void move_to(std::vector<ReportedAccess>* accesses) {
    for (auto& [index, access] : by_index_) {
      place_[index] = accesses->size();
      accesses->push_back(std::move(access));
    }
  }
  // Where an event is then.
  size_t place(uint64_t index) const { return place_.at(index); }

 private:
  std::map<uint64_t, ReportedAccess> by_index_;
  std::unordered_map<uint64_t, size_t> place_;
};

// Of every step it is known by which access the cycle comes in and goes out.
inline void list_accesses(ReportedCycle* cycle) {
  const size_t size = cycle->steps.size();
  for (size_t i = 0; i < size; ++i) {
    ReportedStep& step = cycle->steps[i];
    const size_t entered = cycle->steps[(i + size - 1) % size].to;
    step.accesses = {std::min(entered, step.from)};
    if (entered != step.from) {
      step.accesses.push_back(std::max(entered, step.from));
    }
    for (const size_t access : {entered, step.from}) {
      const std::string& text = cycle->accesses[access].place.text;
      if (!text.empty() && (step.locations.empty() || step.locations.back() != text)) {
        step.locations.push_back(text);
      }
    }
  }
}

}  // namespace tsomon
