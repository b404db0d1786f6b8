#include "monitor/pt_recording.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "decoders/perf/ordered.h"
#include "decoders/perf/reader.h"
#include "decoders/pt/pebs_samples.h"
#include "monitor/module_files.h"
#include "monitor/pt_samples.h"

namespace tsomon {
namespace {

using perf::Record;
using perf::RecordType;

constexpr uint64_t kExcludeKernel = 1U << 5;  // of Attribute::flags
// Of Attribute::config: without the first the processor traces branches whatever the second says.
constexpr uint64_t kPassThrough = 1;
constexpr uint64_t kBranches = 1U << 13;
// A process has fewer; damaged input may claim any number.
constexpr size_t kMostMappings = 8192;
constexpr size_t kMostSections = size_t{1} << 18;

// Value of the bits of `mask` in `config`.
uint64_t bits_of(uint64_t config, uint64_t mask) {
  return mask == 0 ? 0 : (config & mask) / (mask & (~mask + 1));
}

// "GenuineIntel,6,94,3"; all 0 when it is something else.
pt::Processor processor_of(std::string_view cpu_id) {
  constexpr std::string_view kVendor = "GenuineIntel";
  if (!cpu_id.starts_with(kVendor)) {
    return {};
  }
  const char* at = cpu_id.data() + kVendor.size();
  const char* const end = cpu_id.data() + cpu_id.size();
  std::array<uint8_t, 3> numbers{};
  for (uint8_t& number : numbers) {
    if (at == end || *at != ',') {
      return {};
    }
    const auto read = std::from_chars(at + 1, end, number);
    if (read.ec != std::errc()) {
      return {};
    }
    at = read.ptr;
  }
  return {numbers[0], numbers[1], numbers[2]};
}

bool is_thread(uint32_t tid) { return tid != 0 && tid <= INT32_MAX; }

class Collector {
 public:
  Collector(perf::Reader reader, const std::string& sysroot)
      : records_(std::move(reader)), sysroot_(sysroot) {}

  PtRecording run() {
    Record record;
    while (records_.next(record)) {
      take(record);
      if (record.has_cpu() && time_of(record) != 0) {
        latest_[record.sample_id.cpu] = time_of(record);
      }
    }
    read_attribute();
    finish_streams();
    finish_switches();
    finish_code();
    finish_samples();
    report();
    return std::move(out_);
  }

 private:
  struct Piece {
    uint64_t offset = 0;
    uint64_t size = 0;  // as it was recorded
    uint64_t reference = 0;
    std::string_view data;
  };
  struct Buffer {
    uint32_t cpu = UINT32_MAX;
    uint32_t tid = UINT32_MAX;
    std::vector<Piece> pieces;
  };
  struct Loss {
    uint64_t offset = 0;  // behind the last byte before it
    std::optional<uint32_t> cpu;
    std::optional<uint32_t> tid;
  };
  struct Mapping {
    uint64_t from = 0;  // time of the records; 0: from the beginning
    perf::CodeMapping code;
    uint64_t end() const { return code.begin + code.size; }
  };
  struct Process {
    uint64_t begin = 0;     // of the program that it executes; 0: unknown
    bool forked = false;    // while it was recorded
    bool executed = false;  // exec
    std::vector<Mapping> mappings;
  };
  struct Scheduled {
    uint64_t time = 0;
    bool out = false;
    uint32_t pid = 0;
    uint32_t tid = 0;
  };

  const perf::FileInfo& info() const { return records_.reader().info(); }

