#include "monitor/pt/pt_recording.h"

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
#include "decoders/pt/memory/pebs_samples.h"
#include "monitor/pt/pt_code.h"
#include "monitor/pt/pt_samples.h"
#include "monitor/pt/pt_streams.h"
#include "monitor/pt/pt_threads.h"

namespace tsomon {
namespace {

using perf::Record;
using perf::RecordType;

constexpr uint64_t kExcludeKernel = 1U << 5;  // of Attribute::flags
// Of Attribute::config: without the first the processor traces branches whatever the second says.
constexpr uint64_t kPassThrough = 1;
constexpr uint64_t kBranches = 1U << 13;

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

class Collector {
 public:
  Collector(perf::Reader reader, const FileSearch& files)
      : records_(std::move(reader)), code_(info(), files) {}

  PtRecording run() {
    Record record;
    while (records_.next(record)) {
      take(record);
      threads_.see_time(record);
    }
    read_attribute();
    finish_streams();
    finish_code();
    finish_samples();
    report();
    return std::move(out_);
  }

 private:
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
        return streams_.take_trace_data(record);
      case RecordType::kAux:
        return streams_.take_aux(record);
      case RecordType::kLost:
        threads_.take_loss(record);
        [[fallthrough]];
      case RecordType::kLostSamples:
        if (const auto lost = parse_lost(record)) {
          lost_ += lost->count;
        }
        return;
      case RecordType::kMmap:
      case RecordType::kMmap2:
        if (const auto map = parse_mmap(record); map && map->executable && is_thread(map->pid)) {
          threads_.belongs(map->tid, map->pid);
          code_.take_mmap(*map, time_of(record));
        }
        return;
      case RecordType::kComm:
        if (const auto comm = parse_comm(record); comm && is_thread(comm->pid)) {
          threads_.belongs(comm->tid, comm->pid);
          if (comm->exec) {
            code_.take_exec(comm->pid, time_of(record), enabled_on_exec());
          }
        }
        return;
      case RecordType::kFork:
        return take_fork(record);
      case RecordType::kExit:
        return threads_.take_exit(record);
      case RecordType::kItraceStart:
        return threads_.take_start(record);
      case RecordType::kSwitch:
      case RecordType::kSwitchCpuWide:
        return threads_.take_switch(record);
      case RecordType::kSample:
        return take_sample(record);
      default:
        return;
    }
  }

  void take_fork(const Record& record) {
    const auto task = parse_task(record);
    if (!task || !is_thread(task->pid) || !is_thread(task->tid)) {
      return;
    }
    threads_.belongs(task->tid, task->pid);
    if (task->pid != task->parent_pid) {
      code_.take_fork(*task, time_of(record));
    }
  }

  void take_sample(const Record& record) {
    if (record.attribute == perf::AttributeTable::kNone) {
      return;
    }
    const perf::Attribute& attribute = info().attributes[record.attribute];
    if (attribute.type == perf::kTypeTracepoint &&
        threads_.take_scheduling(info(), attribute, record)) {
      return;
    }
    const bool has_trace = (attribute.sample_type & perf::sample_type::kAux) != 0;
    if (has_trace) {
      take_trace_sample(attribute, record);
    }
    if ((attribute.sample_type & (perf::sample_type::kRegsIntr | perf::sample_type::kRegsUser)) !=
        0) {
      samples_.see(attribute, record);
    } else if (!has_trace) {
      ++unused_samples_;
    }
  }

  void take_trace_sample(const perf::Attribute& attribute, const Record& record) {
    const auto sample = parse_sample(attribute, record);
    if (!sample) {
      ++torn_samples_;
      return;
    }
    if ((sample->fields & perf::sample_type::kTid) != 0 && is_thread(sample->pid)) {
      threads_.belongs(sample->tid, sample->pid);
    }
    streams_.take_sample(*sample, value(9) != 0);
    sampled_ = sampled_ || !sample->aux.empty();
  }

  bool enabled_on_exec() const {
    const auto& all = info().attributes.all();
    return std::any_of(all.begin(), all.end(), [&](const perf::Attribute& attribute) {
      return !values_.empty() && attribute.type == values_[0] &&
             (attribute.flags & perf::attribute_flag::kEnableOnExec) != 0;
    });
  }

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
      // perf started the program, and nothing was overwritten.
      constexpr uint64_t kWhole =
          perf::attribute_flag::kInherit | perf::attribute_flag::kEnableOnExec;
      const bool snapshot = value(8) != 0;
      out_.all_threads =
          (attribute.flags & kWhole) == kWhole && !snapshot && !sampled_ && !out_.partial;
    }
    const auto& all = info().attributes.all();
    if (std::any_of(all.begin(), all.end(),
                    [](const perf::Attribute& each) { return each.aux_action != 0; })) {
      out_.all_threads = false;
      out_.problems.emplace_back("events paused the trace: what ran meanwhile is missing");
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
    const bool snapshots = value(8) != 0;
    out_.input.streams = streams_.finish(snapshots, threads_, out_.joined, out_.problems);
    if (snapshots) {
      out_.problems.emplace_back(
          "snapshots: what was before the last one of each buffer is missing");
    }
    if (out_.input.streams.empty()) {
      out_.problems.emplace_back("the recording has no trace data");
    }
    PtThreads::ToTsc to_tsc;
    if (conversion_) {
      to_tsc = [this](uint64_t time) { return tsc(time); };
    }
    out_.input.switches = threads_.finish(out_.input.streams, to_tsc, out_.problems);
  }

  void finish_code() {
    std::set<std::string> missing;
    for (PtCode::Mapping& mapping : code_.finish(threads_.running())) {
      const perf::CodeMapping& code = mapping.mapping;
      if (mapping.file.empty()) {
        missing.insert(code.path);
      } else {
        out_.input.code.push_back({mapping.file, code.file_offset, code.size, code.begin,
                                   tsc(mapping.from), mapping.process});
      }
      out_.code.push_back(std::move(mapping));
    }
    for (const std::string& path : missing) {
      out_.notes.push_back(fmt::format(
          "{}: no such file with the recorded build-id: what it executes is a gap (--sysroot)",
          path));
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

  void report() {
    const auto& damage = records_.reader().problems();
    out_.problems.insert(out_.problems.begin(), damage.begin(), damage.end());
    if (torn_samples_ != 0) {
      out_.problems.push_back(
          fmt::format("{} samples with trace data could not be read: too short for their fields",
                      torn_samples_));
    }
    if (lost_ != 0) {
      out_.problems.push_back(fmt::format("{} records were lost while recording", lost_));
    }
    if (code_.refused() != 0) {
      out_.problems.push_back(
          fmt::format("{} mappings left out: there are too many", code_.refused()));
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
  PtRecording out_;
  std::vector<uint64_t> values_;  // of AuxtraceInfo
  std::optional<perf::TimeConversion> conversion_;
  PtStreams streams_;
  PtThreads threads_;
  PtCode code_;
  PtSamples samples_;
  uint64_t lost_ = 0;
  uint64_t unused_samples_ = 0;
  uint64_t torn_samples_ = 0;
  bool sampled_ = false;  // there are samples with trace data
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

Result<PtRecording> read_pt_recording(std::string_view bytes, const FileSearch& files) {
  auto reader = perf::Reader::open(bytes);
  if (!reader) {
    return tl::unexpected<Error>(reader.error());
  }
  return Collector(std::move(*reader), files).run();
}

}  // namespace tsomon
