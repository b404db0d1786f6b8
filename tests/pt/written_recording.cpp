#include "tests/pt/written_recording.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tsomon::test {
namespace {

using perf::Fields;
using perf::RecordType;

constexpr uint32_t kType = 8;  // of the PMU
constexpr uint32_t kNobody = 0xFFFFFFFF;
// time = zero + (tsc * mult >> shift): half a nanosecond for each cycle.
constexpr uint64_t kShift = 10;
constexpr uint64_t kMult = 512;
constexpr uint64_t kZero = 5000;
constexpr uint64_t kMtcBits = 15U << 14;
constexpr uint64_t kFields =
    perf::sample_type::kTid | perf::sample_type::kTime | perf::sample_type::kCpu;

uint64_t record_time(int64_t tsc) { return kZero + (static_cast<uint64_t>(tsc) * kMult >> kShift); }

constexpr uint64_t kTraceId = 71;
constexpr uint64_t kSampleId = 72;
// As perf numbers them: ax, bx, cx, dx, si, di, bp, sp, ip, flags, and from 16 on r8 to r15.
constexpr uint64_t kRegisterMask = 0x3FF | 0xFFULL << 16;

class Written {
 public:
  void add(RecordType type, uint16_t misc, Fields payload, int pid, int tid, uint64_t time,
           int cpu) {
    payload.put(pid).put(tid).put(time).put(cpu).put(uint32_t{0});
    if (with_ids) {
      payload.put(kTraceId);
    }
    bytes += record_bytes(type, misc, payload.bytes());
  }
  bool with_ids = false;  // there are several events
  std::string bytes;
};

void add_code(const SteppedRun& run, const RecordingOptions& options, Written& out) {
  const int pid = run.threads[0];
  for (const MappedCode& code : run.code) {
    Fields payload;
    payload.put(pid).put(pid).put(code.address).put(code.size).put(code.offset);
    if (options.build_id.empty()) {
      payload.put(uint64_t{0}).put(uint64_t{0}).put(uint64_t{0});
    } else {
      std::string id = options.build_id;
      payload.put(static_cast<uint8_t>(id.size())).put(uint8_t{0}).put(uint16_t{0});
      id.resize(20);
      payload.put_bytes(id);
    }
    payload.put(uint32_t{5}).put(uint32_t{2});
    payload.put_text(options.path ? options.path(code.file) : code.file);
    out.add(RecordType::kMmap2, options.build_id.empty() ? 0 : perf::misc::kMmapBuildId, payload,
            pid, pid, 0, 0);
  }
}

void add_switches(const SteppedRun& run, const EncodedRun& encoded, int64_t until, Written& out) {
  std::map<int, int> running;  // by CPU
  for (const ThreadSwitch& item : encoded.switches) {
    const uint64_t time = record_time(item.time);
    if (item.time > until) {
      for (const auto& [cpu, tid] : running) {
        out.add(RecordType::kLost, 0, Fields().put(uint64_t{1}).put(uint64_t{1}), tid, tid, time,
                cpu);
      }
      return;
    }
    const int tid = run.threads[item.thread];
    if (const auto before = running.find(item.cpu); before != running.end()) {
      out.add(RecordType::kSwitch, perf::misc::kSwitchOut, Fields(), run.threads[0], before->second,
              time, item.cpu);
    }
    out.add(RecordType::kSwitch, 0, Fields(), run.threads[0], tid, time, item.cpu);
    running[item.cpu] = tid;
  }
}

constexpr uint64_t kSchedSwitch = 317;  // the tracepoint's number
constexpr uint32_t kNextPidAt = 56;

void add_tracepoints(const SteppedRun& run, const EncodedRun& encoded, Written& out) {
  std::map<int, int> running;  // by CPU
  for (const ThreadSwitch& item : encoded.switches) {
    const int next = run.threads[item.thread];
    const auto before = running.find(item.cpu);
    const int previous = before == running.end() ? 0 : before->second;
    std::string raw(kNextPidAt, '\0');
    raw.append(reinterpret_cast<const char*>(&next), sizeof next);
    raw.resize(68);  // with its size a multiple of 8
    Fields payload;
    payload.put(kSampleId).put(previous == 0 ? 0 : run.threads[0]).put(previous);
    payload.put(record_time(item.time)).put(item.cpu).put(uint32_t{0});
    payload.put(static_cast<uint32_t>(raw.size())).put_bytes(raw);
    out.bytes += record_bytes(RecordType::kSample, perf::misc::kKernel, payload.bytes());
    running[item.cpu] = next;
  }
}

// As perf copies them from tracefs.
std::string tracing_data() {
  const std::string format = fmt::format(
      "name: sched_switch\nID: {}\nformat:\n"
      "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
      "\tfield:pid_t next_pid;\toffset:{};\tsize:4;\tsigned:1;\n",
      kSchedSwitch, kNextPidAt);
  Fields data;
  const auto text = [&](std::string_view value) { data.put_bytes(value).put(uint8_t{0}); };
  data.put_bytes("\x17\x08\x44tracing");
  text("0.6");
  data.put(uint8_t{0}).put(uint8_t{8}).put(uint32_t{4096});
  text("header_page");
  data.put(uint64_t{0});
  text("header_event");
  data.put(uint64_t{0}).put(uint32_t{0}).put(uint32_t{1});
  text("sched");
  data.put(uint32_t{1}).put(uint64_t{format.size()}).put_bytes(format);
  return data.bytes();
}

void add_trace(const SteppedRun& run, const EncodedStream& stream, uint32_t number,
               const RecordingOptions& options, Written& out) {
  const int tid = stream.cpu >= 0 ? run.threads[0] : run.threads[stream.thread];
  const uint64_t base = 4096 * (number + 1);  // the buffer was in use before
  const std::string bytes(stream.bytes.begin(), stream.bytes.end());
  const size_t length = bytes.size() / options.pieces + 1;
  if (stream.cpu < 0) {
    out.add(RecordType::kItraceStart, 0, Fields().put(run.threads[0]).put(tid), run.threads[0], tid,
            0, 0);
  }
  for (size_t piece = 0; piece < options.pieces; ++piece) {
    const size_t begin = std::min(bytes.size(), piece * length);
    const std::string data = bytes.substr(begin, length);
    const uint64_t flags = options.truncated == piece + 1 ? perf::Aux::kTruncated : 0;
    out.add(RecordType::kAux, 0, Fields().put(base + begin).put(uint64_t{data.size()}).put(flags),
            run.threads[0], tid, record_time(static_cast<int64_t>(kFirstTime)),
            std::max(stream.cpu, 0));
    Fields payload;
    payload.put(uint64_t{data.size()}).put(base + begin).put(uint64_t{0}).put(number);
    payload.put(stream.cpu >= 0 ? kNobody : static_cast<uint32_t>(tid));
    payload.put(static_cast<uint32_t>(stream.cpu)).put(uint32_t{0});
    out.bytes += record_bytes(RecordType::kAuxtrace, 0, payload.bytes()) + data;
  }
}

// As the kernel copies them out of the area: filled with zeros up to a multiple of 8 bytes.
void add_trace_samples(const SteppedRun& run, const EncodedStream& stream,
                       const RecordingOptions& options, Written& out) {
  const int tid = stream.cpu >= 0 ? run.threads[0] : run.threads[stream.thread];
  const std::string bytes(stream.bytes.begin(), stream.bytes.end());
  uint64_t time = record_time(static_cast<int64_t>(kFirstTime));
  for (size_t end = 0; end != bytes.size();) {
    end = std::min(bytes.size(), end + options.aux_every);
    const size_t begin = end - std::min(end, options.aux_size);
    std::string data = bytes.substr(begin, end - begin);
    data.resize((data.size() + 7) / 8 * 8);
    Fields payload;
    payload.put(run.threads[0]).put(tid).put(++time).put(std::max(stream.cpu, 0)).put(uint32_t{0});
    payload.put(uint64_t{data.size()}).put_bytes(data);
    out.bytes += record_bytes(RecordType::kSample, perf::misc::kUser, payload.bytes());
  }
}

std::string register_values(const x86::RegisterFile& registers, uint64_t ip) {
  using x86::Register;
  Fields values;
  values.put(uint64_t{2});
  for (const Register name : {Register::kRax, Register::kRbx, Register::kRcx, Register::kRdx,
                              Register::kRsi, Register::kRdi, Register::kRbp, Register::kRsp}) {
    values.put(registers.value(name));
  }
  values.put(ip).put(registers.value(Register::kDirection) << 10);
  for (auto name = static_cast<unsigned>(Register::kR8);
       name <= static_cast<unsigned>(Register::kR15); ++name) {
    values.put(registers.values[name]);
  }
  return values.bytes();
}

void add_samples(const SteppedRun& run, const RecordingOptions& options, Written& out) {
  std::vector<size_t> before(run.threads.size(), SIZE_MAX);  // the last step of each thread
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const Step& step = run.steps[i];
    const size_t last = std::exchange(before[step.thread], i);
    if (!is_sampled(i, options.sample_every) || last == SIZE_MAX) {
      continue;
    }
    const Step& counted = run.steps[last];
    // Not where the kernel comes in between.
    if (counted.next != step.ip || run.at(counted.ip).branch == x86::Branch::kFar) {
      continue;
    }
    const uint64_t ip = options.precise ? counted.ip : step.ip;
    const uint64_t time = options.precise ? time_of(last) + 300 : time_of(i) - kSampleTime;
    Fields payload;
    payload.put(kSampleId).put(ip).put(run.threads[0]).put(run.threads[step.thread]);
    payload.put(record_time(static_cast<int64_t>(time))).put(uint64_t{0});  // CPU 0
    payload.put_bytes(register_values(step.registers, ip));
    out.bytes += record_bytes(RecordType::kSample,
                              perf::misc::kUser | (options.precise ? perf::misc::kExactIp : 0),
                              payload.bytes());
  }
}

}  // namespace

