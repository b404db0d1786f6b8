// Cases for the tests of the detector: random traces, what the detector says of them, and the truth by all pairs of events.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "online/detector/detector.h"
#include "tests/rounds.h"
#include "tests/tso/random_trace.h"
#include "tso/check/analysis.h"

namespace tsomon::testing {

inline const int kRounds = rounds(12'600, 210'000);

inline const int kLongRounds = rounds(60, 600);

struct Watched {
  std::vector<DetectedCycle> cycles;
  std::vector<DetectedComponent> components;
  std::vector<DetectedCandidate> candidates;
  DetectorStatistics statistics;
  bool complete = true;
};

struct Collection {
  bool collect = true;
  uint32_t max_retained = 4096;
  uint32_t sweep_every = 0;  // events
};

Watched watch(const Trace& trace, DetectorOptions options, const Collection& collection);

// The directed conflict graph by all pairs of events: the strongly connected components with more than
// one unit, each as the set of first events.
class Truth {
 public:
  Truth(const Trace& trace, const RelationOptions& options)
      : trace_(trace), units_(trace), locations_(trace), relation_(trace, locations_, options) {
    const size_t n = units_.size();
    reach_.assign(n, std::vector<bool>(n, false));
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      for (uint32_t f = 0; f < trace.events.size(); ++f) {
        if (e != f && directed(e, f)) {
          reach_[units_.of_event(e)][units_.of_event(f)] = true;
        }
      }
    }
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; reach_[i][k] && j < n; ++j) {
          reach_[i][j] = reach_[i][j] || reach_[k][j];
        }
      }
    }
  }

  bool directed(uint32_t e, uint32_t f) const {
    return is(trace_.events[e], kinds::kNodes) && is(trace_.events[f], kinds::kNodes) &&
           relation_.between(e, f) == Order::kBefore;
  }
  const UnitTable& units() const { return units_; }

  // Without events of their own on demand: which of them belong to a component is not asked where they
  // share nodes.
  std::set<std::set<uint64_t>> components(bool all) const {
    std::set<std::set<uint64_t>> result;
    for (UnitId i = 0; i < units_.size(); ++i) {
      std::set<uint64_t> component;
      size_t units = 0;
      for (UnitId j = 0; j < units_.size(); ++j) {
        if (i == j || (reach_[i][j] && reach_[j][i])) {
          ++units;
          if (all || units_[j].label != Interner::kNone) {
            component.insert(units_[j].first_event);
          }
        }
      }
      if (units > 1) {
        result.insert(component);
      }
    }
    return result;
  }

 private:
  const Trace& trace_;
  UnitTable units_;
  LocationTable locations_;
  Relation relation_;
  std::vector<std::vector<bool>> reach_;
};

void check_cycle(const Trace& trace, const Truth& truth, const DetectedCycle& cycle,
                 bool thread_events);

Verdict judge(const Trace& trace, const DetectedCandidate& candidate,
              const AnalysisOptions& options);

Verdict judge_all(const Trace& trace, const Watched& watched, const AnalysisOptions& options);

struct Case {
  RandomTraceOptions made;
  Trace trace;
  DetectorOptions detector;
  AnalysisOptions analysis;
};

Case random_case(std::mt19937_64& random);

Collection random_collection(std::mt19937_64& random);

// Two threads at a time beside the first, which starts and joins them.
std::string random_generations(std::mt19937_64& random);

// A thread that mostly reads what it has stored, and others that now and then store there, too.
Trace random_spinning(std::mt19937_64& random);

}  // namespace tsomon::testing
