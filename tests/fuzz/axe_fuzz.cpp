// Any bytes are axe traces or an error; whatever is a small test has a verdict.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "decoders/axe/reader.h"
#include "offline/consistency/consistency.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto reader = tsomon::AxeReader::from_text({reinterpret_cast<const char*>(data), size}, "fuzz");
  tsomon::AxeTest test;
  while (true) {
    const auto more = reader.next(test);
    if (!more) {
      if (more.error().where.empty() || more.error().message.empty()) {
        std::abort();
      }
      return 0;
    }
    if (!*more) {
      return 0;
    }
    tsomon::ConsistencyOptions options;
    options.final_values = test.final_values;
    options.max_decisions = 100;
    options.max_bytes = size_t{16} << 20;
    const auto report = tsomon::check_consistency(test.trace, options);
    if (!report ||
        (report->complete && report->verdict == tsomon::ConsistencyVerdict::kInconclusive)) {
      std::abort();
    }
  }
}