std::string perf_data_of(const SteppedRun& run, const EncodedRun& encoded,
                         const RecordingOptions& options) {
  perf::WrittenAttribute trace;
  trace.type = kType;
  trace.config = options.config | uint64_t{kMtcFrequency} << 14;
  trace.sample_type = kFields;
  trace.flags |= options.kernel ? 0 : 1U << 5;  // not the kernel
  if (options.whole) {
    trace.flags |= perf::attribute_flag::kInherit | perf::attribute_flag::kEnableOnExec;
  }
  const bool trace_samples = options.aux_size != 0;
  if (trace_samples) {
    trace.sample_type |= perf::sample_type::kAux;
  }
  Written out;
  std::vector<perf::WrittenAttribute> attributes;
  out.with_ids = options.sample_every != 0 || options.tracepoints;
  if (out.with_ids) {
    trace.sample_type |= perf::sample_type::kIdentifier;
    trace.ids = {kTraceId};
  }
  if (options.tracepoints) {
    perf::WrittenAttribute point = trace;
    point.type = perf::kTypeTracepoint;
    point.config = kSchedSwitch;
    point.sample_type |= perf::sample_type::kRaw;
    point.ids = {kSampleId};
    attributes.push_back(point);
  } else if (options.sample_every != 0) {
    perf::WrittenAttribute samples = trace;
    samples.type = perf::kTypeSoftware;
    samples.config = 0;
    samples.sample_type |= perf::sample_type::kIp | perf::sample_type::kRegsIntr;
    samples.interrupt_registers = kRegisterMask;
    samples.flags |= options.precise ? perf::attribute_flag::kPrecise : 0;
    samples.ids = {kSampleId};
    attributes.push_back(samples);
  }
  attributes.push_back(trace);
  const uint64_t per_cpu = encoded.streams.empty() || encoded.streams[0].cpu >= 0 ? 1 : 0;
  Fields info;
  info.put(options.trace_type).put(uint32_t{0});
  for (const uint64_t value :
       {uint64_t{kType}, kShift, kMult, kZero, uint64_t{1}, uint64_t{1} << 10, uint64_t{1} << 11,
        uint64_t{1}, uint64_t{options.snapshot}, per_cpu, uint64_t{1} << 9, kMtcBits,
        uint64_t{kTscRatioNumerator}, uint64_t{kTscRatioDenominator}, uint64_t{2},
        uint64_t{kNominalRatio}, uint64_t{0}}) {
    info.put(value);
  }
  out.bytes += record_bytes(RecordType::kAuxtraceInfo, 0, info.bytes());
  add_code(run, options, out);
  std::vector<perf::WrittenFeature> features;
  if (options.tracepoints) {
    add_tracepoints(run, encoded, out);
    features.push_back({static_cast<uint32_t>(perf::Feature::kTracingData), tracing_data()});
  } else if (options.switches) {
    add_switches(run, encoded, options.switches_until, out);
  }
  if (options.sample_every != 0) {
    add_samples(run, options, out);
  }
  for (uint32_t i = 0; i < encoded.streams.size(); ++i) {
    if (trace_samples) {
      add_trace_samples(run, encoded.streams[i], options, out);
    } else {
      add_trace(run, encoded.streams[i], i, options, out);
    }
  }
  return perf::file_of(attributes, out.bytes, features);
}

