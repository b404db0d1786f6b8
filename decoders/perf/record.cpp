#include "decoders/perf/record.h"

#include <algorithm>
#include <array>

#include "decoders/perf/cursor.h"

namespace tsomon::perf {

const char* record_name(RecordType type) {
  static constexpr std::array<const char*, 22> kKernel = {nullptr,        "MMAP",
                                                          "LOST",         "COMM",
                                                          "EXIT",         "THROTTLE",
                                                          "UNTHROTTLE",   "FORK",
                                                          "READ",         "SAMPLE",
                                                          "MMAP2",        "AUX",
                                                          "ITRACE_START", "LOST_SAMPLES",
                                                          "SWITCH",       "SWITCH_CPU_WIDE",
                                                          "NAMESPACES",   "KSYMBOL",
                                                          "BPF_EVENT",    "CGROUP",
                                                          "TEXT_POKE",    "AUX_OUTPUT_HW_ID"};
  static constexpr std::array<const char*, 20> kTool = {
      "ATTR",      "EVENT_TYPE",    "TRACING_DATA", "BUILD_ID",       "FINISHED_ROUND",
      "ID_INDEX",  "AUXTRACE_INFO", "AUXTRACE",     "AUXTRACE_ERROR", "THREAD_MAP",
      "CPU_MAP",   "STAT_CONFIG",   "STAT",         "STAT_ROUND",     "EVENT_UPDATE",
      "TIME_CONV", "FEATURE",       "COMPRESSED",   "FINISHED_INIT",  "COMPRESSED2"};
  const auto number = static_cast<uint32_t>(type);
  constexpr auto kFirst = static_cast<uint32_t>(RecordType::kFirstOfTool);
  if (number < kKernel.size()) {
    return kKernel[number];
  }
  return number >= kFirst && number - kFirst < kTool.size() ? kTool[number - kFirst] : nullptr;
}

namespace {

constexpr uint64_t kIdentifying = sample_type::kTid | sample_type::kTime | sample_type::kId |
                                  sample_type::kStreamId | sample_type::kCpu;

uint64_t trailer_size(uint64_t fields) {
  uint64_t size = 0;
  for (const uint64_t field :
       {sample_type::kTid, sample_type::kTime, sample_type::kId, sample_type::kStreamId,
        sample_type::kCpu, sample_type::kIdentifier}) {
    size += (fields & field) != 0 ? 8 : 0;
  }
  return size;
}

bool read_trailer(const Attribute& attribute, Record& record) {
  const uint64_t fields = attribute.sample_type & (kIdentifying | sample_type::kIdentifier);
  const uint64_t size = trailer_size(fields);
  if (size > record.payload.size()) {
    return false;
  }
  Cursor in(record.payload.substr(record.payload.size() - size));
  SampleId& to = record.sample_id;
  if ((fields & sample_type::kTid) != 0) {
    to.pid = in.take<uint32_t>();
    to.tid = in.take<uint32_t>();
  }
  if ((fields & sample_type::kTime) != 0) {
    to.time = in.take<uint64_t>();
  }
  if ((fields & sample_type::kId) != 0) {
    to.id = in.take<uint64_t>();
  }
  if ((fields & sample_type::kStreamId) != 0) {
    to.stream_id = in.take<uint64_t>();
  }
  if ((fields & sample_type::kCpu) != 0) {
    to.cpu = in.take<uint32_t>();
    in.take<uint32_t>();
  }
  if ((fields & sample_type::kIdentifier) != 0) {
    to.id = in.take<uint64_t>();
  }
  record.sample_fields = fields;
  return true;
}

bool read_sample_id(const Attribute& attribute, Record& record) {
  const uint64_t fields = attribute.sample_type;
  Cursor in(record.payload);
  SampleId& to = record.sample_id;
  const auto word_of = [&](uint64_t field) {
    return (fields & field) != 0 ? in.take<uint64_t>() : 0;
  };
  to.id = word_of(sample_type::kIdentifier);
  word_of(sample_type::kIp);
  const uint64_t ids = word_of(sample_type::kTid);
  to.pid = static_cast<uint32_t>(ids);
  to.tid = static_cast<uint32_t>(ids >> 32);
  to.time = word_of(sample_type::kTime);
  word_of(sample_type::kAddress);
  if ((fields & sample_type::kId) != 0) {
    to.id = in.take<uint64_t>();
  }
  to.stream_id = word_of(sample_type::kStreamId);
  to.cpu = static_cast<uint32_t>(word_of(sample_type::kCpu));
  record.sample_fields = fields;
  return in.ok();
}

// The trailer does not belong to what the kind of record says.
Cursor body(const Record& record) {
  const bool trailer = !record.of_tool() && record.type != RecordType::kSample;
  const uint64_t size = trailer ? trailer_size(record.sample_fields) : 0;
  return Cursor(record.payload.substr(0, record.payload.size() - size));
}

template <typename T>
std::optional<T> if_whole(const Cursor& in, T value) {
  return in.ok() ? std::optional<T>(std::move(value)) : std::nullopt;
}

}  // namespace

bool attach(const AttributeTable& attributes, Record& record) {
  if (record.of_tool()) {
    return true;
  }
  record.attribute = attributes.of_record(record.type, record.payload);
  if (record.attribute == AttributeTable::kNone) {
    return record.type != RecordType::kSample;  // without attributes nobody knows its fields
  }
  const Attribute& attribute = attributes[record.attribute];
  if (record.type == RecordType::kSample) {
    return read_sample_id(attribute, record);
  }
  return (attribute.flags & attribute_flag::kSampleIdAll) == 0 || read_trailer(attribute, record);
}

std::optional<Mmap> parse_mmap(const Record& record) {
  constexpr uint32_t kExecute = 4;  // PROT_EXEC
  Cursor in = body(record);
  Mmap result;
  result.pid = in.take<uint32_t>();
  result.tid = in.take<uint32_t>();
  result.address = in.take<uint64_t>();
  result.size = in.take<uint64_t>();
  result.file_offset = in.take<uint64_t>();
  if (record.type == RecordType::kMmap2) {
    if ((record.misc & misc::kMmapBuildId) != 0) {
      const auto size = in.take<uint8_t>();
      in.take_bytes(3);
      const std::string_view bytes = in.take_bytes(20);
      result.build_id = bytes.substr(0, std::min<size_t>(size, bytes.size()));
    } else {
      result.major = in.take<uint32_t>();
      result.minor = in.take<uint32_t>();
      result.inode = in.take<uint64_t>();
      result.inode_generation = in.take<uint64_t>();
    }
    result.protection = in.take<uint32_t>();
    result.flags = in.take<uint32_t>();
    result.executable = (result.protection & kExecute) != 0;
  } else {
    result.executable = (record.misc & misc::kMmapData) == 0;
  }
  result.path = in.text();
  return if_whole(in, result);
}

std::optional<Comm> parse_comm(const Record& record) {
  Cursor in = body(record);
  Comm result;
  result.pid = in.take<uint32_t>();
  result.tid = in.take<uint32_t>();
  result.exec = (record.misc & misc::kCommExec) != 0;
  result.name = in.text();
  return if_whole(in, result);
}

std::optional<Task> parse_task(const Record& record) {
  Cursor in = body(record);
  Task result;
  result.pid = in.take<uint32_t>();
  result.parent_pid = in.take<uint32_t>();
  result.tid = in.take<uint32_t>();
  result.parent_tid = in.take<uint32_t>();
  result.time = in.take<uint64_t>();
  return if_whole(in, result);
}

std::optional<Lost> parse_lost(const Record& record) {
  Cursor in = body(record);
  Lost result;
  if (record.type == RecordType::kLost) {
    result.id = in.take<uint64_t>();
  }
  result.count = in.take<uint64_t>();
  return if_whole(in, result);
}

std::optional<Throttle> parse_throttle(const Record& record) {
  Cursor in = body(record);
  Throttle result;
  result.time = in.take<uint64_t>();
  result.id = in.take<uint64_t>();
  result.stream_id = in.take<uint64_t>();
  return if_whole(in, result);
}

std::optional<Aux> parse_aux(const Record& record) {
  Cursor in = body(record);
  Aux result;
  result.offset = in.take<uint64_t>();
  result.size = in.take<uint64_t>();
  result.flags = in.take<uint64_t>();
  return if_whole(in, result);
}

std::optional<ItraceStart> parse_itrace_start(const Record& record) {
  Cursor in = body(record);
  ItraceStart result;
  result.pid = in.take<uint32_t>();
  result.tid = in.take<uint32_t>();
  return if_whole(in, result);
}

std::optional<Switch> parse_switch(const Record& record) {
  Cursor in = body(record);
  Switch result;
  result.out = (record.misc & misc::kSwitchOut) != 0;
  result.preempted = result.out && (record.misc & misc::kSwitchOutPreempt) != 0;
  result.cpu_wide = record.type == RecordType::kSwitchCpuWide;
  if (result.cpu_wide) {
    result.other_pid = in.take<uint32_t>();
    result.other_tid = in.take<uint32_t>();
  }
  return if_whole(in, result);
}

std::optional<Namespaces> parse_namespaces(const Record& record) {
  Cursor in = body(record);
  Namespaces result;
  result.pid = in.take<uint32_t>();
  result.tid = in.take<uint32_t>();
  const auto count = in.take<uint64_t>();
  if (count > in.left() / 16) {
    return std::nullopt;
  }
  for (uint64_t i = 0; i < count; ++i) {
    const auto device = in.take<uint64_t>();
    result.links.push_back({device, in.take<uint64_t>()});
  }
  return if_whole(in, std::move(result));
}

std::optional<Ksymbol> parse_ksymbol(const Record& record) {
  Cursor in = body(record);
  Ksymbol result;
  result.address = in.take<uint64_t>();
  result.size = in.take<uint32_t>();
  result.type = in.take<uint16_t>();
  result.flags = in.take<uint16_t>();
  result.name = in.text();
  return if_whole(in, result);
}

std::optional<BpfEvent> parse_bpf_event(const Record& record) {
  Cursor in = body(record);
  BpfEvent result;
  result.type = in.take<uint16_t>();
  result.flags = in.take<uint16_t>();
  result.id = in.take<uint32_t>();
  return if_whole(in, result);
}

std::optional<Cgroup> parse_cgroup(const Record& record) {
  Cursor in = body(record);
  Cgroup result;
  result.id = in.take<uint64_t>();
  result.path = in.text();
  return if_whole(in, result);
}

std::optional<TextPoke> parse_text_poke(const Record& record) {
  Cursor in = body(record);
  TextPoke result;
  result.address = in.take<uint64_t>();
  const auto before = in.take<uint16_t>();
  const auto after = in.take<uint16_t>();
  result.before = in.take_bytes(before);
  result.after = in.take_bytes(after);
  return if_whole(in, result);
}

std::optional<uint64_t> parse_aux_output_hw_id(const Record& record) {
  Cursor in = body(record);
  const auto id = in.take<uint64_t>();
  return if_whole(in, id);
}

std::optional<AuxtraceInfo> parse_auxtrace_info(const Record& record) {
  Cursor in = body(record);
  AuxtraceInfo result;
  result.type = in.take<uint32_t>();
  in.take<uint32_t>();
  while (in.left() >= 8) {
    result.values.push_back(in.take<uint64_t>());
  }
  return if_whole(in, std::move(result));
}

std::optional<Auxtrace> parse_auxtrace(const Record& record) {
  Cursor in = body(record);
  Auxtrace result;
  result.size = in.take<uint64_t>();
  result.offset = in.take<uint64_t>();
  result.reference = in.take<uint64_t>();
  result.buffer = in.take<uint32_t>();
  result.tid = in.take<uint32_t>();
  result.cpu = in.take<uint32_t>();
  result.data = record.follows;
  return if_whole(in, result);
}

std::optional<AuxtraceError> parse_auxtrace_error(const Record& record) {
  Cursor in = body(record);
  AuxtraceError result;
  result.type = in.take<uint32_t>();
  result.code = in.take<uint32_t>();
  result.cpu = in.take<uint32_t>();
  result.pid = in.take<uint32_t>();
  result.tid = in.take<uint32_t>();
  const auto format = in.take<uint32_t>();
  result.ip = in.take<uint64_t>();
  if (format != 0) {
    result.time = in.take<uint64_t>();
  }
  result.message = in.text();
  return if_whole(in, result);
}

uint64_t TimeConversion::time_of(uint64_t tsc) const {
  // In two parts, so that the product does not overflow.
  const uint64_t high = tsc >> shift;
  const uint64_t low = tsc & ((uint64_t{1} << shift) - 1);
  return zero + high * mult + ((low * mult) >> shift);
}

uint64_t TimeConversion::tsc_of(uint64_t time) const {
  const uint64_t since = time - zero;
  const uint64_t high = since / mult;
  const uint64_t low = since % mult;
  return (high << shift) + (low << shift) / mult;
}

std::optional<TimeConversion> parse_time_conversion(const Record& record) {
  Cursor in = body(record);
  const auto shift = in.take<uint64_t>();
  const auto mult = in.take<uint64_t>();
  TimeConversion result;
  result.zero = in.take<uint64_t>();
  if (!in.ok() || shift > 32 || mult == 0 || mult > 0xFFFFFFFFU) {
    return std::nullopt;
  }
  result.shift = static_cast<uint16_t>(shift);
  result.mult = static_cast<uint32_t>(mult);
  return result;
}

std::optional<std::vector<IdIndexEntry>> parse_id_index(const Record& record) {
  Cursor in = body(record);
  const auto count = in.take<uint64_t>();
  if (count > in.left() / 32) {
    return std::nullopt;
  }
  std::vector<IdIndexEntry> result;
  for (uint64_t i = 0; i < count; ++i) {
    IdIndexEntry entry;
    entry.id = in.take<uint64_t>();
    entry.buffer = in.take<uint64_t>();
    entry.cpu = in.take<uint64_t>();
    entry.tid = in.take<uint64_t>();
    result.push_back(entry);
  }
  return if_whole(in, std::move(result));
}

std::optional<std::vector<uint64_t>> parse_thread_map(const Record& record) {
  constexpr uint64_t kEntry = 24;  // the number, and 16 bytes of its name
  Cursor in = body(record);
  const auto count = in.take<uint64_t>();
  if (count > in.left() / kEntry) {
    return std::nullopt;
  }
  std::vector<uint64_t> result;
  for (uint64_t i = 0; i < count; ++i) {
    result.push_back(in.take<uint64_t>());
    in.take_bytes(kEntry - 8);
  }
  return if_whole(in, std::move(result));
}

std::optional<std::vector<uint64_t>> parse_cpu_map(const Record& record) {
  constexpr uint16_t kList = 0;
  constexpr uint16_t kMask = 1;
  constexpr uint16_t kRange = 2;
  Cursor in = body(record);
  std::vector<uint64_t> result;
  const auto type = in.take<uint16_t>();
  if (type == kList) {
    const auto count = in.take<uint16_t>();
    for (uint16_t i = 0; i < count && in.ok(); ++i) {
      result.push_back(static_cast<uint64_t>(int64_t{in.take<int16_t>()}));  // -1: any
    }
  } else if (type == kMask) {
    const auto count = in.take<uint16_t>();
    const auto word = in.take<uint16_t>();  // bytes of each word
    if (word == 8) {
      in.take<uint32_t>();
    }
    for (uint64_t i = 0; i < count && in.ok(); ++i) {
      const uint64_t bits = word == 8 ? in.take<uint64_t>() : in.take<uint32_t>();
      for (uint64_t bit = 0; bit < 8U * (word == 8 ? 8 : 4); ++bit) {
        if ((bits >> bit & 1) != 0) {
          result.push_back(i * 8 * (word == 8 ? 8 : 4) + bit);
        }
      }
    }
  } else if (type == kRange) {
    in.take<uint8_t>();  // whether any CPU will do
    in.take<uint8_t>();
    const auto first = in.take<uint16_t>();
    const auto last = in.take<uint16_t>();
    for (uint32_t cpu = first; in.ok() && cpu <= last; ++cpu) {
      result.push_back(cpu);
    }
  } else {
    return std::nullopt;
  }
  return if_whole(in, std::move(result));
}

std::optional<Stat> parse_stat(const Record& record) {
  Cursor in = body(record);
  Stat result;
  result.id = in.take<uint64_t>();
  result.cpu = in.take<uint32_t>();
  result.thread = in.take<uint32_t>();
  result.value = in.take<uint64_t>();
  result.enabled = in.take<uint64_t>();
  result.running = in.take<uint64_t>();
  return if_whole(in, result);
}

std::optional<StatRound> parse_stat_round(const Record& record) {
  Cursor in = body(record);
  StatRound result;
  result.type = in.take<uint64_t>();
  result.time = in.take<uint64_t>();
  return if_whole(in, result);
}

std::optional<EventUpdate> parse_event_update(const Record& record) {
  Cursor in = body(record);
  EventUpdate result;
  result.type = in.take<uint64_t>();
  result.id = in.take<uint64_t>();
  result.data = result.type == EventUpdate::kName ? in.text() : in.take_bytes(in.left());
  return if_whole(in, result);
}

std::optional<BuildId> parse_build_id(uint16_t misc, std::string_view payload) {
  Cursor in(payload);
  BuildId result;
  result.misc = misc;
  result.pid = in.take<uint32_t>();
  const std::string_view bytes = in.take_bytes(24);
  if (!in.ok()) {
    return std::nullopt;
  }
  const size_t size = (misc & misc::kBuildIdSize) != 0 ? static_cast<unsigned char>(bytes[20]) : 20;
  result.id = bytes.substr(0, std::min<size_t>(size, 20));
  result.path = in.text();
  return result;
}

}  // namespace tsomon::perf
