// Intel PT in a perf.data as a trace: monitor/pt/pt_recording.h, decoders/pt and the recorded
// program's symbols put together.
//
// Units       Calls of the functions whose name matches a shell pattern, in every process and
//             module. Traces without branches (PTWRITE only) give what
//             decoders/pt/values/value_flow.h finds.
// Addresses   Every process has its own locations: the first is shown as it is, the others with
//             their number from perf::AddressSpaces::kTagShift on, as with samples. Those beyond
//             kMaxSpaces are left out: the trace is then not complete.
// Time        TSC cycles.
// Memory      As make_trace(): the whole trace.
// Errors      As perf::Reader::open(); kUsage: a pattern that no function matches.
#pragma once

#include <string_view>

#include "decoders/perf/events.h"
#include "monitor/events/address_coverage.h"
#include "monitor/events/event_source.h"

namespace tsomon {

struct PtTrace {
  perf::SampledTrace trace;
  AddressCoverage coverage;
};

Result<PtTrace> read_pt_trace(std::string_view bytes, const PerfOptions& options,
                              const FileSearch& files = {});

}  // namespace tsomon
