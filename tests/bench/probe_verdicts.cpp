// What checking makes of captures, as numbers: probe_verdicts serializability|robustness CAPTURE...
// One line for each: verdict, units, open undirected edges, events, mean and median width of the
// intervals of accesses in cycles, bytes. tests/bench/probe/verdicts runs it.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "monitor/input/load.h"
#include "monitor/judge/check.h"

int main(int argc, char** argv) {
  using namespace tsomon;
  const auto property = argc > 2 ? property_named(argv[1]) : std::nullopt;
  if (!property) {
    fmt::print(stderr, "usage: probe_verdicts serializability|robustness CAPTURE...\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    const auto loaded = load_trace(argv[i], InputFormat::kCapture);
    if (!loaded) {
      fmt::print(stderr, "{}: {}\n", argv[i], loaded.error().message);
      return 2;
    }
    const Trace& trace = loaded->trace;
    CheckOptions options;
    options.property = *property;
    const auto report = check_trace(trace, options);
    if (!report) {
      fmt::print(stderr, "{}: {}\n", argv[i], report.error().message);
      return 2;
    }
    std::vector<double> widths;
    double sum = 0;
    for (const Event& event : trace.events) {
      if (is(event, kinds::kAccesses) && trace.lo(event) != kTimeMin &&
          trace.hi(event) != kTimeMax) {
        widths.push_back(static_cast<double>(trace.hi(event) - trace.lo(event)));
        sum += widths.back();
      }
    }
    std::sort(widths.begin(), widths.end());
    const size_t count = std::max<size_t>(widths.size(), 1);
    fmt::print("{} {} {} {} {:.0f} {:.0f} {}\n", report->verdict_name(), report->units,
               report->open_edges, report->events, sum / static_cast<double>(count),
               widths.empty() ? 0.0 : widths[widths.size() / 2],
               std::filesystem::file_size(argv[i]));
  }
  return 0;
}
