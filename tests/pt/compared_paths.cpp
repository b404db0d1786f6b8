#include "tests/pt/compared_paths.h"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

namespace tsomon::test {

using pt::PathEntry;

namespace {

struct Executed {
  uint64_t ip = 0;
  int64_t lo = 0;
  int64_t hi = 0;
  bool gap = false;
};

std::vector<Executed> executed(const pt::ThreadPath& path) {
  std::vector<Executed> all;
  for (const PathEntry& entry : path.entries) {
    if (entry.kind == PathEntry::Kind::kGap) {
      all.push_back({0, entry.lo, entry.hi, true});
    } else if (entry.kind == PathEntry::Kind::kBlock) {
      for (const x86::Instruction& instruction : entry.block->instructions) {
        all.push_back({instruction.address, entry.lo, entry.hi, false});
      }
    }
  }
  return all;
}

std::vector<size_t> steps_of(const SteppedRun& run, uint32_t thread) {
  std::vector<size_t> steps;
  for (size_t i = 0; i < run.steps.size(); ++i) {
    if (run.steps[i].thread == thread) {
      steps.push_back(i);
    }
  }
  return steps;
}

}  // namespace

size_t compare_all(const SteppedRun& run, const pt::Flow& flow) {
  size_t wrong = 0;
  CHECK(flow.threads.size() == run.threads.size());
  for (const pt::ThreadPath& path : flow.threads) {
    const auto thread = std::find(run.threads.begin(), run.threads.end(), path.thread);
    REQUIRE(thread != run.threads.end());
    const auto steps = steps_of(run, static_cast<uint32_t>(thread - run.threads.begin()));
    const auto got = executed(path);
    CHECK(got.size() == steps.size());
    for (size_t i = 0; i < std::min(got.size(), steps.size()); ++i) {
      const auto time = static_cast<int64_t>(time_of(steps[i]));
      const bool same = got[i].ip == run.steps[steps[i]].ip && !got[i].gap;
      const bool in_time = got[i].lo <= time && time <= got[i].hi;
      if ((!same || !in_time) && wrong++ < 5) {
        MESSAGE("step " << i << ": expected " << std::hex << run.steps[steps[i]].ip << " got "
                        << got[i].ip << std::dec << " at " << time << " in " << got[i].lo << ".."
                        << got[i].hi);
      }
    }
  }
  return wrong;
}

double compare_pieces(const SteppedRun& run, const pt::Flow& flow) {
  size_t found = 0;
  for (const pt::ThreadPath& path : flow.threads) {
    const auto thread = std::find(run.threads.begin(), run.threads.end(), path.thread);
    REQUIRE(thread != run.threads.end());
    const auto steps = steps_of(run, static_cast<uint32_t>(thread - run.threads.begin()));
    std::vector<uint64_t> truth;
    truth.reserve(steps.size());
    for (const size_t step : steps) {
      truth.push_back(run.steps[step].ip);
    }
    auto from = truth.begin();
    std::vector<uint64_t> piece;
    const auto take = [&] {
      if (!piece.empty()) {
        const auto at = std::search(from, truth.end(), piece.begin(), piece.end());
        const bool executed_so = at != truth.end();
        CHECK(executed_so);
        if (executed_so) {
          from = at + static_cast<ptrdiff_t>(piece.size());
          found += piece.size();
        }
      }
      piece.clear();
    };
    for (const Executed& step : executed(path)) {
      if (step.gap) {
        take();
      } else {
        piece.push_back(step.ip);
      }
    }
    take();
  }
  return static_cast<double>(found) / static_cast<double>(run.steps.size());
}

}  // namespace tsomon::test
