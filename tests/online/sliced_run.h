// A random slice of a run, as a history cuts it out, and what happened in it.
#pragma once

#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "online/stream/history.h"
#include "tests/tso/random_trace.h"
#include "tests/tso/sequences.h"
#include "tso/support/none.h"

namespace tsomon::testing {

struct SlicedRun {
  // The run has fewer than a thousand events.
  SlicedRun(std::mt19937_64& random, const RandomTrace& happened) {
    std::vector<uint32_t> order;
    const Trace stream = in_stream_order(happened.trace, &order);
    history.add(stream, 0);
    const uint64_t first = random() % order.size();
    const uint64_t last = first + random() % (order.size() - first);
    slice = history.slice(first, last);
    REQUIRE(slice.all_stores);
    static_cast<EventBlock&>(trace) = slice.events;
    trace.symbols = happened.trace.symbols;
    trace.symbols.initial_zero = false;
    trace.pending_prefix = slice.pending_prefix;
    std::vector<uint32_t> place(order.size(), kNone);
    for (uint32_t at = 0; at < slice.index.size(); ++at) {
      place[order[slice.index[at]]] = at;
    }
    for (const Step& step : happened.execution) {
      if (place[step.event] != kNone) {
        execution.push_back({step.commit, place[step.event]});
      }
    }
  }

  EventHistory history{1000, kinds::kDrains};
  EventHistory::Slice slice;
  Trace trace;  // without what the history knows of the events before
  std::vector<Step> execution;
};

}  // namespace tsomon::testing
