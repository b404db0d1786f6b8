// One record of a perf.data file, and what stands in each kind of them.
//
// Contract    parse_*() read the payload of a record of that type; nothing when it is too short for
//             what it says it holds. Views point into the record's bytes.
// Seam        Intel PT decoding needs, in the order of time: Mmap, Comm, Task, Switch, ItraceStart,
//             Aux, TextPoke, samples; and in file order AuxtraceInfo, TimeConversion and Auxtrace
//             (Reader gives the trace data as a view).
// Thread-safety: pure functions; a Record may be read from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/perf/attribute.h"
#include "decoders/perf/format.h"

namespace tsomon::perf {

// The fields that follow the payload of every record below kFirstOfTool with sample_id_all.
struct SampleId {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t cpu = 0;
  uint64_t time = 0;
  uint64_t id = 0;
  uint64_t stream_id = 0;
};

struct Record {
  RecordType type = RecordType::kSample;
  uint16_t misc = 0;
  uint32_t size = 0;         // header included, after it not
  uint64_t offset = 0;       // in the file; of what was compressed that of the compressed record
  std::string_view payload;  // after the header, with the trailer
  std::string_view follows;  // of kAuxtrace and kHeaderTracingData: the data after the record
  uint32_t attribute = AttributeTable::kNone;
  uint64_t sample_fields = 0;       // sample_type bits that the record has: its own or a trailer's
  SampleId sample_id;               // as far as sample_fields says
  std::shared_ptr<const void> own;  // keeps the bytes alive when they are not the file's

  bool has_time() const { return (sample_fields & sample_type::kTime) != 0; }
  bool has_cpu() const { return (sample_fields & sample_type::kCpu) != 0; }
  bool of_tool() const {
    return static_cast<uint32_t>(type) >= static_cast<uint32_t>(RecordType::kFirstOfTool);
  }
};

// Fills the fields that depend on the attribute. False when the record is too short for them.
bool attach(const AttributeTable& attributes, Record& record);

// kMmap, kMmap2
struct Mmap {
  uint32_t pid = 0;  // 0xFFFFFFFF: the kernel
  uint32_t tid = 0;
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t file_offset = 0;
  uint32_t major = 0;
  uint32_t minor = 0;
  uint64_t inode = 0;
  uint64_t inode_generation = 0;
  std::string_view build_id;  // raw bytes; then no device and inode
  uint32_t protection = 0;    // as mmap(2)
  uint32_t flags = 0;         // as mmap(2)
  bool executable = false;
  std::string_view path;
};
std::optional<Mmap> parse_mmap(const Record& record);

struct Comm {
  uint32_t pid = 0;
  uint32_t tid = 0;
  bool exec = false;
  std::string_view name;
};
std::optional<Comm> parse_comm(const Record& record);

// kFork, kExit
struct Task {
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  uint32_t tid = 0;
  uint32_t parent_tid = 0;
  uint64_t time = 0;
};
std::optional<Task> parse_task(const Record& record);

// kLost, kLostSamples
struct Lost {
  uint64_t id = 0;
  uint64_t count = 0;
};
std::optional<Lost> parse_lost(const Record& record);

// kThrottle, kUnthrottle
struct Throttle {
  uint64_t time = 0;
  uint64_t id = 0;
  uint64_t stream_id = 0;
};
std::optional<Throttle> parse_throttle(const Record& record);

// A piece of trace data became readable: [offset, offset + size) of the AUX area of its buffer.
struct Aux {
  static constexpr uint64_t kTruncated = 1;
  static constexpr uint64_t kOverwrite = 2;
  static constexpr uint64_t kPartial = 4;
  static constexpr uint64_t kCollision = 8;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t flags = 0;
};
std::optional<Aux> parse_aux(const Record& record);

struct ItraceStart {
  uint32_t pid = 0;
  uint32_t tid = 0;
};
std::optional<ItraceStart> parse_itrace_start(const Record& record);

// kSwitch, kSwitchCpuWide; the thread itself is in the record's sample_id.
struct Switch {
  bool out = false;
  bool preempted = false;
  bool cpu_wide = false;
  uint32_t other_pid = 0;  // cpu-wide: what comes next, or what was there before
  uint32_t other_tid = 0;
};
std::optional<Switch> parse_switch(const Record& record);

struct Namespaces {
  uint32_t pid = 0;
  uint32_t tid = 0;
  struct Link {
    uint64_t device = 0;
    uint64_t inode = 0;
  };
  std::vector<Link> links;
};
std::optional<Namespaces> parse_namespaces(const Record& record);

struct Ksymbol {
  uint64_t address = 0;
  uint32_t size = 0;
  uint16_t type = 0;   // 1: BPF, 2: out of line
  uint16_t flags = 0;  // 1: unregistered
  std::string_view name;
};
std::optional<Ksymbol> parse_ksymbol(const Record& record);

struct BpfEvent {
  uint16_t type = 0;
  uint16_t flags = 0;
  uint32_t id = 0;
};
std::optional<BpfEvent> parse_bpf_event(const Record& record);

struct Cgroup {
  uint64_t id = 0;
  std::string_view path;
};
std::optional<Cgroup> parse_cgroup(const Record& record);

struct TextPoke {
  uint64_t address = 0;
  std::string_view before;
  std::string_view after;
};
std::optional<TextPoke> parse_text_poke(const Record& record);

std::optional<uint64_t> parse_aux_output_hw_id(const Record& record);

// What decoding the trace data needs to know. Of Intel PT the values are, as in the perf tool's
// intel-pt.h: 0 type of the PMU, 1 to 3 shift, mult and zero of TimeConversion, 4 whether they
// hold; the bits of Attribute::config for 5 TSC packets and 6 no return compression; 7 whether
// switches were recorded, 8 snapshot mode, 9 one buffer for each CPU; bits for 10 MTC packets and
// 11 their period; 12 and 13 TSC/CTC ratio (numerator, denominator), 14 bit for CYC packets, 15 the
// highest non-turbo ratio, 16 length of the address filter that follows.
struct AuxtraceInfo {
  static constexpr uint32_t kIntelPt = 1;
  static constexpr uint32_t kIntelBts = 2;
  uint32_t type = 0;
  std::vector<uint64_t> values;
};
std::optional<AuxtraceInfo> parse_auxtrace_info(const Record& record);

// Trace data of one buffer: `data` is what Record::follows holds.
struct Auxtrace {
  uint64_t size = 0;
  uint64_t offset = 0;     // in the stream of the buffer
  uint64_t reference = 0;  // tells snapshots apart
  uint32_t buffer = 0;     // number of the buffer
  uint32_t tid = 0;        // 0xFFFFFFFF: of a CPU
  uint32_t cpu = 0;        // 0xFFFFFFFF: of a thread
  std::string_view data;   // shorter than `size` in a truncated file
};
std::optional<Auxtrace> parse_auxtrace(const Record& record);

struct AuxtraceError {
  uint32_t type = 0;
  uint32_t code = 0;
  uint32_t cpu = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t ip = 0;
  uint64_t time = 0;
  std::string_view message;
};
std::optional<AuxtraceError> parse_auxtrace_error(const Record& record);

// Between the time-stamp counter and the clock of the records, in nanoseconds:
// time = zero + (tsc * mult) >> shift.
struct TimeConversion {
  uint16_t shift = 0;
  uint32_t mult = 0;
  uint64_t zero = 0;

