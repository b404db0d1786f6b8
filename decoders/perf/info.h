// What a perf.data file says about itself: its events, its machine and what was recorded there.
//
// In a file it is known from the start, in what perf wrote into a pipe it comes with the records.
// Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decoders/perf/attribute.h"
#include "decoders/perf/tracepoints.h"

namespace tsomon::perf {

struct FileBuildId {
  uint32_t pid = 0;  // 0xFFFFFFFF: any
  std::string id;    // raw bytes
  std::string path;
};

// Wall-clock time and the clock of the records at the same moment, in nanoseconds.
struct ClockData {
  uint32_t clockid = 0;
  uint64_t wall_clock = 0;
  uint64_t record_clock = 0;
};

struct FileInfo {
  bool pipe = false;
  AttributeTable attributes;
  std::string hostname;
  std::string os_release;
  std::string perf_version;
  std::string architecture;
  std::string cpu_description;
  std::string cpu_id;  // "GenuineIntel,6,94,3": vendor, family, model, stepping
  std::vector<std::string> command_line;
  std::map<uint32_t, std::string> pmus;  // names by Attribute::type
  std::vector<FileBuildId> build_ids;
  std::unordered_map<uint64_t, Tracepoint> tracepoints;  // by Attribute::config
  std::optional<uint64_t> first_sample_time;
  std::optional<uint64_t> last_sample_time;
  std::optional<uint64_t> clock_resolution;
  std::optional<ClockData> clock_data;
  bool compressed = false;

  // Feature numbers that are there; the others of perf's features are not read.
  std::vector<uint32_t> features;
};

// False: the section is not what it should be.
bool read_feature(uint32_t feature, std::string_view bytes, FileInfo& info);

}  // namespace tsomon::perf