  void take(const Record& record) {
    switch (record.type) {
      case RecordType::kAuxtraceInfo:
        if (auto values = parse_auxtrace_info(record)) {
          values_ = std::move(values->values);
        }
        return;
      case RecordType::kTimeConv:
        conversion_ = parse_time_conversion(record);
        return;
      case RecordType::kAuxtrace:
        return take_trace_data(record);
      case RecordType::kAux:
        return take_aux(record);
      case RecordType::kLost:
        forget_threads(record);
        [[fallthrough]];
      case RecordType::kLostSamples:
        if (const auto lost = parse_lost(record)) {
          lost_ += lost->count;
        }
        return;
      case RecordType::kMmap:
      case RecordType::kMmap2:
        if (const auto map = parse_mmap(record); map && map->executable && is_thread(map->pid)) {
          process_of_[map->tid] = map->pid;
          add_mapping(*map, time_of(record));
        }
        return;
      case RecordType::kComm:
        if (const auto comm = parse_comm(record); comm && is_thread(comm->pid)) {
          process_of_[comm->tid] = comm->pid;
          if (comm->exec) {
            take_exec(processes_[comm->pid], time_of(record));
          }
        }
        return;
      case RecordType::kFork:
        return take_fork(record);
      case RecordType::kExit:
        return take_exit(record);
      case RecordType::kItraceStart:
        return take_start(record);
      case RecordType::kSwitch:
      case RecordType::kSwitchCpuWide:
        return take_switch(record);
      case RecordType::kSample:
        take_sample(record);
        return;
      default:
        return;
    }
  }

  static uint64_t time_of(const Record& record) {
    return record.has_time() ? record.sample_id.time : 0;
  }

  void take_sample(const Record& record) {
    if (record.attribute == perf::AttributeTable::kNone) {
      return;
    }
    const perf::Attribute& attribute = info().attributes[record.attribute];
    if (attribute.type == perf::kTypeTracepoint && take_scheduling(attribute, record)) {
      return;
    }
    if ((attribute.sample_type & (perf::sample_type::kRegsIntr | perf::sample_type::kRegsUser)) !=
        0) {
      samples_.see(attribute, record);
    } else {
      ++unused_samples_;
    }
  }

  // A sample of sched:sched_switch: what kernels before 4.3 have instead of SWITCH records.
  bool take_scheduling(const perf::Attribute& attribute, const Record& record) {
    const auto point = info().tracepoints.find(attribute.config);
    if (point == info().tracepoints.end() || !point->second.next_thread || !record.has_cpu()) {
      return false;
    }
    const auto sample = parse_sample(attribute, record);
    const size_t at = *point->second.next_thread;
    uint32_t next = 0;
    if (!sample || sample->raw.size() < at + sizeof next) {
      return false;
    }
    std::memcpy(&next, sample->raw.data() + at, sizeof next);
    const perf::SampleId& before = record.sample_id;
    if (is_thread(before.tid) && is_thread(before.pid)) {
      process_of_[before.tid] = before.pid;
    }
    auto& scheduled = of_tracepoints_[before.cpu];
    scheduled.push_back({time_of(record), true, before.pid, before.tid});
    if (next != 0) {
      scheduled.push_back({time_of(record), false, 0, next});
    }
    return true;
  }

  void take_trace_data(const Record& record) {
    const auto piece = parse_auxtrace(record);
    if (!piece) {
      return;
    }
    Buffer& buffer = buffers_[piece->buffer];
    buffer.cpu = piece->cpu;
    buffer.tid = piece->tid;
    buffer.pieces.push_back({piece->offset, piece->size, piece->reference, piece->data});
  }

  void take_aux(const Record& record) {
    const auto aux = parse_aux(record);
    constexpr uint64_t kLoses = perf::Aux::kTruncated | perf::Aux::kPartial | perf::Aux::kCollision;
    if (!aux || (aux->flags & kLoses) == 0) {
      return;
    }
    Loss loss;
    loss.offset = aux->offset + aux->size;
    if (record.has_cpu()) {
      loss.cpu = record.sample_id.cpu;
    }
    if ((record.sample_fields & perf::sample_type::kTid) != 0) {
      loss.tid = record.sample_id.tid;
    }
    losses_.push_back(loss);
  }

  // ---- Code

  void take_exec(Process& process, uint64_t time) {
    process.mappings.clear();
    // A process that perf started is traced from its first exec on; there is nothing before it.
    process.begin = process.forked || process.executed || !enabled_on_exec() ? time : 0;
    process.executed = true;
  }

