// Recording of Intel PT: rings as the kernel lays them out, the file, and what needs no such
// processor.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include "decoders/perf/reader.h"
#include "monitor/input/load.h"
#include "monitor/perf_events/perf_file.h"
#include "monitor/perf_events/rings.h"
#include "monitor/process/child.h"
#include "monitor/process/elf_image.h"
#include "monitor/pt_live/flight_recorder.h"
#include "monitor/pt_live/pt_device.h"
#include "monitor/pt_live/pt_record.h"
#include "monitor/pt_live/recent_records.h"
#include "monitor/pt_live/running_code.h"
#include "tests/monitor/folder.h"
#include "tests/pt/traced_programs.h"
#include "tests/pt/written_recording.h"

using namespace tsomon;
using namespace tsomon::pt_live;
using namespace tsomon::test;
using tsomon::testing::Folder;

namespace {

// The kernel's side of both rings.
class FakeKernel {
 public:
  FakeKernel(size_t records, size_t trace)
      : records_(records, '\0'), trace_(trace, '\0'), control_(new perf_event_mmap_page{}) {}

  bool record(const std::string& bytes) {
    if (control_->data_head + bytes.size() - control_->data_tail > records_.size()) {
      return false;
    }
    control_->data_head = put(records_, control_->data_head, bytes);
    return true;
  }
  // What finds room.
  size_t trace(std::string_view bytes) {
    const size_t room = trace_.size() - (control_->aux_head - control_->aux_tail);
    const size_t size = std::min(room, bytes.size());
    control_->aux_head = put(trace_, control_->aux_head, bytes.substr(0, size));
    return size;
  }
  // For ever; `grows`: the head is no place in the area.
  void overwrite(std::string_view bytes, bool grows) {
    const uint64_t head = put(trace_, control_->aux_head, bytes);
    control_->aux_head = grows ? head : head % trace_.size();
  }
  RecordRing records() { return {control_.get(), records_.data(), records_.size()}; }
  AuxRing area() { return {control_.get(), trace_.data(), trace_.size()}; }

 private:
  static uint64_t put(std::string& area, uint64_t at, std::string_view bytes) {
    for (const char byte : bytes) {
      area[at++ % area.size()] = byte;
    }
    return at;
  }

  std::string records_;
  std::string trace_;
  std::unique_ptr<perf_event_mmap_page> control_;
};

std::string text(const AuxRing::Piece& piece) {
  return std::string(piece.bytes[0]) + std::string(piece.bytes[1]);
}

std::string noise(size_t size) {
  std::mt19937_64 random(size);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(1 + random() % 255);
  }
  return bytes;
}

std::vector<perf::WrittenAttribute> attributes_of(const perf::Reader& reader) {
  std::vector<perf::WrittenAttribute> all;
  for (const perf::Attribute& from : reader.info().attributes.all()) {
    perf::WrittenAttribute to;
    to.type = from.type;
    to.config = from.config;
    to.sample_type = from.sample_type | perf::sample_type::kIp;  // perf asks for it
    to.flags = from.flags;
    to.ids = from.ids;
    all.push_back(to);
  }
  return all;
}

}  // namespace

TEST_CASE("rings: everything arrives once and in order, however the areas wrap around") {
  FakeKernel kernel(256, 512);
  const std::string all = noise(10000);
  std::string records;
  std::string trace;
  std::mt19937_64 random(1);
  size_t put = 0;
  size_t number = 0;
  while (put < all.size()) {
    put += kernel.trace(std::string_view(all).substr(put, random() % 300));
    const std::string record = record_bytes(perf::RecordType::kExit, 0, noise(8 + number % 5 * 8));
    number += kernel.record(record) ? 1 : 0;
    if (random() % 3 == 0) {
      kernel.records().read(records);
    }
    if (random() % 2 == 0) {
      AuxRing area = kernel.area();
      const AuxRing::Piece piece = area.read(false);
      CHECK(piece.offset == trace.size());
      CHECK(piece.size() % 8 == 0);
      trace += text(piece);
      area.release(piece);
    }
  }
  kernel.records().read(records);
  trace += text(kernel.area().read(true));
  CHECK(trace == all);
  size_t at = 0;
  for (size_t i = 0; i < number; ++i) {
    const std::string record = record_bytes(perf::RecordType::kExit, 0, noise(8 + i % 5 * 8));
    CHECK(records.substr(at, record.size()) == record);
    at += record.size();
  }
  CHECK(at == records.size());
}

