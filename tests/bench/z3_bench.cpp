// The search of a window against z3, a general solver: z3_bench [SECONDS [WINDOWS]]
//
// SECONDS     of z3 for each question, 10 if not given; 0: z3 is not asked.
// WINDOWS     only windows with this in their names, which are like "8 threads, 0% fences, 1600
//             steps", are judged.
// Question    Is there an execution of the window with a cycle of units, and is there one without?
// For z3      An integer for the time of every issue and commit, in difference logic; what
//             step_order() says of them; a boolean for every open pair, which implies one of the
//             ways in which its first event comes first, its negation one of the other ways. No
//             cycle: an integer for every unit, ordered by directed edges and chosen pairs. A
//             cycle: a set of units, not empty, each with an edge to another one of the set.
// Windows     Random ones that really happened, 50 to 2,000 events, unfenced and with fences.
// Timed       Processor time, the best of up to kRounds rounds of both, each as long as its rounds
//             fit into a second.
//             verdict   the search, all of it: from the trace in memory to the verdict, with the
//                       relation, the event graph, the parts and what is made for each of them.
//             witness   the same with a violation shown: its execution found, made minimal, and
//                       accepted by the witness checker. z3 is not asked for its model.
//             z3 search both calls of check(), without what comes before them.
//             z3 all    with the building of the formulas, from edges that are at hand: finding
//                       these in the trace, and leaving out those that follow from others, is not
//                       counted. Without formulas there is nothing to ask.
// Printed     For each window, at once: events, open pairs, the verdicts, the milliseconds, and the
//             ratios of z3's search to both of ours and of all that z3 needs to the verdict; ">":
//             z3 came to its limit. At the end, of the windows that z3 finished, the least ratios
//             and how many are 100 and more. Exit status 1 when two verdicts differ.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <z3++.h>

#include "offline/check/orientation_search.h"
#include "tests/tso/random_trace.h"
#include "tso/model/location_table.h"

using namespace tsomon;

namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

constexpr int kRounds = 30;
constexpr double kSeconds = 1;  // for the rounds of one side

// The best of rounds that return their seconds.
template <typename Round>
double best_of(const Round& round) {
  double best = 1e9;
  double all = 0;
  for (int i = 0; i < kRounds && all < kSeconds; ++i) {
    const double seconds = round();
    best = std::min(best, seconds);
    all += seconds;
  }
  return best;
}

// Of the windows that z3 finished.
class Summary {
 public:
  explicit Summary(const char* what) : what_(what) {}
  void add(double ratio) {
    ++windows_;
    enough_ += ratio >= 100 ? 1 : 0;
    least_ = std::min(least_, ratio);
  }
  void print() const {
    fmt::print("{}: {} windows that z3 finished, least ratio {:.0f}, {} of 100 and more\n", what_,
               windows_, least_, enough_);
  }

 private:
  const char* what_;
  int windows_ = 0;
  int enough_ = 0;
  double least_ = 1e9;
};

struct Summaries {
  Summary verdict{"z3's search to the verdict"};
  Summary witness{"z3's search to the witness"};
  Summary formulas{"z3 with its formulas to the verdict"};
};

// "violated": whether it is definite was not decided.
const char* name(const Analysis& found) {
  static const char* const kNames[] = {"clean", "possible", "definite", "undecided"};
  return found.verdict() == Verdict::kPossible && !found.complete()
             ? "violated"
             : kNames[static_cast<int>(found.verdict())];
}

