// Any bytes are a text trace or an error that names the input; what parses survives being written
// and read again, and tiny buffers give the same events.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "decoders/std/reader.h"
#include "decoders/std/writer.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tsomon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  looks_like_std(text);
  StdOptions tiny;
  tiny.buffer_bytes = 1 + size / 3;
  tiny.block_events = 3;
  const auto trace = read_std_text(text, "fuzz");
  const auto again = read_std_text(text, "fuzz", tiny);
  require(trace.has_value() == again.has_value());
  if (!trace) {
    require(trace.error().input == "fuzz" && !trace.error().message.empty());
    require(trace.error().to_string() == again.error().to_string());
    tiny.skip_malformed = true;
    const auto rest = read_std_text(text, "fuzz", tiny);
    require(!rest || !rest->complete);
    return 0;
  }
  require(write_std(*trace) == write_std(*again));
  const std::string written = write_std(*trace);
  const auto copy = read_std_text(written, "copy");
  require(copy.has_value());
  require(copy->events.size() == trace->events.size());
  require(copy->symbols.sets.size() == trace->symbols.sets.size());
  require(copy->symbols.initial_values.size() == trace->symbols.initial_values.size());
  require(copy->complete == trace->complete && copy->lost_events == trace->lost_events);
  for (size_t i = 0; i < trace->events.size(); ++i) {
    const Event& a = trace->events[i];
    const Event& b = copy->events[i];
    require(a.kind() == b.kind() && a.size == b.size);
    require(trace->lo(a) == copy->lo(b) && trace->hi(a) == copy->hi(b));
    require(trace->read_value(a) == copy->read_value(b));
    require(trace->write_value(a) == copy->write_value(b));
  }
  return 0;
}
