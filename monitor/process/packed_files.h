// What a pack holds (docs/formats/pack.md), unpacked: the recording, and by build-id the files that reports on it need.
//
// Purpose     Nothing of a pack gets a name on this machine: each member that is used is a temporary file without one
//             (descriptor.h), which goes with its owner, however the process ends. Where a file is needed by its name there
//             is one in /proc, for this process.
// Trust       None: names choose members and are never opened; the size is bounded (decoders/pack/archive.h); whether a file has
//             the build-id that it is filed under is seen when it is used (module_files.h).
// Sources     Lines of source files come from the pack alone: debugging information in a pack may name any file of this machine.
// Errors      As ArchiveReader; kMalformed also for a pack without a recording, and for a manifest that is none; kEnvironment when
//             there is no room for temporary files.
// Memory      That of ArchiveReader, the manifest and the source files (kMostSourceBytes); disk: what it unpacks to.
// Thread-safety: const methods may be called by several threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

namespace tsomon {

// Names of members.
inline constexpr const char* kPackManifest = "manifest.json";
inline constexpr const char* kPackRecording = "capture";
inline constexpr std::string_view kPackSources = "sources/";
// ".build-id/12/3456...": of the file with the code; with ".debug" of its separate debugging information, as debuggers look for
// it. "": without a build-id (of raw bytes), or one of a single byte.
std::string build_id_path(std::string_view build_id);

class PackedFiles {
 public:
  static constexpr uint64_t kMostManifestBytes = uint64_t{4} << 20;
  static constexpr uint64_t kMostSourceBytes = uint64_t{64} << 20;

  // Names in /proc of the files with this build-id; "" where there is none.
  std::string code(std::string_view build_id) const { return named(build_id_path(build_id)); }
  std::string debug(std::string_view build_id) const {
    return named(build_id_path(build_id) + ".debug");
  }
  // The file that was recorded with this path and without a build-id.
  std::string code_at(const std::string& path) const;
  // Never null; empty: the pack has no such file.
  std::shared_ptr<const std::string> source(const std::string& path) const;

 private:
  friend Result<struct Unpacked> unpack(std::string_view bytes);
  std::string named(const std::string& member) const;

  std::map<std::string, Descriptor> files_;  // by member
  std::map<std::string, std::string> code_;  // members by path
  std::map<std::string, std::shared_ptr<const std::string>> sources_;
};

struct Unpacked {
  Descriptor recording;  // at its begin
  std::shared_ptr<const PackedFiles> files;
};
Result<Unpacked> unpack(std::string_view bytes);

}  // namespace tsomon
