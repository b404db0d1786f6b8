// A whole input as a Trace: what an EventSource gives, collected.
//
// Contract    Whatever is intact is loaded. What is missing or damaged is described in `warnings`,
//             one line each, and makes trace.complete false. Fails when the input cannot be read
//             (ErrorKind::kUnreadable) or is not what its format says (kMalformed); the error
//             names the input.
// Format      By content, not by name (content_format.h).
// Memory      The trace.
// Thread-safety: standard input apart, calls are independent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/capture/reader.h"
#include "monitor/events/event_source.h"
#include "monitor/events/mapped_input.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon {

struct LoadedTrace {
  std::string input;  // as in messages: the path, or "<stdin>"
  InputFormat format = InputFormat::kAuto;
  Trace trace;
  // For symbolisation.
  std::vector<capture::Module> modules;
  FileSearch files;
  std::vector<std::string> warnings;
  BasisSource basis = BasisSource::kWritten;
  bool may_cancel = false;     // units, as the input says
  bool knows_atomics = false;  // EventSource::knows_atomics(), damage(), nothing_counts()
  Damage damage = Damage::kNone;
  bool nothing_counts = false;
};

// The warning about a trace that lacks `count` events; 0: how many is not known.
std::string missing_events(uint64_t count);

// What is left of the source, its cancelled units resolved. `warnings` stay with the source.
Result<Trace> collect(EventSource& source);
// Up to so many events, or a stop: then the trace is not complete, and `notes` say why.
Result<Trace> collect(EventSource& source, uint64_t max_events, std::vector<std::string>* notes);

// `path` "-" is standard input.
Result<LoadedTrace> load_trace(const std::string& path, InputFormat format = InputFormat::kAuto,
                               const PerfOptions& perf = {}, const FileSearch& files = {});
// Of an input that has been opened: `path` as it was named.
Result<LoadedTrace> load_trace(OpenedInput opened, const std::string& path, InputFormat format,
                               const FileSearch& files = {});

}  // namespace tsomon