TEST_CASE("snapshots: the last bytes of an area that is overwritten, the oldest first") {
  for (const bool grows : {false, true}) {
    CAPTURE(grows);
    FakeKernel kernel(64, 128);
    AuxRing area = kernel.area();
    const std::string all = noise(1000);
    kernel.overwrite(all.substr(0, 50), grows);
    CHECK(text(area.snapshot()) == all.substr(0, 50));
    kernel.overwrite(all.substr(50, 60), grows);
    const AuxRing::Piece second = area.snapshot();
    CHECK(text(second) == all.substr(0, 110));
    CHECK(second.offset == 50);
    for (size_t end = 110; end + 37 < all.size(); end += 37) {
      kernel.overwrite(all.substr(end, 37), grows);
      if (end + 37 >= 128) {
        CHECK(text(area.snapshot()) == all.substr(end + 37 - 128, 128));
      }
    }
  }
}

TEST_CASE("a recording that went through the rings is read like the trace itself") {
  const Folder folder;
  const SteppedRun& run = stepped("hash_table");
  EncodedRun encoded = encode(run);
  const LoadedTrace direct =
      *load_trace(folder.write("direct", perf_data_of(run, encoded)), InputFormat::kAuto);
  const std::vector<uint8_t> bytes = encoded.streams[0].bytes;
  encoded.streams.clear();
  const std::string beside = perf_data_of(run, encoded);
  const auto reader = perf::Reader::open(beside);
  REQUIRE(reader);
  uint64_t begin = 0;
  std::memcpy(&begin, beside.data() + 40, sizeof begin);

  const std::string path = folder.write("live", "");
  auto file = PerfFile::create(path, attributes_of(*reader));
  REQUIRE(file);
  FakeKernel kernel(4096, 1024);
  std::string records;
  REQUIRE(file->add(beside.substr(begin, 8 + 8 + 17 * 8)));  // AUXTRACE_INFO is the tool's
  for (size_t at = begin + 8 + 8 + 17 * 8; at < beside.size();) {
    uint16_t size = 0;
    std::memcpy(&size, beside.data() + at + 6, sizeof size);
    REQUIRE(kernel.record(beside.substr(at, size)));
    kernel.records().read(records);
    at += size;
  }
  REQUIRE(file->add(records));
  const std::string_view trace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  AuxRing area = kernel.area();
  size_t added = 0;
  for (size_t put = 0; put < trace.size();) {
    put += kernel.trace(trace.substr(put, 700));
    const AuxRing::Piece piece = area.read(put == trace.size());
    added += piece.size() != 0 ? 1 : 0;
    REQUIRE(file->add_trace(piece, 0, -1, run.threads[0], 0));
    area.release(piece);
  }
  CHECK(file->trace_bytes() == trace.size());
  CHECK(added > 2);
  // Also before it is finished.
  for (const bool finished : {false, true}) {
    if (finished) {
      REQUIRE(file->finish());
    }
    const auto live = load_trace(path, InputFormat::kAuto);
    REQUIRE(live);
    CHECK(live->trace.events.size() == direct.trace.events.size());
    CHECK(check_accesses(run, live->trace, 1) > 1000);
  }
  if (::access("/usr/bin/perf", X_OK) == 0) {
    const std::string listing = path + ".txt";
    const std::string command =
        "/usr/bin/perf script -D -i " + path + " > " + listing + " 2>/dev/null";
    CHECK(std::system(command.c_str()) == 0);
    std::ifstream in(listing);
    size_t pieces = 0;
    size_t maps = 0;
    for (std::string line; std::getline(in, line);) {
      pieces += line.find("PERF_RECORD_AUXTRACE size") != std::string::npos ? 1 : 0;
      maps += line.find("PERF_RECORD_MMAP2") != std::string::npos ? 1 : 0;
    }
    CHECK(pieces == added);
    CHECK(maps == run.code.size());
  }
}

