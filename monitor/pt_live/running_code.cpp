#include "monitor/pt_live/running_code.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/mman.h>

#include "decoders/perf/writer.h"
#include "monitor/process/target.h"

namespace tsomon::pt_live {
namespace {

using perf::Fields;
using perf::RecordType;

std::string with_trailer(RecordType type, uint16_t misc, Fields payload, pid_t pid, pid_t tid,
                         uint64_t id) {
  payload.put(pid).put(tid).put(uint64_t{0}).put(uint32_t{0}).put(uint32_t{0}).put(id);
  return record_bytes(type, misc, payload.bytes());
}

std::string mapping_record(const attach::Mapping& map, pid_t pid, uint64_t id) {
  uint32_t major = 0;
  uint32_t minor = 0;
  char colon = 0;
  std::istringstream(map.device) >> std::hex >> major >> colon >> minor;
  Fields payload;
  payload.put(pid).put(pid).put(map.begin).put(map.end - map.begin).put(map.offset);
  payload.put(major).put(minor).put(map.inode).put(uint64_t{0});
  payload.put(uint32_t{PROT_READ | PROT_EXEC}).put(uint32_t{MAP_PRIVATE});
  payload.put_text(map.path.empty() ? "//anon" : map.path);
  return with_trailer(RecordType::kMmap2, perf::misc::kUser, payload, pid, pid, id);
}

}  // namespace

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  std::filesystem::directory_iterator at(fmt::format("/proc/{}/task", pid), error);
  for (const std::filesystem::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc()) {
      threads.push_back(thread);
    }
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

std::string running_code(pid_t pid, uint64_t id) {
  std::string records;
  for (const pid_t thread : threads_of(pid)) {
    std::string name;
    std::ifstream comm(fmt::format("/proc/{}/task/{}/comm", pid, thread));
    if (std::getline(comm, name)) {
      Fields payload;
      payload.put(pid).put(thread).put_text(name);
      records += with_trailer(RecordType::kComm, 0, payload, pid, thread, id);
    }
  }
  if (const auto mappings = attach::read_mappings(pid)) {
    for (const attach::Mapping& map : *mappings) {
      if (map.executable) {
        records += mapping_record(map, pid, id);
      }
    }
  }
  return records;
}

}  // namespace tsomon::pt_live