  bool enabled_on_exec() const {
    const auto& all = info().attributes.all();
    return std::any_of(all.begin(), all.end(), [&](const perf::Attribute& attribute) {
      return !values_.empty() && attribute.type == values_[0] &&
             (attribute.flags & perf::attribute_flag::kEnableOnExec) != 0;
    });
  }

  void take_fork(const Record& record) {
    const auto task = parse_task(record);
    if (!task || !is_thread(task->pid) || !is_thread(task->tid)) {
      return;
    }
    process_of_[task->tid] = task->pid;
    if (task->pid == task->parent_pid) {
      return;
    }
    const uint64_t time = time_of(record);
    const bool reused = processes_.count(task->pid) != 0 && time != 0;
    std::vector<Mapping> inherited = processes_[task->parent_pid].mappings;
    Process& process = processes_[task->pid];
    if (time == 0 && !process.mappings.empty()) {
      return;  // perf tells of what is running already, in any order
    }
    sections_ += inherited.size();
    if (sections_ > kMostSections) {
      ++refused_;
      return;
    }
    process.forked = time != 0;
    process.begin = reused ? time : 0;
    process.mappings = std::move(inherited);
    for (Mapping& mapping : process.mappings) {
      mapping.from = reused ? time : mapping.from;
    }
  }

  void add_mapping(const perf::Mmap& map, uint64_t time) {
    Process& process = processes_[map.pid];
    Mapping added;
    added.from = process.begin;
    added.code = {map.address, map.size, map.file_offset, std::string(map.path),
                  std::string(map.build_id)};
    if (map.size == 0 || map.address + map.size < map.address) {
      return;
    }
    if (process.mappings.size() >= kMostMappings || ++sections_ > kMostSections) {
      ++refused_;
      process.mappings.clear();  // they may no longer be what is there
      return;
    }
    const bool known = !file_of(added.code).empty();
    auto& all = process.mappings;
    for (size_t i = all.size(); i-- != 0;) {
      const Mapping& older = all[i];
      if (added.code.begin >= older.end() || older.code.begin >= added.end()) {
        continue;
      }
      const bool same =
          older.code.begin == added.code.begin && older.code.size == added.code.size &&
          older.code.file_offset == added.code.file_offset && older.code.path == added.code.path &&
          older.code.build_id == added.code.build_id;
      if (same) {
        return;
      }
      added.from = std::max(added.from, time);
      if (!known) {
        all.erase(all.begin() + static_cast<ptrdiff_t>(i));
      }
    }
    all.push_back(std::move(added));
  }

  // ---- Threads

  void schedule(const Record& record, bool out, uint32_t pid, uint32_t tid) {
    if (record.has_cpu()) {
      scheduled_[record.sample_id.cpu].push_back({time_of(record), out, pid, tid});
    }
  }

  void take_start(const Record& record) {
    const auto start = parse_itrace_start(record);
    if (!start || !is_thread(start->tid)) {
      return;
    }
    process_of_[start->tid] = start->pid;
    started_.insert(start->tid);
    if (time_of(record) != 0) {
      schedule(record, false, start->pid, start->tid);
    }
  }

  void take_switch(const Record& record) {
    const auto change = parse_switch(record);
    if (change && (record.sample_fields & perf::sample_type::kTid) != 0) {
      has_switches_ = true;
      schedule(record, change->out, record.sample_id.pid, record.sample_id.tid);
    }
  }

  // Switches may be among what was lost since the record before: nobody is known to run.
  void forget_threads(const Record& record) {
    for (auto& [cpu, scheduled] : scheduled_) {
      if (!record.has_cpu() || record.sample_id.cpu == cpu) {
        scheduled.push_back({latest_[cpu], true, 0, 0});
      }
    }
    for (auto& [cpu, scheduled] : of_tracepoints_) {
      if (!record.has_cpu() || record.sample_id.cpu == cpu) {
        scheduled.push_back({latest_[cpu], true, 0, 0});
      }
    }
  }

