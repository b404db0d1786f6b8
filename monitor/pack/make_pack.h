// A recording with all that reports on it need, in one file: `tsomon pack` (docs/formats/pack.md).
//
// Contents    The recording as it is; of each file with code that it names the file with the recorded build-id and its separate
//             debugging information, where the search finds them (module_files.h); the source files that recorded events lie
//             in, as far as reports would quote them (source_lines.h).
// Missing     Said in the report and the manifest. Without a build-id nobody knows whether a file is the recorded one: it is left out.
// Misses      Debugging information that several files share (dwz), which is said, too.
// Errors      As EventSource; kMalformed: neither a capture nor a perf.data; kUsage: does not fit (decoders/pack/archive.h); those of
//             the sink.
// Memory      That of Symboliser and the source files; files are mapped.
// Thread-safety: pure function of the file system.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/pack/archive.h"
#include "monitor/process/file_search.h"
#include "tso/support/result.h"

namespace tsomon {

struct PackOptions {
  std::string version;  // of tsomon, for the manifest
  FileSearch search;
  bool sources = true;
};

struct PackReport {
  uint64_t bytes = 0;  // of the pack
  size_t code = 0;     // files
  size_t debug = 0;
  size_t sources = 0;
  std::string build;                  // build-id of the program, of raw bytes; empty: not known
  std::vector<std::string> missing;   // files with code, and why
  std::vector<std::string> notes;     // what else is missing that reports may need
  std::vector<std::string> warnings;  // about the recording
};

// Takes the members of a pack, as they come in it.
using MemberSink =
    std::function<Result<void>(const std::string& name, std::string_view bytes, int64_t modified)>;

// `path`: a regular file. `bytes` is 0.
Result<PackReport> collect_pack(const std::string& path, const PackOptions& options,
                                const MemberSink& sink);
// The same in one file.
Result<PackReport> make_pack(const std::string& path, const PackOptions& options,
                             const pack::Sink& sink);

}  // namespace tsomon
