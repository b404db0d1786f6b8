// Traces with the kernel's code, and with code that is not known.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/pt/flow/flow.h"
#include "decoders/pt/packets/user_packets.h"
#include "tests/pt/compared_paths.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;

TEST_CASE("kernel code in the trace: nothing but it is missing") {
  for (const std::string& name : traced_programs()) {
    const SteppedRun& run = stepped(name);
    for (unsigned seed = 1; seed <= 4; ++seed) {
      CAPTURE(name);
      CAPTURE(seed);
      EncodeOptions options;
      options.seed = seed;
      options.kernel = true;
      options.cpus = seed < 3 ? 0 : seed - 1;
      options.psb_every = 400;
      options.interrupt_one_in = 200;
      const EncodedRun encoded = encode(run, options);
      pt::Input input = input_of(run, encoded);
      input.kernel = true;
      const pt::Flow flow = decode_flow(input, {.jobs = 2});
      if (options.cpus > 1 && run.threads.size() > 1) {
        CHECK(flow.gaps <= 4);
        CHECK(compare_pieces(run, flow) > 0.97);
      } else {
        CHECK(flow.gaps == 0);
        CHECK(flow.problems.empty());
        CHECK(compare_all(run, flow) == 0);
      }
      input.kernel = false;  // a gap up to the next PSB, or the next address of user code
      compare_pieces(run, decode_flow(input));
    }
  }
}

TEST_CASE("kernel code in the trace: overflows in it and outside become gaps") {
  for (const std::string& name : traced_programs()) {
    const SteppedRun& run = stepped(name);
    for (unsigned seed = 1; seed <= 3; ++seed) {
      CAPTURE(name);
      CAPTURE(seed);
      EncodeOptions options;
      options.seed = seed;
      options.kernel = true;
      options.interrupt_one_in = 200;
      options.overflow_one_in = 500;
      const EncodedRun encoded = encode(run, options);
      pt::Input input = input_of(run, encoded);
      input.kernel = true;
      const pt::Flow flow = decode_flow(input);
      CHECK(flow.gaps > 0);
      CHECK(compare_pieces(run, flow) > 0.5);
    }
  }
}

TEST_CASE("user code alone stays what it is when the kernel is taken out") {
  for (const char* name : {"queue", "signals", "indirect_calls_ptwrite"}) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    EncodeOptions options;
    options.pebs_every = 97;
    const EncodedRun encoded = encode(run, options);
    pt::Input input = input_of(run, encoded);
    input.kernel = true;
    const pt::Flow flow = decode_flow(input);
    CHECK(flow.gaps == 0);
    CHECK(compare_all(run, flow) == 0);
  }
}

TEST_CASE("taking the kernel out of any bytes ends, and stays within its bound") {
  const SteppedRun& run = stepped("queue");
  EncodeOptions options;
  options.kernel = true;
  const EncodedRun encoded = encode(run, options);
  const std::vector<uint8_t>& bytes = encoded.streams.front().bytes;
  std::string whole(bytes.begin(), bytes.end());
  whole.resize(std::min<size_t>(whole.size(), 3000));
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(pt::user_packets(whole.substr(0, i)).size() <= 5 * i);
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 1 << i % 8);
    CHECK(pt::user_packets(flipped).size() <= 5 * flipped.size());
  }
}

TEST_CASE(
    "code that is not known: decoding goes on where the trace says an address of known code") {
  const SteppedRun& run = stepped("strings");
  EncodeOptions options;
  options.psb_every = 1 << 20;  // one at the beginning
  options.compress_returns = false;
  const EncodedRun encoded = encode(run, options);
  pt::Input input = input_of(run, encoded);
  const auto is_library = [](const pt::CodeSection& code) {
    return code.file.find("libc.so") != std::string::npos;
  };
  size_t known = 0;
  for (const Step& step : run.steps) {
    known += std::any_of(input.code.begin(), input.code.end(), [&](const pt::CodeSection& code) {
      return !is_library(code) && step.ip - code.address < code.size;
    });
  }
  input.code.erase(std::remove_if(input.code.begin(), input.code.end(), is_library),
                   input.code.end());
  const pt::Flow flow = decode_flow(input);
  CHECK(flow.gaps > 10);
  const double found = compare_pieces(run, flow) * static_cast<double>(run.steps.size());
  CHECK(found > 0.9 * static_cast<double>(known));
}