  void take_exit(const Record& record) {
    const auto task = parse_task(record);
    if (!task || !record.has_cpu()) {
      return;
    }
    const auto cpu = scheduled_.find(record.sample_id.cpu);
    if (cpu != scheduled_.end() && !cpu->second.back().out && cpu->second.back().tid == task->tid) {
      schedule(record, true, task->pid, task->tid);
    }
  }

  // ---- The end

  uint64_t value(size_t index) const { return index < values_.size() ? values_[index] : 0; }

  void read_attribute() {
    // The numbers stand with AuxtraceInfo.
    if (value(4) != 0 && value(2) != 0 && value(2) <= UINT32_MAX && value(1) < 64) {
      perf::TimeConversion conversion;
      conversion.shift = static_cast<uint16_t>(value(1));
      conversion.mult = static_cast<uint32_t>(value(2));
      conversion.zero = value(3);
      conversion_ = conversion;
    }
    pt::Clock& clock = out_.input.clock;
    clock.tsc_numerator = static_cast<uint32_t>(value(12));
    clock.tsc_denominator = static_cast<uint32_t>(value(13));
    clock.nominal_ratio = static_cast<uint8_t>(value(15));
    out_.input.processor = processor_of(info().cpu_id);
    out_.partial = value(16) != 0;
    bool found = false;
    for (const perf::Attribute& attribute : info().attributes.all()) {
      if (values_.empty() || attribute.type != values_[0] || found) {
        continue;
      }
      found = true;
      clock.mtc_frequency = static_cast<uint8_t>(bits_of(attribute.config, value(11)));
      out_.branches = (attribute.config & kPassThrough) == 0 || (attribute.config & kBranches) != 0;
      out_.input.kernel = out_.branches && (attribute.flags & kExcludeKernel) == 0;
    }
    if (!found) {
      out_.problems.emplace_back("no attribute of the trace's event: taken to trace branches");
    }
  }

  int64_t tsc(uint64_t time) const {
    if (time == 0 || !conversion_ || conversion_->mult == 0) {
      return kTimeMin;
    }
    const auto tsc = static_cast<int64_t>(conversion_->tsc_of(time));
    return tsc < 0 ? kTimeMin : tsc;
  }

  void finish_streams() {
    for (auto& [number, buffer] : buffers_) {
      if (value(8) != 0) {  // snapshots
        const uint64_t last = buffer.pieces.back().reference;
        const auto is_older = [last](const Piece& piece) { return piece.reference != last; };
        auto& pieces = buffer.pieces;
        pieces.erase(std::remove_if(pieces.begin(), pieces.end(), is_older), pieces.end());
      }
      add_stream(buffer);
    }
    if (value(8) != 0) {
      out_.problems.emplace_back(
          "snapshots: what was before the last one of each buffer is missing");
    }
    if (out_.input.streams.empty()) {
      out_.problems.emplace_back("the recording has no trace data");
    }
  }

  void add_stream(const Buffer& buffer) {
    pt::TraceStream stream;
    std::string joined;
    uint64_t end = buffer.pieces.front().offset;
    for (const Piece& piece : buffer.pieces) {
      if (piece.offset != end) {
        stream.parts.push_back(joined.size());
      }
      for (const Loss& loss : losses_) {
        const bool elsewhere = (loss.cpu && buffer.cpu != UINT32_MAX && *loss.cpu != buffer.cpu) ||
                               (loss.tid && buffer.cpu == UINT32_MAX && *loss.tid != buffer.tid);
        if (!elsewhere && loss.offset > piece.offset && loss.offset <= piece.offset + piece.size) {
          stream.parts.push_back(joined.size() + (loss.offset - piece.offset));
        }
      }
      joined += piece.data;
      end = piece.offset + piece.size;
      if (piece.data.size() < piece.size) {
        stream.parts.push_back(joined.size());
      }
    }
    std::sort(stream.parts.begin(), stream.parts.end());
    if (buffer.pieces.size() == 1) {
      stream.bytes = buffer.pieces.front().data;
    } else {
      out_.joined.push_back(std::move(joined));
      stream.bytes = out_.joined.back();
    }
    if (buffer.cpu != UINT32_MAX) {
      stream.cpu = static_cast<int>(buffer.cpu & INT32_MAX);
    } else {
      const auto process = process_of_.find(buffer.tid);
      stream.thread = static_cast<int>(buffer.tid & INT32_MAX);
      stream.process = process == process_of_.end() ? stream.thread
                                                    : static_cast<int>(process->second & INT32_MAX);
      running_.insert(stream.process);
    }
    out_.input.streams.push_back(std::move(stream));
  }