std::string trace_list_of(
    const SteppedRun& run, const EncodedRun& encoded,
    const std::function<void(const std::string& name, const std::string& bytes)>& write) {
  std::string list =
      fmt::format("tsomon-pt 1\nclock {} {} {}\nprocessor {} {} {} {}\n", kShift, kMult, kZero,
                  kTscRatioNumerator, kTscRatioDenominator, kMtcFrequency, kNominalRatio);
  const int pid = run.threads[0];
  for (const MappedCode& code : run.code) {
    list += fmt::format("mmap {} 0 0x{:x} {} {} {}\n", pid, code.address, code.size, code.offset,
                        code.file);
  }
  for (const ThreadSwitch& item : encoded.switches) {
    list += fmt::format("switch in {} {} {} {}\n", item.cpu, record_time(item.time), pid,
                        run.threads[item.thread]);
  }
  for (size_t i = 0; i < encoded.streams.size(); ++i) {
    const EncodedStream& stream = encoded.streams[i];
    const std::string name = fmt::format("trace{}", i);
    write(name, {stream.bytes.begin(), stream.bytes.end()});
    list += stream.cpu >= 0
                ? fmt::format("trace cpu {} {}\n", stream.cpu, name)
                : fmt::format("trace thread {} {} {}\n", pid, run.threads[stream.thread], name);
  }
  return list;
}

}  // namespace tsomon::test
