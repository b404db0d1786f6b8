// A prediction is the same for any number of threads, also where its work ends before it does.
#pragma once

#include <cstdint>
#include <random>
#include <utility>

#include <doctest/doctest.h>

#include "offline/predict/query.h"
#include "offline/predict/search_outcome.h"
#include "tests/predict/small_traces.h"
#include "tso/model/trace.h"
#include "tso/support/work.h"

namespace tsomon::testing {

// predict(query, options) on random traces, with one thread and with four, with enough work and with half of it.
// same(one, four) compares what was found, and counts it.
template <typename Options, typename Predict, typename Same>
void same_for_jobs(uint32_t seed, const SmallTraceShape& shape, predict::Branches branches,
                   const Predict& predict, const Same& same) {
  std::mt19937 random(seed);
  for (const bool buffers : {false, true}) {
    const Trace trace = random_small_trace(random, shape);
    uint64_t work = 0;  // that it takes
    for (const bool enough : {true, false}) {
      const uint64_t max_work = enough ? UINT64_MAX : work / 2;
      decltype(predict(std::declval<predict::Query&>(), Options())) results[2];
      for (const unsigned jobs : {1U, 4U}) {
        WorkMeter meter({max_work, UINT64_MAX});
        const WorkScope scope(&meter);
        predict::Query query(trace, branches, {}, buffers);
        Options options;
        options.jobs = jobs;
        options.max_witness_events = 100'000;
        results[jobs / 4] = predict(query, options);
        work = meter.work();
      }
      const auto& [one, four] = results;
      CHECK(same(one, four) > (enough ? 10 : 0));
      CHECK((static_cast<const predict::SearchOutcome&>(one) == four));
      CHECK(one.ended.has_value() != enough);
    }
  }
}

}  // namespace tsomon::testing
