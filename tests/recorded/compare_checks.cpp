// Judges captures as streams and as whole traces: compare_checks FILE...
//
// Exits with 1 when a verdict, a count or the number of an event differs.
#include <algorithm>
#include <cstdio>
#include <string>

#include "monitor/check/check_input.h"
#include "monitor/events/places.h"
#include "monitor/process/location_texts.h"
#include "tso/model/lifetimes.h"

namespace {

using namespace tsomon;

bool same(const CheckReport& a, const CheckReport& b) {
  return a.verdict() == b.verdict() && a.complete() == b.complete() && a.events == b.events &&
         a.threads == b.threads && a.units == b.units && a.violations() == b.violations() &&
         a.lost_events == b.lost_events && a.findings.size() == b.findings.size();
}

bool numbered(const CheckReport& report, const Trace& trace) {
  return std::all_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    for (size_t i = 0; i < finding.index.size(); ++i) {
      const Event& shown = finding.events.events[i];
      const Event& event = trace.events[finding.index[i]];
      if (shown.kind() != event.kind() || shown.thread != event.thread ||
          shown.address != event.address || shown.location != event.location) {
        return false;
      }
    }
    return true;
  });
}

int compare(const std::string& file) {
  auto loaded = load_trace(file);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().to_string().c_str());
    return 1;
  }
  symbolise(loaded->trace, loaded->modules);
  leave_out_waiting(loaded->trace);
  int different = 0;
  for (const Property property : {Property::kSerializability, Property::kScSerializability,
                                  Property::kAtomicSets, Property::kRobustness}) {
    CheckOptions options;
    options.property = property;
    options.source = loaded->basis;
    Trace judged = loaded->trace;
    if (property != Property::kAtomicSets) {
      follow_lifetimes(judged);
    }
    const auto whole = check_trace(judged, options);
    for (const unsigned jobs : {1U, 2U}) {
      options.jobs = jobs;
      const auto checked = check_input(file, InputFormat::kAuto, options);
      if (!whole || !checked || !same(*whole, checked->report) ||
          !numbered(checked->report, judged)) {
        std::fprintf(stderr, "%s: %s, %u threads: %s as a whole, %s as a stream\n", file.c_str(),
                     property_name(property), jobs, whole ? whole->verdict_name() : "error",
                     checked ? checked->report.verdict_name() : "error");
        ++different;
      }
    }
  }
  return different;
}

}  // namespace

int main(int argc, char** argv) {
  int different = 0;
  for (int i = 1; i < argc; ++i) {
    different += compare(argv[i]);
  }
  std::printf("%d files, %d differences\n", argc - 1, different);
  return different == 0 ? 0 : 1;
}
