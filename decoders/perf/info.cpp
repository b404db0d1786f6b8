#include "decoders/perf/info.h"

#include <utility>

#include "decoders/perf/cursor.h"
#include "decoders/perf/record.h"

namespace tsomon::perf {

namespace {

std::string take_string(Cursor& in) {
  const auto size = in.take<uint32_t>();
  return std::string(in.take_text(size));
}

bool read_string(std::string_view bytes, std::string& to) {
  Cursor in(bytes);
  to = take_string(in);
  return in.ok();
}

bool read_command_line(std::string_view bytes, FileInfo& info) {
  Cursor in(bytes);
  const auto count = in.take<uint32_t>();
  if (count > in.left() / sizeof(uint32_t)) {
    return false;
  }
  info.command_line.clear();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    info.command_line.push_back(take_string(in));
  }
  return in.ok();
}

// Names, and ids that the events' own section may lack.
bool read_event_description(std::string_view bytes, FileInfo& info) {
  Cursor in(bytes);
  const auto count = in.take<uint32_t>();
  const auto attribute_size = in.take<uint32_t>();
  for (uint32_t event = 0; event < count && in.ok(); ++event) {
    in.take_bytes(attribute_size);
    const auto id_count = in.take<uint32_t>();
    std::string name = take_string(in);
    if (!in.ok() || id_count > in.left() / 8) {
      return false;
    }
    uint32_t index = event;
    for (uint32_t i = 0; i < id_count; ++i) {
      const uint32_t found = info.attributes.of_id(in.take<uint64_t>());
      index = found == AttributeTable::kNone ? index : found;
    }
    if (index < info.attributes.all().size()) {
      info.attributes.set_name(index, std::move(name));
    }
  }
  return in.ok();
}

bool read_pmus(std::string_view bytes, FileInfo& info) {
  Cursor in(bytes);
  const auto count = in.take<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto type = in.take<uint32_t>();
    info.pmus[type] = take_string(in);
  }
  return in.ok();
}

bool read_build_ids(std::string_view bytes, FileInfo& info) {
  while (!bytes.empty()) {
    Cursor in(bytes);
    in.take<uint32_t>();  // the type
    const auto misc = in.take<uint16_t>();
    const auto size = in.take<uint16_t>();
    if (!in.ok() || size < kRecordHeaderSize || size > bytes.size()) {
      return false;
    }
    const auto entry =
        parse_build_id(misc, bytes.substr(kRecordHeaderSize, size - kRecordHeaderSize));
    if (!entry) {
      return false;
    }
    info.build_ids.push_back({entry->pid, std::string(entry->id), std::string(entry->path)});
    bytes.remove_prefix(size);
  }
  return true;
}

}  // namespace

bool read_feature(uint32_t feature, std::string_view bytes, FileInfo& info) {
  info.features.push_back(feature);
  Cursor in(bytes);
  switch (static_cast<Feature>(feature)) {
    case Feature::kTracingData:
      return read_tracing_data(bytes, info.tracepoints);
    case Feature::kBuildId:
      return read_build_ids(bytes, info);
    case Feature::kHostname:
      return read_string(bytes, info.hostname);
    case Feature::kOsRelease:
      return read_string(bytes, info.os_release);
    case Feature::kVersion:
      return read_string(bytes, info.perf_version);
    case Feature::kArch:
      return read_string(bytes, info.architecture);
    case Feature::kCpuDescription:
      return read_string(bytes, info.cpu_description);
    case Feature::kCpuId:
      return read_string(bytes, info.cpu_id);
    case Feature::kCommandLine:
      return read_command_line(bytes, info);
    case Feature::kEventDescription:
      return read_event_description(bytes, info);
    case Feature::kPmuMappings:
      return read_pmus(bytes, info);
    case Feature::kSampleTime:
      info.first_sample_time = in.take<uint64_t>();
      info.last_sample_time = in.take<uint64_t>();
      return in.ok();
    case Feature::kClockid:
      info.clock_resolution = in.take<uint64_t>();
      return in.ok();
    case Feature::kCompressed:
      info.compressed = true;
      return true;
    case Feature::kClockData: {
      ClockData data;
      in.take<uint32_t>();  // the version
      data.clockid = in.take<uint32_t>();
      data.wall_clock = in.take<uint64_t>();
      data.record_clock = in.take<uint64_t>();
      info.clock_data = data;
      return in.ok();
    }
    default:
      return true;  // nothing in it is needed
  }
}

}  // namespace tsomon::perf
