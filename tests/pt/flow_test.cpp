// Decoded control flow against what the processor executed, step by step.
#include "decoders/pt/flow/flow.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/pt/values/ptwrite.h"
#include "decoders/x86/dataflow.h"
#include "tests/pt/compared_paths.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;
using pt::PathEntry;

TEST_CASE("the model carries registers over every step as the processor does") {
  for (const std::string& name : traced_programs()) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    REQUIRE(run.steps.size() > 5000);
    std::vector<const Step*> last(run.threads.size());
    size_t wrong = 0;
    for (const Step& step : run.steps) {
      const Step* before = last[step.thread];
      last[step.thread] = &step;
      if (before == nullptr || before->next != step.ip) {
        continue;  // a signal came between
      }
      const x86::Instruction& code = run.at(before->ip);
      const auto differs = [&](const x86::RegisterFile& carried, const Step& truth) {
        for (unsigned i = 0; i < x86::kRegisters; ++i) {
          const auto reg = static_cast<x86::Register>(i);
          if (carried.has(reg) && carried.value(reg) != truth.registers.value(reg)) {
            return true;
          }
        }
        return false;
      };
      x86::RegisterFile forward = before->registers;
      step_forward(code, forward);
      x86::RegisterFile backward = step.registers;
      step_backward(code, backward);
      if (differs(forward, step) || differs(backward, *before)) {
        ++wrong;
        if (wrong < 5) {
          MESSAGE("at " << std::hex << code.address);
        }
      }
    }
    CHECK(wrong == 0);
    CHECK(run.memory_errors == 0);
  }
  CHECK(stepped("hash_table").memory_checks > 1000);
}

TEST_CASE("decoded paths are what was executed") {
  for (const std::string& name : traced_programs()) {
    for (const bool ptwrite : {false, true}) {
      const SteppedRun& run = stepped(ptwrite ? name + "_ptwrite" : name);
      for (unsigned variant = 0; variant < 4; ++variant) {
        CAPTURE(name);
        CAPTURE(ptwrite);
        CAPTURE(variant);
        EncodeOptions options;
        options.seed = variant + 1;
        options.cpus = variant < 2 ? 0 : variant;
        options.cyc = variant != 1;
        options.mtc = variant != 2;
        options.compress_returns = variant != 3;
        options.long_tnt = variant != 2;
        options.ptwrite_ip = variant != 1;
        options.early_fup = variant == 3;
        const EncodedRun encoded = encode(run, options);
        const pt::Flow flow = decode_flow(input_of(run, encoded), {.jobs = 2});
        if (options.cpus > 1 && run.threads.size() > 1) {
          // Now and then a switch falls between two times.
          CHECK(flow.gaps <= 4);
          CHECK(compare_pieces(run, flow) > 0.97);
          continue;
        }
        CHECK(flow.gaps == 0);
        CHECK(flow.problems.empty());
        CHECK(compare_all(run, flow) == 0);
      }
    }
  }
}

TEST_CASE("PTWRITE values belong to their instructions") {
  const SteppedRun& run = stepped("pointer_chasing_ptwrite");
  const EncodedRun encoded = encode(run);
  const pt::Flow flow = decode_flow(input_of(run, encoded));
  size_t step = 0;
  size_t values = 0;
  REQUIRE(flow.threads.size() == 1);
  for (const PathEntry& entry : flow.threads[0].entries) {
    if (entry.kind == PathEntry::Kind::kBlock) {
      step += entry.block->instructions.size();
    } else if (entry.kind == PathEntry::Kind::kValue) {
      const Step& written = run.steps[step - 1];
      const x86::Instruction& code = run.at(written.ip);
      REQUIRE(code.ptwrite);
      CHECK(entry.value == written.registers.value(code.source.reg));
      ++values;
    }
  }
  CHECK(values > 1000);
}

