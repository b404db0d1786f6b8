// The units of a component that all end fenced: is there an execution with a cycle of units, and one
// without?
//
// Source      Theory sections 4 and 6. The theory's equivalence "serializable iff robust and
//             SC-serializable" is about all traces of a program. Of one trace it holds from left to
//             right only: T0:[W(x) W(y) T1:[R(y) R(x)] T0:F] is robust, and serializable with every
//             store committed at once, but y may commit after both loads. So cycles are looked for.
// Fenced      All units of a thread are ordered then, a load is forwarded from its own unit only,
//             and an order is open only between units that overlap in time. A cycle that cannot be
//             shortened by directed edges enters the units of each thread in one slice: it needs
//             at most as many open edges as there are threads.
// Method      One clock per thread, over issues and over commits, orders the steps of all
//             executions; one per thread orders the units. Cycles are built edge by edge, from few
//             to many open edges, never further from their start than the open edges left can bring
//             back. Open edges fit together iff the order of the steps with them has no cycle,
//             which their ends decide. Without a cycle of directed edges, an execution without any
//             is one that follows an order of the units.
// Complexity  Polynomial for a fixed number of threads t: O((n + edges) * t) for the orders, O(u^t)
//             at worst for u open edges, in practice u times those of the units that overlap.
//             Memory 16 * t bytes an event, and t * 4 * t a unit. No limit to the number of events.
// Exact       The same answers as the search where it gives any. kUnknown when
//             OrientationBounds::max_work or max_bytes is used up, when no execution that was tried
//             has the recorded values, or when the units allow an order and the steps not the ones
//             that were tried.
// Thread-safety: a pure function of its arguments.
#pragma once

#include "tso/check/component_check.h"

namespace tsomon {

// For Semantics::kExact under TSO; every unit of the component ends fenced, and its loads are forwarded
// from its own stores.
OrientationResult check_fenced_component(const ComponentQuestion& question,
                                         const OrientationBounds& bounds);

}  // namespace tsomon