TEST_CASE("the device: what is asked of it is what it says it has") {
  const Folder folder;
  const std::string root = folder.write("type", "8\n");
  const std::string device = root.substr(0, root.rfind('/'));
  std::filesystem::create_directories(device + "/format");
  std::filesystem::create_directories(device + "/caps");
  const auto write = [&](const std::string& name, const std::string& line) {
    std::ofstream(device + "/" + name) << line << '\n';
  };
  write("format/pt", "config:0");
  write("format/branch", "config:13");
  write("format/tsc", "config:10");
  write("format/mtc", "config:9");
  write("format/mtc_period", "config:14-17");
  write("format/cyc", "config:1");
  write("format/ptw", "config:12");
  write("format/fup_on_ptw", "config:5");
  write("format/broken", "config:9-3");
  write("caps/mtc", "1");
  write("caps/mtc_periods", "249");  // 0, 3, 6, 9
  write("caps/psb_cyc", "1");
  write("caps/ptwrite", "0");
  write("nr_addr_filters", "2");
  write("max_nonturbo_ratio", "34");
  auto found = find_pt_device(device);
  REQUIRE(found);
  CHECK(found->type == 8);
  CHECK(found->address_filters == 2);
  CHECK(trace_config(*found) == (1U | 1U << 13 | 1U << 10 | 1U << 9 | 3U << 14 | 1U << 1));
  const auto values = auxtrace_values(*found, true, false, "x");
  REQUIRE(values.size() == 17);
  CHECK(values[0] == 8);
  CHECK(values[8] == 1);
  CHECK(values[9] == 0);
  CHECK(values[11] == 15U << 14);
  CHECK(values[15] == 34);
  CHECK(values[16] == 1);
  write("caps/ptwrite", "1");
  found = find_pt_device(device);
  CHECK((trace_config(*found) & (1U << 12 | 1U << 5)) == (1U << 12 | 1U << 5));
  CHECK(found->mask_of("broken") == 0);

  const auto none = find_pt_device(device + "/no_such");
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::kEnvironment);
  CHECK(none.error().message.find("tsomon doctor") != std::string::npos);
}

TEST_CASE("address filters are the functions of the file") {
  const std::string file = TSOMON_TRACED_PROGRAMS "/traced_left_early";
  const auto filter = filter_of(file, {"unit_of_work"}, 2);
  REQUIRE(filter);
  const auto image = attach::ElfImage::open(file, file);
  REQUIRE(image);
  for (const attach::Symbol& symbol : (*image)->functions()) {
    if (symbol.text() == "unit_of_work") {
      CHECK(std::stoull(filter->substr(std::string("filter ").size()), nullptr, 16) ==
            (*image)->offset_of(symbol.address));
    }
  }
  CHECK(filter->find("@/") != std::string::npos);
  for (const char* pattern : {"no_such", "*"}) {
    const auto refused = filter_of(file, {pattern}, 2);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::kUsage);
  }
}

