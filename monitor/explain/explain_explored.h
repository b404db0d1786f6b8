// Repairs that are tried on the program itself.
//
// Purpose     A repair was found in traces. Here the runtime puts it into the program that they are
//             of (monitor/explore/program_repair.h), and every execution is explored: whether the
//             violation is gone from all of them, and what else there is then.
// Verdict     Gone: every class was explored, and none is violated at a place of the violations
//             that are explained. Not gone: some is. Nothing: the program does not show the
//             violation without the repair, its places never came up, or not all was explored.
// Blocks      The program enters and leaves a block with an empty store buffer, and enters it when
//             it can come to the end without waiting. So a deadlock that a lock around the block
//             would cause is not seen.
// Complexity  An exploration for each repair, and one without.
// Thread-safety: none.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "monitor/explain/explain.h"
#include "monitor/explore/explore.h"

namespace tsomon {

struct OtherFinding {
  std::string kind;
  std::string text;
  std::vector<std::string> locations;
  bool is_new = false;  // the program does not have it without the repair
};

struct ExploredRepair {
  std::optional<bool> gone;
  bool complete = false;
  uint64_t executions = 0;
  uint64_t classes = 0;
  std::vector<OtherFinding> others;   // that are there with the repair
  std::vector<std::string> went_too;  // kinds and texts of others that are not there any more
  std::vector<std::string> notes;
  std::string left;  // an execution that has the violation all the same, as a text trace
};

struct ExploredRepairs {
  bool shown = false;  // the violation, without a repair
  std::vector<std::string> notes;
  std::vector<ExploredRepair> repairs;  // as in the explanation
};

// The repair is verified if the trace and the exploration say so.
std::optional<bool> both_verified(const explain::Repair& repair, const ExploredRepair* explored);

// Of `options`: the command, the model and the bounds.
Result<ExploredRepairs> explore_repairs(const Explanation& explanation,
                                        explore::ExploreOptions options);

// One repair, of a program that was explored without it (`before`) and showed the violation: a finding of
// that kind at one of the places.
Result<ExploredRepair> explore_repair(const explain::Repair& repair,
                                      const explore::Exploration& before, const std::string& kind,
                                      const std::set<std::string>& locations,
                                      explore::ExploreOptions options);

// Repairs that the exploration refuted come last.
void put_refuted_last(Explanation* explanation, ExploredRepairs* explored);

}  // namespace tsomon