  void take_switches_of_tracepoints() {
    if (has_switches_ || of_tracepoints_.empty()) {
      return;
    }
    has_switches_ = true;
    scheduled_ = std::move(of_tracepoints_);
    for (auto& [cpu, scheduled] : scheduled_) {
      for (Scheduled& item : scheduled) {
        if (const auto process = process_of_.find(item.tid); process != process_of_.end()) {
          item.pid = process->second;
        }
      }
    }
  }

  void finish_switches() {
    take_switches_of_tracepoints();
    bool of_cpus = false;
    for (const pt::TraceStream& stream : out_.input.streams) {
      if (stream.cpu < 0 || stream.bytes.empty()) {
        continue;
      }
      of_cpus = true;
      if (!has_switches_) {
        assume_one_thread(stream.cpu);
      } else {
        add_switches(stream.cpu);
      }
    }
    if (of_cpus && !conversion_) {
      out_.problems.emplace_back(
          "the clocks of trace and records cannot be converted: which thread ran is not known");
      out_.input.switches.clear();
    }
    std::stable_sort(
        out_.input.switches.begin(), out_.input.switches.end(),
        [](const pt::Switch& left, const pt::Switch& right) { return left.time < right.time; });
  }

  void assume_one_thread(int cpu) {
    if (started_.size() == 1 && process_of_.size() == 1) {
      add_switch(kTimeMin, cpu, process_of_.begin()->second, *started_.begin());
    } else {
      out_.problems.push_back(
          fmt::format("CPU {}: which thread ran is not known (perf record --switch-events)", cpu));
    }
  }

  void add_switch(int64_t time, int cpu, uint32_t pid, uint32_t tid) {
    const bool thread = is_thread(tid) && is_thread(pid);
    out_.input.switches.push_back(
        {time, cpu, thread ? static_cast<int>(pid) : 0, thread ? static_cast<int>(tid) : 0});
    if (thread) {
      running_.insert(static_cast<int>(pid));
    }
  }

  void add_switches(int cpu) {
    const auto all = scheduled_.find(static_cast<uint32_t>(cpu));
    if (all == scheduled_.end()) {
      return;
    }
    const Scheduled& first = all->second.front();
    if (first.out) {
      add_switch(kTimeMin, cpu, first.pid, first.tid);
    }
    for (const Scheduled& item : all->second) {
      const bool idle = item.out;
      add_switch(tsc(item.time), cpu, idle ? 0 : item.pid, idle ? 0 : item.tid);
    }
  }

  void finish_samples() {
    if (conversion_) {
      out_.samples = samples_.finish([this](uint64_t time) { return tsc(time); });
    }
    auto of_trace = read_pebs_samples(out_.input);
    out_.samples.insert(out_.samples.end(), of_trace.samples.begin(), of_trace.samples.end());
    if (of_trace.of_nobody != 0) {
      out_.notes.push_back(fmt::format("{} samples in the trace of which it cannot be told whose",
                                       of_trace.of_nobody));
    }
  }

  const std::string& file_of(perf::CodeMapping& code) {
    if (code.build_id.empty() && !info().build_ids.empty()) {
      if (build_ids_.empty()) {
        for (const perf::FileBuildId& entry : info().build_ids) {
          build_ids_.emplace(entry.path, entry.id);
        }
      }
      if (const auto known = build_ids_.find(code.path); known != build_ids_.end()) {
        code.build_id = known->second;
      }
    }
    const auto [file, is_new] = files_.try_emplace({code.path, code.build_id});
    if (is_new) {
      file->second = find_code_file(code.path, code.build_id, sysroot_);
    }
    return file->second;
  }

