// What the sideband of an Intel PT recording says: code, threads of CPUs, lost bytes.
#include "monitor/pt/pt_recording.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/perf/record.h"
#include "decoders/perf/writer.h"
#include "tests/monitor/folder.h"

using namespace tsomon;
using namespace tsomon::perf;

namespace {

constexpr uint32_t kPt = 8;  // type of the PMU
constexpr uint32_t kNobody = 0xFFFFFFFF;

// Records whose time is the time-stamp counter.
struct Recording {
  std::string records;
  uint64_t config = 0;
  uint64_t flags = attribute_flag::kSampleIdAll | 1U << 5;
  uint32_t aux_action = 0;

  void add(RecordType type, uint16_t misc, Fields payload, uint32_t pid, uint32_t tid,
           uint64_t time, uint32_t cpu) {
    payload.put(pid).put(tid).put(time).put(cpu).put(uint32_t{0});
    records += record_bytes(type, misc, payload.bytes());
  }
  void info(uint64_t snapshots = 0, uint64_t filter = 0) {
    Fields payload;
    payload.put(AuxtraceInfo::kIntelPt).put(uint32_t{0}).put(uint64_t{kPt});
    payload.put(uint64_t{0}).put(uint64_t{1}).put(uint64_t{0}).put(uint64_t{1});  // the clock
    for (const uint64_t value : std::vector<uint64_t>{1 << 10, 1 << 11, 1, snapshots, 1, 1 << 9,
                                                      15 << 14, 64, 1, 2, 30, filter}) {
      payload.put(value);
    }
    records += record_bytes(RecordType::kAuxtraceInfo, 0, payload.bytes());
  }
  void map(uint32_t pid, uint64_t time, uint64_t address, const std::string& path) {
    Fields payload;
    payload.put(pid).put(pid).put(address).put(uint64_t{0x1000}).put(uint64_t{0});
    payload.put(uint64_t{0}).put(uint64_t{0}).put(uint64_t{0});
    payload.put(uint32_t{5}).put(uint32_t{2}).put_text(path);
    add(RecordType::kMmap2, 0, payload, pid, pid, time, 0);
  }
  void exec(uint32_t pid, uint64_t time) {
    add(RecordType::kComm, misc::kCommExec, Fields().put(pid).put(pid).put_text("new"), pid, pid,
        time, 0);
  }
  void fork(uint32_t parent, uint32_t child, uint64_t time) {
    add(RecordType::kFork, 0, Fields().put(child).put(parent).put(child).put(parent).put(time),
        parent, parent, time, 0);
  }
  void change(bool out, uint32_t pid, uint64_t time, uint32_t cpu) {
    add(RecordType::kSwitch, out ? misc::kSwitchOut : 0, Fields(), pid, pid, time, cpu);
  }
  void aux(uint64_t offset, uint64_t size, uint64_t flags_, uint32_t cpu) {
    add(RecordType::kAux, 0, Fields().put(offset).put(size).put(flags_), 1, 1, 1, cpu);
  }
  void trace(uint32_t cpu, uint64_t offset, const std::string& data, uint64_t reference = 0) {
    Fields payload;
    payload.put(uint64_t{data.size()}).put(offset).put(reference).put(cpu).put(kNobody);
    payload.put(cpu).put(uint32_t{0});
    records += record_bytes(RecordType::kAuxtrace, 0, payload.bytes()) + data;
  }

