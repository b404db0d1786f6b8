// Any bytes are a litmus test or an error; whatever is a test can be judged.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "decoders/litmus/judge.h"
#include "decoders/litmus/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto test = tsomon::litmus::parse_litmus(text, "fuzz");
  if (!test) {
    if (test.error().where.empty() || test.error().message.empty()) {
      std::abort();
    }
    return 0;
  }
  const auto judgement =
      tsomon::litmus::judge_litmus(*test, {.max_states = 500, .max_backward_jumps = 2});
  // Every SC execution is a TSO execution.
  if (judgement.complete() &&
      (!judgement.robust || judgement.sc.executions > judgement.tso.executions ||
       !std::includes(judgement.tso.states.begin(), judgement.tso.states.end(),
                      judgement.sc.states.begin(), judgement.sc.states.end()))) {
    std::abort();
  }
  return 0;
}