  void finish_code() {
    std::set<std::string> missing;
    for (auto& [pid, process] : processes_) {
      const int id = static_cast<int>(pid);
      if (running_.count(id) == 0) {
        continue;
      }
      for (Mapping& mapping : process.mappings) {
        const std::string& file = file_of(mapping.code);
        out_.code.push_back({id, mapping.code, file});
        if (file.empty()) {
          missing.insert(mapping.code.path);
          continue;
        }
        out_.input.code.push_back({file, mapping.code.file_offset, mapping.code.size,
                                   mapping.code.begin, tsc(mapping.from), id});
      }
    }
    for (const std::string& path : missing) {
      out_.notes.push_back(fmt::format(
          "{}: no such file with the recorded build-id: what it executes is a gap (--sysroot)",
          path));
    }
  }

  void report() {
    const auto& damage = records_.reader().problems();
    out_.problems.insert(out_.problems.begin(), damage.begin(), damage.end());
    if (lost_ != 0) {
      out_.problems.push_back(fmt::format("{} records were lost while recording", lost_));
    }
    if (refused_ != 0) {
      out_.problems.push_back(fmt::format("{} mappings left out: there are too many", refused_));
    }
    if (records_.late() != 0) {
      out_.problems.push_back(
          fmt::format("{} records came out of the order of time", records_.late()));
    }
    if (out_.partial) {
      out_.notes.emplace_back("an address filter was set: a part of the code was traced");
    }
    if (const uint64_t unused = unused_samples_ + samples_.left_out(); unused != 0) {
      out_.notes.push_back(fmt::format("{} samples beside the trace are not used", unused));
    }
  }

  perf::OrderedReader records_;
  const std::string& sysroot_;
  PtRecording out_;
  std::vector<uint64_t> values_;  // of AuxtraceInfo
  std::optional<perf::TimeConversion> conversion_;
  std::map<uint32_t, Buffer> buffers_;
  std::vector<Loss> losses_;
  std::map<uint32_t, Process> processes_;
  std::map<uint32_t, uint32_t> process_of_;                    // by thread
  std::map<uint32_t, std::vector<Scheduled>> scheduled_;       // by CPU
  std::map<uint32_t, std::vector<Scheduled>> of_tracepoints_;  // ... as sched_switch tells it
  std::map<uint32_t, uint64_t> latest_;                        // time of the last record, by CPU
  std::set<uint32_t> started_;                                 // threads of ITRACE_START
  std::set<int> running_;                                      // processes that streams may show
  std::map<std::string, std::string> build_ids_;               // by path
  std::map<std::pair<std::string, std::string>, std::string> files_;  // by path and build-id
  size_t sections_ = 0;
  uint64_t refused_ = 0;
  uint64_t lost_ = 0;
  PtSamples samples_;
  uint64_t unused_samples_ = 0;
  bool has_switches_ = false;
};

}  // namespace

Result<std::optional<uint32_t>> trace_data_type(std::string_view bytes) {
  auto reader = perf::Reader::open(bytes);
  if (!reader) {
    return tl::unexpected<Error>(reader.error());
  }
  Record record;
  while (reader->next(record)) {
    if (record.type != RecordType::kAuxtraceInfo) {
      continue;
    }
    if (const auto parsed = parse_auxtrace_info(record)) {
      return std::optional(parsed->type);
    }
  }
  return std::optional<uint32_t>();
}

Result<PtRecording> read_pt_recording(std::string_view bytes, const std::string& sysroot) {
  auto reader = perf::Reader::open(bytes);
  if (!reader) {
    return tl::unexpected<Error>(reader.error());
  }
  return Collector(std::move(*reader), sysroot).run();
}

}  // namespace tsomon
