// perf.data, as a file and as from a pipe: whatever the bytes, reading ends, allocates no more than
// the bytes can hold, and what it gives is well formed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "decoders/perf/events.h"
#include "decoders/perf/listing.h"
#include "decoders/perf/ordered.h"
#include "decoders/perf/raw_trace.h"
#include "tso/support/result.h"

namespace {

using namespace tsomon;

constexpr uint64_t kMaxRecords = 1U << 16;  // few bytes may unpack to many

bool inside(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Whether all of it can be read in reasonable time.
bool list(std::string_view bytes) {
  auto reader = perf::Reader::open(bytes);
  if (!reader) {
    TSOMON_CHECK(!reader.error().message.empty(), "an error without a message");
    return false;
  }
  perf::OrderedReader records(std::move(*reader), 64);
  perf::Record record;
  std::string text;
  for (uint64_t count = 0; records.next(record); ++count) {
    if (count == kMaxRecords) {
      return false;
    }
    TSOMON_CHECK(record.own != nullptr || inside(record.payload, bytes), "a record elsewhere");
    TSOMON_CHECK(inside(record.follows, bytes), "trace data elsewhere");
    TSOMON_CHECK(record.offset < bytes.size(), "a record behind the end");
    text.clear();
    perf::append_listing(records.reader().info(), record, text);
    TSOMON_CHECK(!text.empty() && text.back() == '\n', "a record without a line");
  }
  perf::header_listing(records.reader().info());
  return true;
}

void judge(std::string_view bytes) {
  const auto samples = perf::read_samples(bytes);
  TSOMON_CHECK(samples.has_value(), "read once, but not twice");
  const Trace& trace = samples->trace;
  TSOMON_CHECK(trace.sampled, "a sample that says it is all");
  TSOMON_CHECK(trace.complete || !samples->problems.empty(), "a loss without a description");
  std::vector<int64_t> latest;
  std::vector<uint64_t> open;
  for (const Event& event : trace.events) {
    TSOMON_CHECK(trace.lo(event) <= trace.hi(event), "an interval ends before it begins");
    TSOMON_CHECK(event.thread < trace.symbols.threads.size(), "an unknown thread");
    latest.resize(std::max<size_t>(latest.size(), event.thread + 1), kTimeMin);
    open.resize(latest.size(), 0);
    TSOMON_CHECK(trace.lo(event) >= latest[event.thread], "a thread goes back in time");
    latest[event.thread] = trace.lo(event);
    if (event.kind() == EventKind::kUnitBegin) {
      TSOMON_CHECK(event.address < trace.symbols.labels.size(), "an unknown label");
      ++open[event.thread];
    } else if (event.kind() == EventKind::kUnitEnd) {
      TSOMON_CHECK(open[event.thread]-- > 0, "an end without a begin");
    } else if (event.kind() == EventKind::kFork) {
      TSOMON_CHECK(event.address < trace.symbols.threads.size(), "a fork of nobody");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (perf::looks_like_trace_list(bytes)) {
    const auto converted = perf::perf_data_of_list(
        bytes, [](const std::string& path) -> Result<std::string> { return path; });
    if (converted && list(*converted)) {
      judge(*converted);
    }
  } else if (list(bytes)) {
    judge(bytes);
  }
  return 0;
}