TEST_CASE("values at packet level are those of the control flow") {
  for (const std::string& name : traced_programs()) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name + "_ptwrite");
    for (const bool cyc : {false, true}) {
      EncodeOptions options;
      options.cyc = cyc;
      options.ptwrite_ip = cyc;
      const EncodedRun encoded = encode(run, options);
      const pt::Input input = input_of(run, encoded);
      for (size_t i = 0; i < input.streams.size(); ++i) {
        pt::PtwriteReader reader(input.streams[i].bytes, input.clock);
        std::vector<pt::PtwriteValue> values;
        size_t step = 0;
        const std::vector<size_t>& steps = encoded.streams[i].steps;
        size_t wrong = 0;
        const auto to_write = [&] {
          while (step < steps.size() && !run.at(run.steps[steps[step]].ip).ptwrite) {
            ++step;
          }
        };
        while (reader.next(values)) {
          for (const pt::PtwriteValue& value : values) {
            to_write();
            REQUIRE(step < steps.size());
            const Step& truth = run.steps[steps[step]];
            const auto time = static_cast<int64_t>(time_of(steps[step]));
            const x86::Register reg = run.at(truth.ip).source.reg;
            const uint64_t mask = value.size == 8 ? ~uint64_t{0} : 0xFFFFFFFFU;
            wrong += value.value != (truth.registers.value(reg) & mask) || value.lo > time ||
                             value.hi < time || (cyc && value.ip != truth.ip) || value.gap
                         ? 1
                         : 0;
            ++step;
          }
        }
        to_write();
        CHECK(step == steps.size());
        CHECK(wrong == 0);
        CHECK(!reader.lost());
      }
    }
  }
}

TEST_CASE("overflows become gaps, the rest is right") {
  for (const std::string& name : traced_programs()) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      CAPTURE(name);
      CAPTURE(seed);
      const SteppedRun& run = stepped(name);
      EncodeOptions options;
      options.seed = seed;
      options.overflow_one_in = 700;
      options.cpus = seed - 1;
      const EncodedRun encoded = encode(run, options);
      const pt::Flow flow = decode_flow(input_of(run, encoded));
      CHECK(flow.gaps > 0);
      CHECK(compare_pieces(run, flow) > 0.5);
    }
  }
}

TEST_CASE("lost bytes: what cannot be known is left out until the next PSB") {
  for (const std::string& name : traced_programs()) {
    const SteppedRun& run = stepped(name);
    for (unsigned seed = 1; seed <= 6; ++seed) {
      CAPTURE(name);
      CAPTURE(seed);
      EncodeOptions options;
      options.seed = seed;
      options.psb_every = 300;
      EncodedRun encoded = encode(run, options);
      std::vector<size_t> cuts;
      for (EncodedStream& stream : encoded.streams) {
        // Somewhere in the middle, inside packets more often than not.
        const size_t size = stream.bytes.size();
        const size_t at = size * (seed + 1) / 9;
        const size_t lost = std::min<size_t>(size - at, 37 * seed);
        stream.bytes.erase(stream.bytes.begin() + static_cast<ptrdiff_t>(at),
                           stream.bytes.begin() + static_cast<ptrdiff_t>(at + lost));
        cuts.push_back(at);
      }
      pt::Input input = input_of(run, encoded);
      for (size_t i = 0; i < input.streams.size(); ++i) {
        input.streams[i].parts = {cuts[i]};
      }
      const pt::Flow flow = decode_flow(input);
      CHECK(flow.gaps > 0);
      CHECK(compare_pieces(run, flow) > 0.15);
    }
  }
}

TEST_CASE("a FUP that processors write too early hides nothing") {
  const SteppedRun& run = stepped("recursion");
  EncodeOptions options;
  options.early_fup = true;
  options.psb_every = 100;
  const pt::Flow flow = decode_flow(input_of(run, encode(run, options)));
  CHECK(flow.gaps == 0);
  for (const std::string& problem : flow.problems) {
    FAIL_CHECK(problem);
  }
  CHECK(compare_all(run, flow) == 0);
}

TEST_CASE("32-bit code is not taken for 64-bit code") {
  const SteppedRun& run = stepped("recursion");
  EncodeOptions options;
  options.bits = 32;
  const pt::Flow flow = decode_flow(input_of(run, encode(run, options)));
  REQUIRE(flow.problems.size() == 1);
  CHECK(flow.problems[0].find("32-bit code") != std::string::npos);
  for (const pt::ThreadPath& path : flow.threads) {
    for (const pt::PathEntry& entry : path.entries) {
      CHECK(entry.kind != pt::PathEntry::Kind::kBlock);
    }
  }
}

TEST_CASE("code that is not there is a gap, not a guess") {
  const SteppedRun& run = stepped("strings");
  const EncodedRun encoded = encode(run);
  pt::Input input = input_of(run, encoded);
  // Without the C library.
  input.code.erase(std::remove_if(input.code.begin(), input.code.end(),
                                  [](const pt::CodeSection& code) {
                                    return code.file.find("libc.so") != std::string::npos;
                                  }),
                   input.code.end());
  const pt::Flow flow = decode_flow(input);
  CHECK(flow.gaps > 0);
  CHECK(!flow.problems.empty());
  compare_pieces(run, flow);
  input.code.front().file = "/nonexistent";
  CHECK(!decode_flow(input).problems.empty());
}
