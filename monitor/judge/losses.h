// What counts of an input that lacks something: lost events, a damaged or sampled recording.
//
// Purpose     Nothing found means nothing then (Outcome::missing()); here is what a finding means.
// Damage      Anything may be missing: a fence, a lock or a value that puts in order what seems open; the
//             attempt that gets through, without which those before it do not show that they are idle
//             (tso/model/idle_iterations.h); a post that let a taker go on; and, where not only ends of
//             threads are missing, a store that a load was forwarded from. A violation counts where
//             none of these can rule it out: every order of its cycle is there in the trace, and no
//             end of one may have been idle. It is `definite` then.
// Misses      Memory that was given out again where neither its end nor its beginning is recorded:
//             accesses to two objects are then taken for accesses to one.
// Complexity  O(edges of the cycle * events) for each finding. Thread-safety: pure functions of their
//             arguments.
#pragma once

#include <string>

#include "monitor/judge/check.h"
#include "tso/model/damage.h"
#include "tso/model/trace.h"

namespace tsomon {

// Of an input that may lack events: what is definite only by values, by looking at all executions,
// or by loads that may have been forwarded from a missing store, is possible.
void distrust_losses(CheckReport* report);

// Of a damaged input: what it may rule out is left out, and a note says how much that is. `damage`: not
// kNone. `symbols`: of the input. `sets`: what was asked for; where objects are the sets nothing
// counts, as any of them may be missing.
void leave_out_what_losses_may_rule_out(Damage damage, const Symbols& symbols, SetChoice sets,
                                        CheckReport* report);

// Of a trace that shows a sample of the accesses: violations stay where every order of the cycle is
// certain, everything else is inconclusive.
// `sample`: "a sample of the accesses", say. `relation`: that it was judged by. Where a load on the cycle may have been
// forwarded from a store that was not seen it is definite if the units of the cycle are violated without any of
// their loads, too: by their locks, perhaps.
void keep_what_is_certain(const char* sample, const RelationOptions& relation, CheckReport* report);

// Others, who were not seen, may have written to memory of the input: then it is not clean. `why` is empty where
// that is not so.
void keep_nothing_clean(const std::string& why, CheckReport* report);

// Of a trace in which there are accesses and orders that nobody knows, and why: no violation counts.
void keep_nothing(const std::string& why, CheckReport* report);

}  // namespace tsomon
