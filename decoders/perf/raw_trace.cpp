#include "decoders/perf/raw_trace.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "decoders/perf/record.h"
#include "decoders/perf/writer.h"

namespace tsomon::perf {

namespace {

constexpr std::string_view kFirstLine = "tsomon-pt 1";
constexpr uint64_t kFields = sample_type::kTid | sample_type::kTime | sample_type::kCpu;

// Of the trace event's configuration.
constexpr uint32_t kPmuType = 0xFFFF;
constexpr uint64_t kCycleBit = 1U << 1;
constexpr uint64_t kMtcBit = 1U << 9;
constexpr uint64_t kTscBit = 1U << 10;
constexpr uint64_t kNoReturnCompressionBit = 1U << 11;
constexpr uint64_t kMtcPeriodBits = 15U << 14;

struct Clock {
  uint64_t shift = 0;
  uint64_t mult = 1;
  uint64_t zero = 0;
};

struct Processor {
  uint64_t tsc_ctc_n = 0;
  uint64_t tsc_ctc_d = 0;
  uint64_t mtc_period = 0;
  uint64_t ratio = 0;
};

class Converter {
 public:
  explicit Converter(const FileReader& read_file) : read_file_(read_file) {}

  Result<std::string> run(std::string_view list) {
    while (!list.empty()) {
      const size_t end = std::min(list.find('\n'), list.size());
      rest_ = list.substr(0, end);
      list.remove_prefix(std::min(end + 1, list.size()));
      ++line_;
      if (!rest_.empty() && rest_.back() == '\r') {
        rest_.remove_suffix(1);
      }
      if (line_ > 1 && (rest_.empty() || rest_[0] == '#')) {
        continue;
      }
      if (auto done = convert_line(); !done) {
        Error error = done.error();
        if (error.where.empty() && error.input.empty()) {
          error.where = fmt::format("line {}", line_);
        }
        return tl::unexpected<Error>(std::move(error));
      }
    }
    if (line_ == 0) {
      return fail(ErrorKind::kMalformed, fmt::format("empty; expected \"{}\"", kFirstLine));
    }
    return finish();
  }

 private:
  std::string_view word() {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view taken = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return taken;
  }

  uint64_t number() {
    std::string_view digits = word();
    int base = 10;
    if (digits.substr(0, 2) == "0x") {
      digits.remove_prefix(2);
      base = 16;
    }
    uint64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
      wrong_ = true;
    }
    return value;
  }
  uint32_t id() {
    const uint64_t value = number();
    wrong_ = wrong_ || value > UINT32_MAX;
    return static_cast<uint32_t>(value);
  }

  static tl::unexpected<Error> expected(const char* what) {
    return fail(ErrorKind::kMalformed, fmt::format("expected {}", what));
  }
  Result<void> whole(const char* what) const {
    if (wrong_ || !rest_.empty()) {
      return expected(what);
    }
    return {};
  }

  void add(RecordType type, uint16_t misc, Fields payload, uint32_t pid, uint32_t tid,
           uint64_t time, uint32_t cpu) {
    payload.put(pid).put(tid).put(time).put(cpu).put(uint32_t{0});
    records_ += record_bytes(type, misc, payload.bytes());
  }

  Result<void> convert_line() {
    wrong_ = false;
    if (line_ == 1) {
      return rest_ == kFirstLine ? Result<void>() : expected("\"tsomon-pt 1\"");
    }
    const std::string_view what = word();
    if (what == "clock") {
      clock_ = Clock{number(), number(), number()};
      wrong_ = wrong_ || clock_->shift > 32 || clock_->mult == 0 || clock_->mult > UINT32_MAX;
      return whole("clock SHIFT MULT ZERO, with a shift up to 32 and a multiplier up to 2^32 - 1");
    }
    if (what == "processor") {
      processor_ = {number(), number(), number(), number()};
      return whole("processor TSC_CTC_N TSC_CTC_D MTC_PERIOD RATIO");
    }
    if (what == "trace") {
      return trace_line();
    }
    if (what == "mmap") {
      return mmap_line();
    }
    if (what == "comm" || what == "exec") {
      const uint32_t pid = id();
      const uint32_t tid = id();
      const uint64_t time = number();
      if (wrong_ || rest_.empty()) {
        return expected("PID TID TIME NAME");
      }
      add(RecordType::kComm, what == "exec" ? misc::kCommExec : 0,
          Fields().put(pid).put(tid).put_text(rest_), pid, tid, time, 0);
      return {};
    }
    if (what == "fork" || what == "exit") {
      return task_line(what == "fork");
    }
    if (what == "switch") {
      const std::string_view direction = word();
      const uint32_t cpu = id();
      const uint64_t time = number();
      const uint32_t pid = id();
      const uint32_t tid = id();
      const bool out = direction == "out";
      wrong_ = wrong_ || (!out && direction != "in");
      add(RecordType::kSwitch, out ? misc::kSwitchOut : 0, Fields(), pid, tid, time, cpu);
      return whole("switch in|out CPU TIME PID TID");
    }
    return expected("clock, processor, trace, mmap, comm, exec, fork, exit or switch");
  }