// Without the edges that follow from others; those of a graph with a cycle as they are.
std::vector<Edge> reduced(uint32_t nodes, std::vector<Edge> edges) {
  const auto key = [](const Edge& edge) { return std::pair(edge.from, edge.to); };
  std::sort(edges.begin(), edges.end(),
            [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::erase_if(edges, [](const Edge& edge) { return edge.from == edge.to; });
  const Adjacency successors(nodes, edges);
  std::vector<uint32_t> missing(nodes, 0);
  for (const Edge& edge : edges) {
    ++missing[edge.to];
  }
  std::vector<uint32_t> sorted;
  for (uint32_t node = 0; node < nodes; ++node) {
    if (missing[node] == 0) {
      sorted.push_back(node);
    }
  }
  std::vector<uint32_t> place(nodes, 0);
  for (size_t at = 0; at < sorted.size(); ++at) {
    place[sorted[at]] = static_cast<uint32_t>(at);
    for (const uint32_t next : successors.successors(sorted[at])) {
      if (--missing[next] == 0) {
        sorted.push_back(next);
      }
    }
  }
  if (sorted.size() != nodes) {
    return edges;
  }
  PartialOrder order(nodes);
  std::vector<Edge> kept;
  for (auto at = sorted.rbegin(); at != sorted.rend(); ++at) {
    const auto all = successors.successors(*at);
    std::vector<uint32_t> nearest(all.begin(), all.end());
    std::sort(nearest.begin(), nearest.end(),
              [&](uint32_t a, uint32_t b) { return place[a] < place[b]; });
    for (const uint32_t next : nearest) {
      if (!order.reaches(*at, next)) {
        order.merge(*at, next);
        kept.push_back({*at, next});
      }
    }
  }
  return kept;
}

// One window as formulas.
class Formulas {
 public:
  explicit Formulas(const Trace& trace)
      : units_(trace), locations_(trace), relation_(trace, locations_, {}) {
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      if (is(trace.events[e], kinds::kNodes)) {
        nodes_.push_back(e);
      }
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (size_t j = 0; j < nodes_.size(); ++j) {
        const Order order = i == j ? Order::kNone : relation_.between(nodes_[i], nodes_[j]);
        if (order == Order::kBefore) {
          directed_.push_back({units_.of_event(nodes_[i]), units_.of_event(nodes_[j])});
        } else if (order == Order::kUndirected && i < j) {
          open_.push_back({nodes_[i], nodes_[j]});
        }
      }
    }
    steps_ =
        SliceSteps(relation_, nodes_).order([](uint32_t, uint32_t) { return Order::kNone; }, open_);
    steps_.edges = reduced(steps_.nodes, std::move(steps_.edges));
    directed_ = reduced(units_.size(), std::move(directed_));
  }

  size_t open() const { return open_.size(); }

  // Nothing: z3 came to its limit. Adds the seconds of its search, and those with the building of
  // its formulas from edges that are at hand.
  std::optional<bool> ask(bool cyclic, unsigned milliseconds, double* searched,
                          double* seconds) const {
    const double begin = processor_seconds();
    z3::context context;
    z3::solver solver(context, "QF_IDL");
    z3::params params(context);
    params.set("timeout", milliseconds);
    solver.set(params);
    std::vector<z3::expr> chosen;
    add_execution(context, solver, &chosen);
    if (cyclic) {
      add_cycle(context, solver, chosen);
    } else {
      add_order(context, solver, chosen);
    }
    const double start = processor_seconds();
    const z3::check_result result = solver.check();
    const double end = processor_seconds();
    *searched += end - start;
    *seconds += end - begin;
    return result == z3::unknown ? std::nullopt : std::optional(result == z3::sat);
  }

 private:
  static z3::expr any(z3::context& context, const std::vector<z3::expr>& parts) {
    z3::expr_vector all(context);
    for (const z3::expr& part : parts) {
      all.push_back(part);
    }
    return z3::mk_or(all);
  }

  static std::vector<z3::expr> integers(z3::context& context, const char* prefix, size_t count) {
    std::vector<z3::expr> made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(context.int_const(fmt::format("{}{}", prefix, i).c_str()));
    }
    return made;
  }

  void add_execution(z3::context& context, z3::solver& solver,
                     std::vector<z3::expr>* chosen) const {
    const std::vector<z3::expr> time = integers(context, "t", steps_.nodes);
    const auto before = [&](const Edge& edge) { return time[edge.from] < time[edge.to]; };
    const auto one_of = [&](const StepOrder::Alternatives& alternatives) {
      std::vector<z3::expr> ways;
      for (const auto& alternative : alternatives) {
        z3::expr way = context.bool_val(true);
        for (const Edge& edge : alternative) {
          way = way && before(edge);
        }
        ways.push_back(way);
      }
      return any(context, ways);
    };
    for (const Edge& edge : steps_.edges) {
      solver.add(before(edge));
    }
    for (const EitherOrder& either : steps_.either) {
      solver.add(before(either.a) || before(either.b));
    }
    for (size_t i = 0; i < open_.size(); ++i) {
      chosen->push_back(context.bool_const(fmt::format("b{}", i).c_str()));
      solver.add(z3::implies(chosen->back(), one_of(steps_.before[i])));
      solver.add(z3::implies(!chosen->back(), one_of(steps_.after[i])));
    }
  }

  void add_order(z3::context& context, z3::solver& solver,
                 const std::vector<z3::expr>& chosen) const {
    const std::vector<z3::expr> place = integers(context, "u", units_.size());
    for (const Edge& edge : directed_) {
      if (edge.from != edge.to) {
        solver.add(place[edge.from] < place[edge.to]);
      }
    }
    for (size_t i = 0; i < open_.size(); ++i) {
      const z3::expr& from = place[units_.of_event(open_[i].from)];
      const z3::expr& to = place[units_.of_event(open_[i].to)];
      solver.add(z3::implies(chosen[i], from < to));
      solver.add(z3::implies(!chosen[i], to < from));
    }
  }

  void add_cycle(z3::context& context, z3::solver& solver,
                 const std::vector<z3::expr>& chosen) const {
    std::vector<z3::expr> on_cycle;
    for (UnitId unit = 0; unit < units_.size(); ++unit) {
      on_cycle.push_back(context.bool_const(fmt::format("c{}", unit).c_str()));
    }
    std::vector<std::vector<z3::expr>> next(units_.size());
    for (const Edge& edge : directed_) {
      if (edge.from != edge.to) {
        next[edge.from].push_back(on_cycle[edge.to]);
      }
    }
    for (size_t i = 0; i < open_.size(); ++i) {
      const UnitId from = units_.of_event(open_[i].from);
      const UnitId to = units_.of_event(open_[i].to);
      next[from].push_back(chosen[i] && on_cycle[to]);
      next[to].push_back(!chosen[i] && on_cycle[from]);
    }
    for (UnitId unit = 0; unit < units_.size(); ++unit) {
      solver.add(z3::implies(on_cycle[unit], any(context, next[unit])));
    }
    solver.add(any(context, on_cycle));
  }

  UnitTable units_;
  LocationTable locations_;
  Relation relation_;
  std::vector<uint32_t> nodes_;
  std::vector<Edge> directed_;  // between units
  std::vector<Edge> open_;      // between events
  StepOrder steps_;
};

