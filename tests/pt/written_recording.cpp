#include "tests/pt/written_recording.h"

#include <algorithm>
#include <map>

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

class Written {
 public:
  void add(RecordType type, uint16_t misc, Fields payload, int pid, int tid, uint64_t time,
           int cpu) {
    payload.put(pid).put(tid).put(time).put(cpu).put(uint32_t{0});
    bytes += record_bytes(type, misc, payload.bytes());
  }
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

}  // namespace

std::string perf_data_of(const SteppedRun& run, const EncodedRun& encoded,
                         const RecordingOptions& options) {
  perf::WrittenAttribute trace;
  trace.type = kType;
  trace.config = options.config | uint64_t{kMtcFrequency} << 14;
  trace.sample_type = kFields;
  trace.flags |= 1U << 5;  // not the kernel
  Written out;
  Fields info;
  info.put(options.trace_type).put(uint32_t{0});
  for (const uint64_t value :
       {uint64_t{kType}, kShift, kMult, kZero, uint64_t{1}, uint64_t{1} << 10, uint64_t{1} << 11,
        uint64_t{1}, uint64_t{0}, uint64_t{1}, uint64_t{1} << 9, kMtcBits,
        uint64_t{kTscRatioNumerator}, uint64_t{kTscRatioDenominator}, uint64_t{2},
        uint64_t{kNominalRatio}, uint64_t{0}}) {
    info.put(value);
  }
  out.bytes += record_bytes(RecordType::kAuxtraceInfo, 0, info.bytes());
  add_code(run, options, out);
  if (options.switches) {
    add_switches(run, encoded, options.switches_until, out);
  }
  for (uint32_t i = 0; i < encoded.streams.size(); ++i) {
    add_trace(run, encoded.streams[i], i, options, out);
  }
  return perf::file_of({trace}, out.bytes);
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