  std::string bytes() const {
    WrittenAttribute attribute;
    attribute.type = kPt;
    attribute.config = config;
    attribute.flags = flags;
    attribute.aux_action = aux_action;
    attribute.sample_type = sample_type::kTid | sample_type::kTime | sample_type::kCpu;
    return file_of({attribute}, records);
  }
};

std::vector<pt::CodeSection> code_of(const PtRecording& recording, int process) {
  std::vector<pt::CodeSection> code;
  std::copy_if(recording.input.code.begin(), recording.input.code.end(), std::back_inserter(code),
               [&](const pt::CodeSection& section) { return section.process == process; });
  return code;
}

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("PT recording: code of programs that exec, fork and map anew") {
  const testing::Folder folder;
  const std::string a = folder.write("a", "code");
  const std::string b = folder.write("b", "code");
  Recording written;
  written.info();
  written.trace(0, 0, "12345678");
  for (const uint32_t pid : {10U, 11U, 12U}) {
    written.change(false, pid, 5, 0);
  }
  written.map(10, 0, 0x1000, a);
  written.map(10, 20, 0x8000, b);         // nothing else can be there
  written.map(10, 30, 0x1800, b);         // in place of a part
  written.fork(10, 11, 40);               // with all three
  written.map(11, 50, 0x8000, "//anon");  // generated: what was there is not known
  written.fork(10, 12, 60);
  written.exec(12, 70);
  written.map(12, 80, 0x1000, b);
  const std::string bytes = written.bytes();
  const auto recording = read_pt_recording(bytes, {});
  REQUIRE(recording);

  const auto first = code_of(*recording, 10);
  REQUIRE(first.size() == 3);
  CHECK(first[0].from == kTimeMin);
  CHECK(first[1].from == kTimeMin);
  CHECK(first[2].from == 30);
  CHECK(first[2].file == b);
  const auto child = code_of(*recording, 11);
  REQUIRE(child.size() == 2);
  CHECK(child[0].address == 0x1000);
  CHECK(child[1].address == 0x1800);
  const auto executed = code_of(*recording, 12);
  REQUIRE(executed.size() == 1);
  CHECK(executed[0].file == b);
  CHECK(executed[0].from == 70);
  CHECK(mentions(recording->notes, "//anon"));
}

TEST_CASE("PT recording: a program that perf starts is there from its exec on") {
  const testing::Folder folder;
  const std::string file = folder.write("a", "code");
  for (const bool enabled : {true, false}) {
    Recording written;
    written.flags |= enabled ? attribute_flag::kEnableOnExec : 0;
    written.info();
    written.trace(0, 0, "12345678");
    written.change(false, 10, 5, 0);
    written.map(10, 0, 0x1000, "/perf");
    written.exec(10, 70);
    written.map(10, 80, 0x1000, file);
    const std::string bytes = written.bytes();
    const auto recording = read_pt_recording(bytes, {});
    REQUIRE(recording);
    REQUIRE(recording->input.code.size() == 1);
    CHECK(recording->input.code[0].from == (enabled ? kTimeMin : 70));
  }
}

TEST_CASE("PT recording: threads of CPUs") {
  Recording written;
  written.info();
  written.trace(0, 0, "12345678");
  written.trace(1, 0, "12345678");
  written.change(true, 10, 100, 0);  // ran from the beginning
  written.change(false, 11, 110, 0);
  written.change(true, 11, 120, 0);
  written.change(false, 0, 120, 0);  // idle
  written.change(false, 10, 130, 1);
  const std::string bytes = written.bytes();
  const auto recording = read_pt_recording(bytes, {});
  REQUIRE(recording);
  std::vector<std::vector<int64_t>> switches;
  for (const pt::Switch& item : recording->input.switches) {
    switches.push_back({item.time, item.cpu, item.thread});
  }
  const std::vector<std::vector<int64_t>> expected{{kTimeMin, 0, 10}, {100, 0, 0}, {110, 0, 11},
                                                   {120, 0, 0},       {120, 0, 0}, {130, 1, 10}};
  CHECK(switches == expected);
  CHECK(recording->input.clock.tsc_numerator == 64);
  CHECK(recording->input.clock.nominal_ratio == 30);
  CHECK(recording->problems.empty());
}

TEST_CASE("PT recording: nobody is known to run where records were lost") {
  Recording written;
  written.info();
  written.trace(0, 0, "12345678");
  written.change(false, 10, 100, 0);
  written.map(10, 130, 0x1000, "/none");  // on the same CPU
  written.add(RecordType::kLost, 0, Fields().put(uint64_t{1}).put(uint64_t{2}), 10, 10, 150, 0);
  written.change(false, 11, 160, 0);
  const std::string bytes = written.bytes();
  const auto recording = read_pt_recording(bytes, {});
  REQUIRE(recording);
  REQUIRE(recording->input.switches.size() == 3);
  CHECK(recording->input.switches[1].time == 130);
  CHECK(recording->input.switches[1].thread == 0);
  CHECK(recording->input.switches[2].time == 160);
  CHECK_FALSE(recording->problems.empty());
}

TEST_CASE("PT recording: who ran before the first switch is not known where records were lost") {
  const auto first = [](uint32_t cpu_of_loss, bool lost) {
    Recording written;
    written.info();
    written.trace(0, 0, "12345678");
    if (lost) {
      written.add(RecordType::kLost, 0, Fields().put(uint64_t{1}).put(uint64_t{2}), 10, 10, 50,
                  cpu_of_loss);
    }
    written.change(true, 10, 100, 0);
    const std::string bytes = written.bytes();
    const auto recording = read_pt_recording(bytes, {});
    REQUIRE(recording);
    REQUIRE_FALSE(recording->input.switches.empty());
    return recording->input.switches.front().thread;
  };
  CHECK(first(0, false) == 10);
  CHECK(first(0, true) == 0);
  CHECK(first(1, true) == 10);
}

TEST_CASE("PT recording: a loss that lies in no data is a problem") {
  const auto problems = [](uint64_t offset, uint32_t cpu) {
    Recording written;
    written.info();
    written.change(false, 10, 5, 0);
    written.aux(offset, 8, Aux::kTruncated, cpu);
    written.trace(0, 1000, "12345678");
    const std::string bytes = written.bytes();
    const auto recording = read_pt_recording(bytes, {});
    REQUIRE(recording);
    return recording->problems.size();
  };
  CHECK(problems(1000, 0) == 0);
  CHECK(problems(992, 0) == 1);
  CHECK(problems(2000, 0) == 1);
  CHECK(problems(1000, 1) == 1);
}

TEST_CASE("PT recording: a trace that events pause is not whole") {
  Recording written;
  written.flags |= attribute_flag::kInherit | attribute_flag::kEnableOnExec;
  written.info();
  written.trace(0, 0, "12345678");
  written.change(false, 10, 5, 0);
  for (const uint32_t action : {0U, 1U, 2U, 4U}) {
    written.aux_action = action;
    const std::string bytes = written.bytes();
    const auto recording = read_pt_recording(bytes, {});
    REQUIRE(recording);
    CHECK(recording->all_threads == (action == 0));
    CHECK(recording->problems.empty() == (action == 0));
  }
}

TEST_CASE("PT recording: bytes that are missing") {
  Recording written;
  written.info();
  written.change(false, 10, 5, 0);
  written.aux(1000, 8, 0, 0);
  written.aux(1008, 4, Aux::kTruncated, 0);
  written.aux(1008, 4, Aux::kTruncated, 1);  // of another buffer
  written.trace(0, 1000, "12345678");
  written.trace(0, 1008, "12345678");
  written.trace(0, 1024, "12345678");  // eight were left out
  std::string bytes = written.bytes();
  auto recording = read_pt_recording(bytes, {});
  REQUIRE(recording);
  REQUIRE(recording->input.streams.size() == 1);
  CHECK(recording->input.streams[0].bytes.size() == 24);
  CHECK(recording->input.streams[0].parts == std::vector<size_t>{12, 16});

  written.add(RecordType::kLost, 0, Fields().put(uint64_t{1}).put(uint64_t{7}), 10, 10, 50, 0);
  bytes = written.bytes();
  recording = read_pt_recording(bytes, {});
  REQUIRE(recording);
  CHECK(mentions(recording->problems, "7 records were lost"));

  Recording snapshots;
  snapshots.info(1, 8);
  snapshots.trace(0, 0, "12345678", 1);
  snapshots.trace(0, 4, "abcdefgh", 2);
  bytes = snapshots.bytes();
  recording = read_pt_recording(bytes, {});
  REQUIRE(recording);
  CHECK(recording->input.streams[0].bytes == "abcdefgh");
  CHECK(recording->partial);
  CHECK(mentions(recording->problems, "snapshots"));
}

TEST_CASE("PT recording: how it was configured") {
  const auto branches = [](uint64_t config) {
    Recording written;
    written.config = config;
    written.info();
    const std::string bytes = written.bytes();
    const auto recording = read_pt_recording(bytes, {});
    REQUIRE(recording);
    CHECK(recording->input.clock.mtc_frequency == (config >> 14 & 15));
    return recording->branches;
  };
  CHECK(branches(0));  // the kernel sets them by itself
  CHECK(branches(1 | 1 << 13 | 3 << 14));
  CHECK_FALSE(branches(1 | 1 << 12));
  const auto type = trace_data_type(file_of({WrittenAttribute()}, ""));
  REQUIRE(type);
  CHECK_FALSE(*type);
}