  Result<void> task_line(bool fork) {
    const uint32_t pid = id();
    const uint32_t tid = id();
    const uint32_t parent_pid = fork ? id() : pid;
    const uint32_t parent_tid = fork ? id() : tid;
    const uint64_t time = number();
    add(fork ? RecordType::kFork : RecordType::kExit, 0,
        Fields().put(pid).put(parent_pid).put(tid).put(parent_tid).put(time),
        fork ? parent_pid : pid, fork ? parent_tid : tid, time, 0);
    return whole(fork ? "fork PID TID PARENT_PID PARENT_TID TIME" : "exit PID TID TIME");
  }

  Result<void> mmap_line() {
    constexpr uint32_t kReadExecute = 5;
    const uint32_t pid = id();
    const uint64_t time = number();
    Fields payload;
    payload.put(pid).put(pid);
    payload.put(number()).put(number()).put(number());
    if (wrong_ || rest_.empty()) {
      return expected("mmap PID TIME ADDRESS SIZE OFFSET FILE");
    }
    payload.put(uint64_t{0}).put(uint64_t{0}).put(uint64_t{0});  // device and inode
    payload.put(kReadExecute).put(uint32_t{2}).put_text(rest_);
    add(RecordType::kMmap2, 0, payload, pid, pid, time, 0);
    return {};
  }

  Result<void> trace_line() {
    const std::string_view kind = word();
    const bool of_cpu = kind == "cpu";
    const uint32_t first = id();
    const uint32_t tid = of_cpu ? UINT32_MAX : id();
    if (wrong_ || rest_.empty() || (!of_cpu && kind != "thread")) {
      return expected("trace cpu CPU FILE or trace thread PID TID FILE");
    }
    auto bytes = read_file_(std::string(rest_));
    if (!bytes) {
      return tl::unexpected<Error>(bytes.error());
    }
    Fields payload;
    payload.put(uint64_t{bytes->size()}).put(uint64_t{0}).put(uint64_t{0}).put(buffers_++);
    payload.put(tid).put(of_cpu ? first : UINT32_MAX).put(uint32_t{0});
    if (!of_cpu) {
      add(RecordType::kItraceStart, 0, Fields().put(first).put(tid), first, tid, 0, 0);
    }
    traces_ += record_bytes(RecordType::kAuxtrace, 0, payload.bytes());
    traces_ += *bytes;
    return {};
  }

  std::string finish() {
    WrittenAttribute attribute;
    attribute.config = 9;  // PERF_COUNT_SW_DUMMY
    attribute.sample_type = kFields;
    attribute.flags = attribute_flag::kSampleIdAll | attribute_flag::kContextSwitch;
    WrittenAttribute trace;  // as perf would have opened it
    trace.type = kPmuType;
    trace.config = kTscBit | kMtcBit | (processor_.mtc_period & 15) << 14;
    trace.sample_type = kFields;
    std::string file = pipe_header() + attribute_record(attribute) + attribute_record(trace);
    const Clock clock = clock_.value_or(Clock());
    // As AuxtraceInfo says.
    Fields info;
    info.put(AuxtraceInfo::kIntelPt).put(uint32_t{0});
    for (const uint64_t value :
         {uint64_t{kPmuType}, clock.shift, clock.mult, clock.zero, uint64_t{1}, kTscBit,
          kNoReturnCompressionBit, uint64_t{1}, uint64_t{0}, uint64_t{1}, kMtcBit, kMtcPeriodBits,
          processor_.tsc_ctc_n, processor_.tsc_ctc_d, kCycleBit, processor_.ratio, uint64_t{0}}) {
      info.put(value);
    }
    file += record_bytes(RecordType::kAuxtraceInfo, 0, info.bytes());
    file += record_bytes(RecordType::kTimeConv, 0,
                         Fields().put(clock.shift).put(clock.mult).put(clock.zero).bytes());
    return file + records_ + traces_;
  }

  const FileReader& read_file_;
  std::string_view rest_;  // of the line
  uint64_t line_ = 0;
  bool wrong_ = false;
  std::optional<Clock> clock_;
  Processor processor_;
  uint32_t buffers_ = 0;
  std::string records_;
  std::string traces_;
};

}  // namespace

bool looks_like_trace_list(std::string_view bytes) {
  constexpr std::string_view kBegin = kFirstLine.substr(0, 10);
  return bytes.substr(0, kBegin.size()) == kBegin;
}

Result<std::string> perf_data_of_list(std::string_view list, const FileReader& read_file) {
  return Converter(read_file).run(list);
}

}  // namespace tsomon::perf