  // Wrap around like the clocks that they convert. Require mult != 0 (tsc_of) and shift < 64.
  uint64_t time_of(uint64_t tsc) const;
  uint64_t tsc_of(uint64_t time) const;
};
// Nothing, too, when the clocks cannot be converted.
std::optional<TimeConversion> parse_time_conversion(const Record& record);

struct IdIndexEntry {
  uint64_t id = 0;
  uint64_t buffer = 0;
  uint64_t cpu = 0;
  uint64_t tid = 0;
};
std::optional<std::vector<IdIndexEntry>> parse_id_index(const Record& record);

// kThreadMap: ids; kCpuMap: CPU numbers.
std::optional<std::vector<uint64_t>> parse_thread_map(const Record& record);
std::optional<std::vector<uint64_t>> parse_cpu_map(const Record& record);

struct Stat {
  uint64_t id = 0;
  uint32_t cpu = 0;
  uint32_t thread = 0;
  uint64_t value = 0;
  uint64_t enabled = 0;
  uint64_t running = 0;
};
std::optional<Stat> parse_stat(const Record& record);

struct StatRound {
  uint64_t type = 0;
  uint64_t time = 0;
};
std::optional<StatRound> parse_stat_round(const Record& record);

struct EventUpdate {
  static constexpr uint64_t kName = 2;
  uint64_t type = 0;
  uint64_t id = 0;
  std::string_view data;  // of kName the name
};
std::optional<EventUpdate> parse_event_update(const Record& record);

// kHeaderBuildId, and the entries of Feature::kBuildId
struct BuildId {
  uint16_t misc = 0;
  uint32_t pid = 0;
  std::string_view id;  // raw bytes
  std::string_view path;
};
std::optional<BuildId> parse_build_id(uint16_t misc, std::string_view payload);

}  // namespace tsomon::perf
