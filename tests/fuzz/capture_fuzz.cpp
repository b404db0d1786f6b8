// Captures: whatever the bytes, reading ends, and what it gives is a well-formed trace. Every input
// is read twice: as it is, and with its checksums set right, so that the search gets behind them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "decoders/capture/reader.h"
#include "tests/fuzz/reseal.h"
#include "tso/support/result.h"

namespace {

void read(std::string_view bytes) {
  const auto capture = tsomon::capture::read_capture(bytes, uint64_t{1} << 18);
  if (!capture) {
    TSOMON_CHECK(!capture.error().message.empty(), "an error without a message");
    return;
  }
  const tsomon::Trace& trace = capture->trace;
  TSOMON_CHECK(trace.complete == capture->problems.empty(), "a loss without a description");
  for (const tsomon::Event& event : trace.events) {
    TSOMON_CHECK(trace.lo(event) <= trace.hi(event), "an interval ends before it begins");
    TSOMON_CHECK(event.thread < trace.symbols.threads.size(), "an unknown thread");
    TSOMON_CHECK(event.kind() != tsomon::EventKind::kUnitBegin ||
                     event.address < trace.symbols.labels.size(),
                 "an unknown label");
    trace.symbols.location_text(event.location);
    trace.symbols.access_text(event);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  tsomon::capture::reseal(bytes);
  read(bytes);
  return 0;
}
