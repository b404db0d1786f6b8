// The walk from packet to packet against libipt's block decoder, on the same streams.
#include "decoders/pt/flow/fast_flow.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/pt/flow/flow.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;
using pt::PathEntry;

namespace {

// Instruction by instruction: blocks may end elsewhere.
struct Item {
  PathEntry::Kind kind = PathEntry::Kind::kBlock;
  bool resumed = false;
  uint64_t what = 0;  // address or value
  int64_t lo = 0;
  int64_t hi = 0;
};

std::vector<Item> items(const pt::ThreadPath& path) {
  std::vector<Item> all;
  for (const PathEntry& entry : path.entries) {
    if (entry.kind == PathEntry::Kind::kGap && !all.empty() &&
        all.back().kind == PathEntry::Kind::kGap) {
      continue;  // a wider one concerns more threads
    }
    if (entry.kind != PathEntry::Kind::kBlock) {
      all.push_back({entry.kind, false, entry.value, entry.lo, entry.hi});
      continue;
    }
    bool resumed = entry.resumed;
    for (const x86::Instruction& instruction : entry.block->instructions) {
      all.push_back({entry.kind, resumed, instruction.address, entry.lo, entry.hi});
      resumed = false;
    }
  }
  return all;
}

// Times may differ a little where the trace is switched on and off, and where blocks end; that
// they hold is checked against what was executed (flow_test.cpp).
void compare(const pt::Flow& walked, const pt::Flow& other) {
  CHECK(walked.problems == other.problems);
  CHECK(walked.gaps == other.gaps);
  CHECK(walked.of_nobody == other.of_nobody);
  CHECK(walked.instructions == other.instructions);
  CHECK(other.instructions_walked == 0);
  REQUIRE(walked.threads.size() == other.threads.size());
  for (size_t i = 0; i < walked.threads.size(); ++i) {
    CHECK(walked.threads[i].thread == other.threads[i].thread);
    const auto a = items(walked.threads[i]);
    const auto b = items(other.threads[i]);
    REQUIRE(a.size() == b.size());
    size_t wrong = 0;
    double width = 0;
    double other_width = 0;
    for (size_t j = 0; j < a.size(); ++j) {
      const bool same =
          a[j].kind == b[j].kind && a[j].what == b[j].what && a[j].resumed == b[j].resumed;
      if (!same && wrong++ < 3) {
        MESSAGE("item " << j << ": " << a[j].what << " and " << b[j].what);
      }
      if (a[j].lo != kTimeMin && a[j].hi != kTimeMax && b[j].lo != kTimeMin &&
          b[j].hi != kTimeMax) {
        width += static_cast<double>(a[j].hi - a[j].lo);
        other_width += static_cast<double>(b[j].hi - b[j].lo);
      }
    }
    CHECK(wrong == 0);
    CHECK(width <= 1.2 * other_width);
  }
}

}  // namespace

TEST_CASE("packets are followed as libipt follows them") {
  for (const std::string& name : traced_programs()) {
    for (const bool ptwrite : {false, true}) {
      const SteppedRun& run = stepped(ptwrite ? name + "_ptwrite" : name);
      for (unsigned variant = 0; variant < 6; ++variant) {
        CAPTURE(name);
        CAPTURE(ptwrite);
        CAPTURE(variant);
        EncodeOptions options;
        options.seed = variant + 1;
        options.cpus = variant < 2 ? 0 : variant % 4;
        options.cyc = variant != 1;
        options.mtc = variant != 2;
        options.compress_returns = variant != 3;
        options.long_tnt = variant != 2;
        options.ptwrite_ip = variant != 1;
        options.interrupt_one_in = variant == 4 ? 40 : 3000;
        options.kernel = variant == 5;
        const EncodedRun encoded = encode(run, options);
        pt::Input input = input_of(run, encoded);
        input.kernel = options.kernel;
        const pt::Flow flow = decode_flow(input);
        compare(flow, decode_flow(input, {.libipt = true}));
        // Where it is not certain which thread ran, libipt goes on.
        if (options.cpus < 2 || run.threads.size() == 1) {
          CHECK(flow.instructions_walked == flow.instructions);
        }
      }
    }
  }
}

TEST_CASE("what the walk gives up on is decoded by libipt, as if it had not begun") {
  for (const std::string& name : traced_programs()) {
    const SteppedRun& run = stepped(name);
    for (unsigned variant = 0; variant < 3; ++variant) {
      CAPTURE(name);
      CAPTURE(variant);
      EncodeOptions options;
      options.seed = variant + 1;
      options.cpus = variant;
      options.overflow_one_in = 4000;
      EncodedRun encoded = encode(run, options);
      pt::Input input = input_of(run, encoded);
      for (pt::TraceStream& stream : input.streams) {
        stream.parts = {stream.bytes.size() / 3, stream.bytes.size() / 2};
      }
      const pt::Flow flow = decode_flow(input);
      CHECK(flow.gaps != 0);
      compare(flow, decode_flow(input, {.libipt = true}));
    }
  }
}