// False: the verdicts differ.
bool compare(const std::string& shape, const Trace& trace, unsigned milliseconds,
             Summaries* summaries) {
  Result<Analysis> found;
  const auto judge = [&](uint32_t findings) {
    return best_of([&] {
      AnalysisOptions options;
      options.values = false;
      options.max_findings = findings;
      const double start = processor_seconds();
      found = analyse_exactly(trace, options);
      return processor_seconds() - start;
    });
  };
  const double witness = judge(1);
  const double mine = judge(0);

  const Formulas formulas(trace);
  if (milliseconds == 0) {
    fmt::print("{:<32} {:>6} {:>7} {:<10} {:<10} {:>9.3f}{:>9.3f}\n", shape, trace.events.size(),
               formulas.open(), name(*found), "not asked", mine * 1e3, witness * 1e3);
    std::fflush(stdout);
    return true;
  }
  double their_search = 1e9;
  std::optional<bool> cyclic;
  std::optional<bool> acyclic;
  const double theirs = best_of([&] {
    double searched = 0;
    double seconds = 0;
    cyclic = formulas.ask(true, milliseconds, &searched, &seconds);
    acyclic = formulas.ask(false, milliseconds, &searched, &seconds);
    their_search = std::min(their_search, searched);
    return seconds;
  });
  const bool limit = !cyclic || !acyclic;
  // What they have decided, both of them, must agree.
  const bool any = found->verdict() == Verdict::kPossible || found->verdict() == Verdict::kDefinite;
  const bool decided = found->verdict() != Verdict::kInconclusive;
  const bool differ = (cyclic && decided && *cyclic != any) ||
                      (acyclic && decided && found->complete() &&
                       *acyclic == (found->verdict() == Verdict::kDefinite));
  std::string verdict = "undecided";
  if (cyclic && !*cyclic) {
    verdict = "clean";
  } else if (cyclic && acyclic) {
    verdict = *acyclic ? "possible" : "definite";
  } else if (cyclic) {
    verdict = "violated";
  }
  if (!limit) {
    summaries->verdict.add(their_search / mine);
    summaries->witness.add(their_search / witness);
    summaries->formulas.add(theirs / mine);
  }
  fmt::print(
      "{:<32} {:>6} {:>7} {:<10} {:<10} {:>9.3f}{:>9.3f} {:>2}{:>10.1f}{:>9.1f} {:>2}{:>8.0f}"
      "{:>8.0f}{:>8.0f}{}\n",
      shape, trace.events.size(), formulas.open(), name(*found), verdict, mine * 1e3, witness * 1e3,
      limit ? ">" : "", their_search * 1e3, theirs * 1e3, limit ? ">" : "", their_search / mine,
      their_search / witness, theirs / mine, differ ? "  DIFFERENT" : "");
  std::fflush(stdout);
  return !differ;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned milliseconds =
      1000 * (argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 10U);
  const std::string windows = argc > 2 ? argv[2] : "";
  fmt::print("{:<32} {:>6} {:>7} {:<10} {:<10} {:>9}{:>9} {:>12}{:>9} {:>10}{:>8}{:>8}\n", "window",
             "events", "open", "search", "z3", "verdict", "witness", "z3 search", "z3 all",
             "verdict", "witness", "all");
  std::fflush(stdout);
  Summaries summaries;
  bool equal = true;
  for (const uint32_t fences : {20U, 10U, 0U}) {
    for (const uint32_t threads : {2U, 4U, 8U}) {
      for (const uint32_t steps : {40U, 80U, 160U, 400U, 1600U}) {
        const std::string window =
            fmt::format("{} threads, {}% fences, {} steps", threads, fences, steps);
        if (window.find(windows) == std::string::npos) {
          continue;
        }
        testing::RandomTraceOptions made;
        made.threads = threads;
        made.locations = 16;
        made.steps = steps;
        made.units = 30;
        made.locked = fences / 2;
        made.fences = fences;
        std::mt19937_64 random(1);
        equal =
            compare(window, testing::random_trace(random, made).trace, milliseconds, &summaries) &&
            equal;
      }
    }
  }
  for (const Summary* one : {&summaries.verdict, &summaries.witness, &summaries.formulas}) {
    one->print();
  }
  return equal ? 0 : 1;
}
