// Where fences are missing, in the words of reports.
//
// Source      tso/order/fences.h; the units are those of components that are violated or not decided.
// Purpose     One list for `tsomon check` and `tsomon run`: units with the same label that lack a
//             fence at the same source location are one entry.
// Helps       A store that may commit late need not be what is wrong: a lost update is one under SC, too. So each component
//             is judged once more with the fences that its units lack (FenceQuestions), and only where nothing is left
//             of the violation is a fence said to be missing.
// Thread-safety: pure functions of their arguments; of FenceQuestions every thread needs its own.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "monitor/findings/reported_finding.h"
#include "tso/check/analysis.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"
#include "tso/order/orientations.h"

namespace tsomon {

// A unit with a store that may commit after it (tso/order/fences.h); one for all units with the
// same label that lack a fence at the same source location.
struct FenceAdvice {
  ThreadId thread = 0;
  uint32_t label = Interner::kNone;
  uint64_t first = 0;  // events of the input
  uint64_t last = 0;
  uint64_t after = 0;  // the store that a fence belongs after
  Event store;
  uint64_t units = 0;
  Answer helps = Answer::kUnknown;  // a fence there, and wherever else the component lacks one
};

inline constexpr size_t kMaxFenceAdvice = 16;

// Whether the fences that the units of a component lack would rule its violation out, as `explain` asks it: with fences
// that delay what follows them, or with fences that take the time that was seen to be there (explain::FenceTime). Asked is the
// slice of the trace around the component, in which the events of all other units are units of their own. So kYes is about
// the units of the component, and kNo means that one of them may still be violated.
//
// Bounds      Components that span kMostEventsFenced events; kMostWorkFenced steps for one of them, kMostWorkAllFenced for
//             all together; of those that lack the same fences kMostAlikeFenced. Past them the answer is not known.
class FenceQuestions {
 public:
  static constexpr uint32_t kMostEventsFenced = 20'000;
  static constexpr uint64_t kMostWorkFenced = 20'000'000;
  static constexpr uint64_t kMostWorkAllFenced = 200'000'000;
  static constexpr unsigned kMostAlikeFenced = 4;

  // With which options the components were judged.
  explicit FenceQuestions(const AnalysisOptions& options);

  Answer ask(const Analysis& analysis, uint32_t group, const Trace& trace, const UnitTable& units);

 private:
  struct Known {
    Answer helps = Answer::kNo;  // the best answer so far
    unsigned asked = 0;
  };
  Answer judge(const std::vector<UnitId>& group, const std::vector<uint32_t>& after,
               const Trace& trace, const UnitTable& units);

  AnalysisOptions options_;
  uint64_t work_left_ = kMostWorkAllFenced;
  // By the label and the source location of each fence that is lacking, sorted.
  std::map<std::vector<std::pair<uint32_t, uint32_t>>, Known> known_;
};

// Adds what an analysis says of a trace whose events are numbered by `index` (nullptr: as they
// stand), up to kMaxFenceAdvice entries in all. `questions`: nullptr: whether fences help is not asked.
void add_fence_advice(const Analysis& analysis, const Trace& trace, const UnitTable& units,
                      const std::vector<uint64_t>* index, FenceQuestions* questions,
                      std::vector<FenceAdvice>* advice);

std::vector<ReportedFence> reported(const std::vector<FenceAdvice>& advice, const Symbols& symbols,
                                    const ReportNames& names);

}  // namespace tsomon