TEST_CASE("what is recorded beside the trace: a real program, from its start and while it runs") {
  const Folder folder;
  PtRecordRequest request;
  request.command = {"/bin/sh", "-c", "true; /bin/echo -n; exit 7"};
  request.output = folder.write("perf.data", "");
  const auto recorded = record_with(request, setup_of(request, {sideband_event(true, true)}, {}));
  if (!recorded && recorded.error().kind == ErrorKind::kEnvironment) {
    MESSAGE(recorded.error().message);  // perf events are not allowed here
    return;
  }
  REQUIRE(recorded);
  CHECK(recorded->status == 7);
  std::ifstream in(request.output, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  auto reader = perf::Reader::open(bytes);
  REQUIRE(reader);
  size_t execs = 0;
  size_t maps = 0;
  size_t exits = 0;
  perf::Record record;
  while (reader->next(record)) {
    CHECK((record.of_tool() || record.has_time()));
    if (record.type == perf::RecordType::kComm) {
      execs += parse_comm(record)->exec ? 1 : 0;
    }
    maps += record.type == perf::RecordType::kMmap2 ? 1 : 0;
    exits += record.type == perf::RecordType::kExit ? 1 : 0;
  }
  CHECK(reader->problems().empty());
  CHECK(execs == 2);
  CHECK(maps > 4);
  CHECK(exits == 2);

  const std::string here = running_code(::getpid(), 5);
  CHECK(here.find("test_pt") != std::string::npos);
  CHECK(threads_of(::getpid()).front() == ::getpid());
  CHECK(threads_of(-1).empty());
}

namespace {

// With the fields that end every record: thread, time, CPU, event.
std::string live_record(perf::RecordType type, perf::Fields payload, uint64_t time, uint32_t cpu) {
  payload.put(uint32_t{7}).put(uint32_t{7}).put(time).put(cpu).put(uint32_t{0}).put(uint64_t{1});
  return record_bytes(type, 0, payload.bytes());
}

perf::Fields task(uint32_t pid, uint32_t tid) {
  return perf::Fields().put(pid).put(pid).put(tid).put(tid).put(uint64_t{0});
}

perf::Fields aux(uint64_t flags) {
  return perf::Fields().put(uint64_t{0}).put(uint64_t{0}).put(flags);
}

std::vector<std::string> split(const std::string& records) {
  std::vector<std::string> all;
  for (size_t at = 0; at < records.size(); at += all.back().size()) {
    perf_event_header header;
    std::memcpy(&header, records.data() + at, sizeof header);
    REQUIRE(header.size >= sizeof header);
    all.push_back(records.substr(at, header.size));
  }
  return all;
}

}  // namespace

TEST_CASE("records of the last time: what tells of code stays, the oldest switches go") {
  constexpr size_t kBound = size_t{1} << 20;
  RecentRecords recent(kBound);
  std::string lasting;
  std::vector<std::string> switches;
  std::mt19937_64 random(1);
  for (uint32_t number = 0; number < 100'000; ++number) {
    std::string some;
    if (random() % 100 == 0) {
      some = random() % 2 == 0
                 ? live_record(perf::RecordType::kMmap2, task(7, number), number, 0)
                 : live_record(perf::RecordType::kAux, aux(PERF_AUX_FLAG_TRUNCATED), number, 0);
      lasting += some;
    }
    switches.push_back(random() % 2 == 0
                           ? live_record(perf::RecordType::kAux, aux(0), number, 0)
                           : live_record(perf::RecordType::kSwitch, {}, number, number % 2));
    // Threads that come and go.
    some += live_record(perf::RecordType::kFork, task(7, 8 + number), number, 0) +
            record_bytes(perf::RecordType::kFinishedRound, 0, {});
    if (number % 1000 != 0) {
      some += live_record(perf::RecordType::kExit, task(7, 8 + number), number, 0);
    }
    recent.add(some + switches.back());
  }
  const std::string all = recent.take();
  CHECK(all.size() < kBound + lasting.size() + 100'000);
  CHECK(all.size() > kBound / 2);
  std::string lasting_seen;
  std::vector<std::string> switches_seen;
  std::vector<std::string> lost;
  size_t kept_forks = 0;
  for (const std::string& one : split(all)) {
    perf_event_header header;
    std::memcpy(&header, one.data(), sizeof header);
    const bool loses = header.type == PERF_RECORD_AUX && one[24] != 0;  // by its flags
    if (header.type == PERF_RECORD_MMAP2 || loses) {
      lasting_seen += one;
    } else if (header.type == PERF_RECORD_SWITCH || header.type == PERF_RECORD_AUX) {
      switches_seen.push_back(one);
    } else if (header.type == PERF_RECORD_LOST) {
      CHECK(switches_seen.empty());  // behind what lasts, in front of what is left
      lost.push_back(one);
    } else {
      kept_forks += header.type == PERF_RECORD_FORK ? 1 : 0;
    }
  }
  CHECK(lasting_seen == lasting);
  REQUIRE(switches_seen.size() < switches.size());
  CHECK(std::equal(switches_seen.rbegin(), switches_seen.rend(), switches.rbegin()));
  CHECK(kept_forks >= 100);
  CHECK(kept_forks < 100 + kBound / 56);
  // The last switch of each CPU that is no longer there.
  REQUIRE(lost.size() == 2);
  for (size_t cpu = 0; cpu < 2; ++cpu) {
    std::string last;
    for (size_t i = 0; i < switches.size() - switches_seen.size(); ++i) {
      const bool of_cpu = switches[i].size() == 40 && i % 2 == cpu;
      last = of_cpu ? switches[i] : last;
    }
    CHECK(lost[cpu].substr(24) == last.substr(8));
  }
  CHECK(recent.take().empty());
}

namespace {

// How many records there are of a kind.
std::map<perf::RecordType, size_t> kinds_in(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::map<perf::RecordType, size_t> kinds;
  auto reader = perf::Reader::open(bytes);
  perf::Record record;
  while (reader && reader->next(record)) {
    ++kinds[record.type];
  }
  return kinds;
}

}  // namespace

TEST_CASE("the flight recorder writes what there is when it is told to, once") {
  const Folder folder;
  for (const bool dumped : {false, true}) {
    CAPTURE(dumped);
    const std::string path = folder.write("flight", "");
    PtRecordRequest request;
    request.snapshot = true;
    std::unique_ptr<FlightRecorder> recorder;
    Result<bool> started = true;
    Child child({"/bin/sh", "-c", "for i in 1 2 3 4 5; do /bin/sleep 0.1; done; exit 3"},
                [&](pid_t pid) {
                  auto made = FlightRecorder::start(
                      setup_of(request, {sideband_event(true, true)}, {}), path, pid, false);
                  if (made) {
                    recorder = std::move(*made);
                  } else {
                    started = tl::unexpected<Error>(made.error());
                  }
                  return true;
                });
    if (!started) {
      CHECK(started.error().kind == ErrorKind::kEnvironment);
      MESSAGE(started.error().message);  // perf events are not allowed here
      return;
    }
    while (!child.ended()) {
      ::usleep(10'000);
    }
    CHECK(exit_status(child.wait()) == 3);
    CHECK(kinds_in(path).empty());
    if (dumped) {
      recorder->dump();
      auto kinds = kinds_in(path);
      CHECK(kinds[perf::RecordType::kFork] == 5);
      CHECK(kinds[perf::RecordType::kExit] == 6);
      CHECK(kinds[perf::RecordType::kSwitch] >= 10);
      CHECK(kinds[perf::RecordType::kMmap2] > 10);
      recorder->dump();
      CHECK(kinds_in(path) == kinds);
    }
    std::thread other([&] { CHECK(recorder->stop()); });  // two may stop it at once
    const auto stopped = recorder->stop();
    other.join();
    REQUIRE(stopped);
    CHECK(*stopped == dumped);
    CHECK((::access(path.c_str(), F_OK) == 0) == dumped);
  }
}

TEST_CASE("without Intel PT recording is refused with a remedy") {
  if (::access("/sys/bus/event_source/devices/intel_pt", F_OK) == 0) {
    return;
  }
  PtRecordRequest request;
  request.command = {"/bin/true"};
  const auto refused = record_pt(request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kEnvironment);
}
