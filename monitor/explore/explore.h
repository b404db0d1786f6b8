// `tsomon explore`: the executions of a program, one of every class.
//
// Purpose     Runs a program under all schedules that differ in what loads read or in the order of
//             writes, under SC or TSO, and reports what goes wrong in any of them: failed
//             assertions, crashes, deadlocks, livelocks, and classes that violate a property. Each
//             finding has the shortest schedule that was seen.
// Start       The exploration begins anew whenever a run shows that several threads access a word
//             of memory that was taken for one thread's own. Counts are those since the last
//             beginning.
// Complete    Only if every class was explored: not when a bound was hit, a stop was asked for, the
//             program cannot be controlled, did not do the same again, or accesses memory in ways
//             that steps cannot tell (`notes` say which). So not with a strategy that picks
//             executions.
// Redundant   Runs of a class that had been explored, counted for the first million classes.
// Jobs        Each has a process of the program and a part of the search; the totals are the same
//             for any number of them, but for the note that ends a search that met a bound.
// Memory      That of the search, and of the names of classes: 8 bytes each, for at most a million.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "monitor/findings/finding_filter.h"
#include "offline/explore/program.h"
#include "offline/linearizability/operation.h"
#include "offline/linearizability/sequential.h"
#include "tso/support/result.h"

namespace tsomon::explore {

struct ProgramRepair;

// States: every state once, which is what atomic blocks need.
enum class Strategy : uint8_t { kDpor, kNaive, kRandom, kPct, kStates };

struct ExploreOptions {
  std::vector<std::string> command;
  Model model = Model::kTso;
  Strategy strategy = Strategy::kDpor;
  uint64_t executions = 0;  // 0: no bound; of random and pct: kSampled
  double seconds = 0;       // 0: no bound
  uint64_t seed = 1;
  uint32_t depth = 3;                 // of pct
  uint32_t preemptions = UINT32_MAX;  // of naive
  uint32_t max_steps = 10000;         // of one execution
  std::string replay;                 // a schedule; empty: none
  uint32_t jobs = 1;                  // processes of the program
  bool fork = false;                  // for every execution
  bool reuse = false;                 // freed memory is given out again
  bool spurious = true;               // waits on conditions may wake by themselves
  bool serializability = false;
  bool robustness = false;
  bool linearizability = false;
  std::optional<linearizability::ObjectKind> object;  // of the operations; nothing: by their names
  // Says what operations return, in the place of an object that is known.
  std::shared_ptr<linearizability::SequentialObject> specification;
  std::string folder;                     // for a trace of every class; empty: none
  const ProgramRepair* repair = nullptr;  // to be tried; with blocks the strategy is kStates
};
inline constexpr uint64_t kSampled = 1000;

struct ExploreFinding {
  std::string kind;
  std::string text;  // in words, one line
  std::string schedule;
  std::vector<std::string> locations;
  std::string fingerprint;
  FindingPlaces places;
  std::string outcome;
  std::vector<std::string> history;  // of linearizability: the smallest part that has no order
  std::string trace;     // of serializability and robustness: the execution, as a text trace
  std::string repair;    // what would have ruled it out, in words; empty: nobody has said it
  uint64_t classes = 0;  // that show it
  size_t steps = 0;
};

struct Exploration {
  std::string program;
  uint64_t executions = 0;
  uint64_t blocked = 0;
  uint64_t redundant = 0;
  uint64_t classes = 0;
  uint64_t restarts = 0;
  std::map<std::string, uint64_t> outcomes;
  std::vector<ExploreFinding> findings;
  std::vector<std::string> notes;  // why it is not complete
  bool refused = false;            // the program calls what cannot be controlled
  double seconds = 0;
  uint64_t traces = 0;
  bool not_saved = false;  // some could not be written
  // Executions that ran without a fork, and with one, those before the last beginning too.
  uint64_t in_place = 0;
  uint64_t forked = 0;
  std::string forked_because;  // of the last one; empty: nothing made it necessary
  bool applied = false;        // of a repair: some of its places came up
  uint64_t clients = 0;  // that were explored (explore_clients.h); the counts are of all of them
  std::string client;    // that shows the findings and the outcomes

  bool complete() const { return notes.empty(); }
};

// Progress: called now and then with what there is so far.
Result<Exploration> explore(const ExploreOptions& options);

// `hidden` is told of all findings, and says which are not shown.
std::string exploration_text(const Exploration& exploration, const ExploreOptions& options,
                             HiddenFindings* hidden = nullptr);
nlohmann::ordered_json exploration_json(const Exploration& exploration,
                                        const ExploreOptions& options,
                                        HiddenFindings* hidden = nullptr);
const char* strategy_text(Strategy strategy);

}  // namespace tsomon::explore
