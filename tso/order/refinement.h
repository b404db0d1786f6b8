// What is certain about a trace beyond its event graph: a fixed point of four inferences.
//
//  - an undirected edge whose ends are connected by directed edges is directed;
//  - forwarding constraints (theory section 5.1): a forwarded load lies on the same side of a later remote store as
//    its source;
//  - values (theory section 5.3): a load that can have read one store only comes after it, and
//    every other store to the location lies before that store or after the load;
//  - locks (lock_exclusion.h): of two critical sections of a lock one is over before the other.
//
// Purpose     Turns undirected edges into directed ones for the whole trace before anything is
//             searched, and hands over as rules what only a search can use.
// Soundness   Each inference removes only orders that no execution has. Nothing is inferred from a
//             location whose values do not fit (two loads of values that nobody wrote). When the
//             values contradict each other, they are all ignored and `values_contradict` is set:
//             the recording is damaged or not of a TSO machine. `locks_contradict`: two threads
//             held a lock at once, and no lock excludes anything.
// Complexity  A few rounds of O((n + edges) * threads): inferences that lead to one another,
//             forwards or backwards in the order of the trace, take one round.
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/order/reachability.h"

namespace tsomon {

// `read` reads `write`, or a store of its own thread that is ordered like `write`, or releases the
// lock that `write` acquired. For the conflicting `other`: write < other implies read < other, and
// other < read implies other < write.
struct ReadsFrom {
  uint32_t read = 0;
  uint32_t write = 0;
  uint32_t other = 0;
};

struct Inference {
  std::vector<Edge> directed;    // new
  std::vector<ReadsFrom> rules;  // what only a search can use
};

struct RefinedGraph {
  std::vector<Edge> undirected;  // what is still open
  std::vector<ReadsFrom> rules;  // about the open edges
  Reachability order;            // the directed edges
  bool complete = true;          // false: a bound was hit, some edges are missing
  bool values_contradict = false;
  bool locks_contradict = false;
};

struct RefinementOptions {
  bool values = true;
  uint64_t max_undirected = 20'000'000;
  std::vector<Edge> known;  // orders of undirected edges that something else has shown
};

// Nothing when the directed edges themselves have a cycle: the order that the trace states
// contradicts itself.
std::optional<RefinedGraph> refine(const Relation& relation, const AccessIndex& accesses,
                                   const RefinementOptions& options);

}  // namespace tsomon
