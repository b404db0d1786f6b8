// perf.data: everything that a record can say comes back as it was written, wherever the file ends.

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <zstd.h>

#include "decoders/perf/directory.h"
#include "decoders/perf/inflate.h"
#include "decoders/perf/listing.h"
#include "decoders/perf/ordered.h"
#include "decoders/perf/raw_trace.h"
#include "decoders/perf/reader.h"
#include "decoders/perf/sample.h"
#include "decoders/perf/writer.h"

using namespace tsomon;
using namespace tsomon::perf;

namespace {

constexpr uint64_t kTrailer = sample_type::kTid | sample_type::kTime | sample_type::kId |
                              sample_type::kStreamId | sample_type::kCpu | sample_type::kIdentifier;

WrittenAttribute attribute_with(uint64_t fields, std::vector<uint64_t> ids = {}) {
  WrittenAttribute attribute;
  attribute.sample_type = fields;
  attribute.ids = std::move(ids);
  return attribute;
}

std::string trailer(uint64_t time, uint64_t id = 7) {
  return Fields()
      .put(uint32_t{10})
      .put(uint32_t{11})
      .put(time)
      .put(id)
      .put(uint64_t{70})
      .put(uint32_t{3})
      .put(uint32_t{0})
      .put(id)
      .bytes();
}

std::string comm(const std::string& name, uint64_t time, uint64_t id = 7) {
  return record_bytes(
      RecordType::kComm, 0,
      Fields().put(uint32_t{10}).put(uint32_t{11}).put_text(name).bytes() + trailer(time, id));
}

std::string round() { return record_bytes(RecordType::kFinishedRound, 0, {}); }

struct Read {
  std::shared_ptr<const std::string> bytes;  // the records are views of them
  std::vector<Record> records;
  std::vector<std::string> problems;
  std::map<uint32_t, uint64_t> unknown;
};

Read read(std::string_view bytes) {
  Read result;
  result.bytes = std::make_shared<const std::string>(bytes);
  auto reader = Reader::open(*result.bytes);
  REQUIRE(reader);
  Record record;
  while (reader->next(record)) {
    result.records.push_back(record);
  }
  result.problems = reader->problems();
  result.unknown = reader->unknown();
  return result;
}

std::vector<std::string> names_in_order(std::string_view bytes, size_t max_held) {
  auto reader = Reader::open(bytes);
  REQUIRE(reader);
  OrderedReader ordered(std::move(*reader), max_held);
  std::vector<std::string> names;
  Record record;
  while (ordered.next(record)) {
    if (const auto parsed = parse_comm(record); parsed && record.type == RecordType::kComm) {
      names.emplace_back(parsed->name);
    }
  }
  return names;
}

std::string compressed(const std::vector<std::string>& pieces, RecordType type) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  std::string records;
  for (const std::string& piece : pieces) {
    std::string out(ZSTD_compressBound(piece.size()) + 64, '\0');
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    ZSTD_inBuffer from{piece.data(), piece.size(), 0};
    REQUIRE(ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush) == 0);
    out.resize(to.pos);
    Fields payload;
    if (type == RecordType::kCompressed2) {
      payload.put(uint64_t{out.size()});
      out.append((8 - out.size() % 8) % 8, '\0');
    }
    records += record_bytes(type, 0, payload.put_bytes(out).bytes());
  }
  ZSTD_freeCCtx(context);
  return records;
}

}  // namespace

TEST_CASE("perf.data: what is none is refused with the reason") {
  const auto message = [](std::string_view bytes) {
    const auto reader = Reader::open(bytes);
    return reader ? std::string() : reader.error().message;
  };
  CHECK(message("").find("empty") != std::string::npos);
  CHECK(message("THREAD|r(x)|1").find("PERFILE2") != std::string::npos);
  CHECK(message("2ELIFREP\0\0\0\0\0\0\0\0").find("big-endian") != std::string::npos);
  CHECK(message("PERFFILE").find("2.6.39") != std::string::npos);
  CHECK(message(file_of({}, {}).substr(0, 50)).find("cut off") != std::string::npos);
  CHECK(looks_like_perf_data("2ELIFREP"));
  CHECK_FALSE(looks_like_perf_data("PERFILE"));
}

TEST_CASE("perf.data: attributes of every version, with their ids") {
  for (const uint32_t size : {64U, 72U, 80U, 96U, 104U, 112U, 120U, 128U, 136U, 200U}) {
    WrittenAttribute written = attribute_with(kTrailer, {5, 6});
    written.size = size;
    written.config2 = 4;
    written.branch_sample_type = 9;
    written.user_registers = 0xFF;
    written.interrupt_registers = 3;
    for (const bool pipe : {false, true}) {
      const std::string bytes =
          pipe ? pipe_header() + attribute_record(written) : file_of({written}, {});
      auto reader = Reader::open(bytes);
      REQUIRE(reader);
      Record record;
      while (reader->next(record)) {
      }
      REQUIRE(reader->info().attributes.all().size() == 1);
      const Attribute& attribute = reader->info().attributes[0];
      CHECK(attribute.size == size);
      CHECK(attribute.sample_type == kTrailer);
      CHECK(attribute.config2 == (size >= 72 ? 4 : 0));
      CHECK(attribute.branch_sample_type == (size >= 80 ? 9 : 0));
      CHECK(attribute.user_registers == (size >= 96 ? 0xFF : 0));
      CHECK(attribute.interrupt_registers == (size >= 104 ? 3 : 0));
      CHECK(attribute.ids == std::vector<uint64_t>{5, 6});
      CHECK(reader->info().attributes.of_id(6) == 0);
      // A file that was not ended says so.
      CHECK(reader->problems().empty() == pipe);
    }
  }
}

TEST_CASE("perf.data: the event of a record is found by its id") {
  const std::string bytes = file_of({attribute_with(kTrailer, {7}), attribute_with(kTrailer, {8})},
                                    comm("a", 1, 7) + comm("b", 2, 8) + comm("c", 3, 99));
  const Read all = read(bytes);
  REQUIRE(all.records.size() == 3);
  CHECK(all.records[0].attribute == 0);
  CHECK(all.records[1].attribute == 1);
  CHECK(all.records[2].attribute == 0);
  CHECK(all.records[1].sample_id.pid == 10);
  CHECK(all.records[1].sample_id.tid == 11);
  CHECK(all.records[1].sample_id.time == 2);
  CHECK(all.records[1].sample_id.stream_id == 70);
  CHECK(all.records[1].sample_id.cpu == 3);
  CHECK(parse_comm(all.records[1])->name == "b");
}

TEST_CASE("perf.data: all fields of a sample") {
  WrittenAttribute written = attribute_with(sample_type::kAll);
  written.read_format = read_format::kTimeEnabled | read_format::kTimeRunning | read_format::kId |
                        read_format::kGroup | read_format::kLost;
  written.branch_sample_type = kBranchHardwareIndex | kBranchCounters;
  written.user_registers = 0x101;
  written.interrupt_registers = 0x80;
  Fields payload;
  uint64_t next = 100;
  const auto word = [&] { payload.put(next++); };
  word();                                     // identifier 100
  word();                                     // ip 101
  payload.put(uint32_t{1}).put(uint32_t{2});  // pid, tid
  word();                                     // time 102
  word();                                     // address 103
  word();                                     // id 104
  word();                                     // stream 105
  payload.put(uint32_t{6}).put(uint32_t{0});  // cpu
  word();                                     // period 106
  payload.put(uint64_t{2});                   // counters
  for (int i = 0; i < 8; ++i) {
    word();  // enabled 107, running 108, value 109, id 110, lost 111, ...
  }
  payload.put(uint64_t{3});
  word();  // 115
  word();
  word();
  payload.put(uint32_t{12}).put_bytes("raw of twelv");
  payload.put(uint64_t{1});
  for (int i = 0; i < 5; ++i) {
    word();  // index 118, from 119, to 120, flags 121, counters 122
  }
  payload.put(uint64_t{2});
  word();  // user registers 123
  word();
  payload.put(uint64_t{16}).put_bytes("sixteen bytes  .").put(uint64_t{7});
  word();                    // weight 125
  word();                    // data source 126
  word();                    // transaction 127
  payload.put(uint64_t{0});  // no interrupt registers
  word();                    // physical address 128
  word();                    // cgroup 129
  word();                    // data page 130
  word();                    // code page 131
  payload.put(uint64_t{8}).put_bytes("aux data");
  const std::string sample = record_bytes(RecordType::kSample, misc::kUser, payload.bytes());
  const Read all = read(file_of({written}, sample));
  REQUIRE(all.records.size() == 1);
  const auto attribute = parse_attribute(written.bytes());
  const auto parsed = parse_sample(*attribute, all.records[0]);
  REQUIRE(parsed);
  CHECK(parsed->ip == 101);
  CHECK(parsed->pid == 1);
  CHECK(parsed->tid == 2);
  CHECK(parsed->time == 102);
  CHECK(parsed->address == 103);
  CHECK(parsed->id == 104);
  CHECK(parsed->stream_id == 105);
  CHECK(parsed->cpu == 6);
  CHECK(parsed->period == 106);
  CHECK(parsed->time_enabled == 107);
  CHECK(parsed->time_running == 108);
  REQUIRE(parsed->counters.size() == 2);
  CHECK(parsed->counters[0].value == 109);
  CHECK(parsed->counters[1].id == 113);
  CHECK(parsed->counters[1].lost == 114);
  CHECK(parsed->callchain == std::vector<uint64_t>{115, 116, 117});
  CHECK(parsed->raw == "raw of twelv");
  REQUIRE(parsed->branches.size() == 1);
  CHECK(parsed->branch_index == 118);
  CHECK(parsed->branches[0].to == 120);
  CHECK(parsed->user_registers.values == std::vector<uint64_t>{123, 124});
  CHECK(parsed->user_stack == "sixteen");
  CHECK(parsed->weight == 125);
  CHECK(parsed->data_source == 126);
  CHECK(parsed->transaction == 127);
  CHECK(parsed->interrupt_registers.values.empty());
  CHECK(parsed->physical_address == 128);
  CHECK(parsed->cgroup == 129);
  CHECK(parsed->data_page_size == 130);
  CHECK(parsed->code_page_size == 131);
  CHECK(parsed->aux == "aux data");
  // Shorter by any number of bytes it cannot be read.
  for (size_t size = 0; size < payload.bytes().size(); ++size) {
    Record cut = all.records[0];
    cut.payload = cut.payload.substr(0, size);
    CHECK_FALSE(parse_sample(*attribute, cut));
  }
}

TEST_CASE("perf.data: kinds of records") {
  const std::string id = std::string(20, '\xAB');
  Fields mmap;
  mmap.put(uint32_t{1}).put(uint32_t{2}).put(uint64_t{0x1000}).put(uint64_t{0x2000});
  mmap.put(uint64_t{0x3000});
  std::string with_id = mmap.bytes();
  with_id += Fields().put(uint32_t{20}).put_bytes(id).bytes();
  std::string with_inode = mmap.bytes();
  with_inode +=
      Fields().put(uint32_t{8}).put(uint32_t{1}).put(uint64_t{99}).put(uint64_t{5}).bytes();
  const std::string rest = Fields().put(uint32_t{5}).put(uint32_t{2}).put_text("/bin/x").bytes();
  const auto kernel = [](RecordType type, uint16_t misc, const Fields& fields) {
    return record_bytes(type, misc, fields.bytes() + trailer(5));
  };
  std::string records;
  records += record_bytes(RecordType::kMmap2, misc::kMmapBuildId, with_id + rest + trailer(5));
  records += record_bytes(RecordType::kMmap2, 0, with_inode + rest + trailer(5));
  records += kernel(RecordType::kAux, 0,
                    Fields().put(uint64_t{64}).put(uint64_t{32}).put(Aux::kTruncated));
  records += kernel(RecordType::kSwitchCpuWide, misc::kSwitchOut | misc::kSwitchOutPreempt,
                    Fields().put(uint32_t{4}).put(uint32_t{5}));
  records += kernel(RecordType::kSwitch, 0, Fields());
  records += kernel(RecordType::kTextPoke, 0,
                    Fields()
                        .put(uint64_t{0x400})
                        .put(uint16_t{2})
                        .put(uint16_t{3})
                        .put_bytes("abcde")
                        .put_bytes(std::string(7, '\0')));
  records += kernel(RecordType::kItraceStart, 0, Fields().put(uint32_t{1}).put(uint32_t{2}));
  records += kernel(RecordType::kLost, 0, Fields().put(uint64_t{7}).put(uint64_t{12}));
  records +=
      record_bytes(RecordType::kTimeConv, 0,
                   Fields().put(uint64_t{10}).put(uint64_t{500}).put(uint64_t{1000}).bytes());
  records += record_bytes(RecordType::kAuxtrace, 0,
                          Fields()
                              .put(uint64_t{5})
                              .put(uint64_t{64})
                              .put(uint64_t{1})
                              .put(uint32_t{2})
                              .put(uint32_t{11})
                              .put(uint32_t{3})
                              .put(uint32_t{0})
                              .bytes()) +
             "trace";
  records += record_bytes(static_cast<RecordType>(1000), 0, "12345678");
  records += kernel(RecordType::kExit, 0,
                    Fields()
                        .put(uint32_t{1})
                        .put(uint32_t{2})
                        .put(uint32_t{3})
                        .put(uint32_t{4})
                        .put(uint64_t{5}));
  const Read all = read(pipe_header() + attribute_record(attribute_with(kTrailer)) + records);
  CHECK(all.problems.empty());
  CHECK(all.unknown == std::map<uint32_t, uint64_t>{{1000, 1}});
  REQUIRE(all.records.size() == 12);
  CHECK(parse_mmap(all.records[1])->build_id == id);
  CHECK(parse_mmap(all.records[1])->path == "/bin/x");
  CHECK(parse_mmap(all.records[2])->inode == 99);
  CHECK(parse_mmap(all.records[2])->executable);
  CHECK(parse_aux(all.records[3])->size == 32);
  CHECK(parse_switch(all.records[4])->preempted);
  CHECK(parse_switch(all.records[4])->other_tid == 5);
  CHECK_FALSE(parse_switch(all.records[5])->out);
  CHECK(parse_text_poke(all.records[6])->before == "ab");
  CHECK(parse_text_poke(all.records[6])->after == "cde");
  CHECK(parse_itrace_start(all.records[7])->tid == 2);
  CHECK(parse_lost(all.records[8])->count == 12);
  const auto conversion = parse_time_conversion(all.records[9]);
  REQUIRE(conversion);
  CHECK(conversion->time_of(1 << 20) == 1000 + (500 << 10));
  CHECK(conversion->tsc_of(conversion->time_of(123456789)) <= 123456789);
  CHECK(conversion->tsc_of(conversion->time_of(123456789)) + 3 >= 123456789);
  const auto trace = parse_auxtrace(all.records[10]);
  REQUIRE(trace);
  CHECK(trace->data == "trace");
  CHECK(trace->buffer == 2);
  CHECK(trace->cpu == 3);
  CHECK(parse_task(all.records[11])->parent_tid == 4);
}

TEST_CASE("perf.data: compressed records go on from one to the next") {
  std::string plain;
  for (int i = 0; i < 2000; ++i) {
    plain += comm("name " + std::to_string(i), static_cast<uint64_t>(i));
  }
  for (const RecordType type : {RecordType::kCompressed, RecordType::kCompressed2}) {
    for (const size_t piece : {size_t{17}, size_t{1000}, size_t{40000}}) {
      std::vector<std::string> pieces;
      for (size_t at = 0; at < plain.size(); at += piece) {
        pieces.push_back(plain.substr(at, piece));
      }
      const std::string bytes = file_of({attribute_with(kTrailer)}, compressed(pieces, type));
      const Read all = read(bytes);
      CHECK(all.problems.empty());
      REQUIRE(all.records.size() == 2000);
      for (size_t i = 0; i < all.records.size(); ++i) {
        CHECK(parse_comm(all.records[i])->name == "name " + std::to_string(i));
      }
    }
  }
  // Damage ends what is compressed, and is told; the others are still read.
  std::string records =
      compressed({plain.substr(0, 5000), plain.substr(5000, 5000)}, RecordType::kCompressed);
  records[records.size() / 2 + 40] = static_cast<char>(records[records.size() / 2 + 40] ^ 0x55);
  records[20] = static_cast<char>(records[20] ^ 0x40);
  const Read damaged = read(file_of({attribute_with(kTrailer)}, records + comm("last", 1)));
  CHECK_FALSE(damaged.problems.empty());
  REQUIRE_FALSE(damaged.records.empty());
  CHECK(parse_comm(damaged.records.back())->name == "last");
}

TEST_CASE("perf.data: what unfolds to far more than the file is not read to its end") {
  std::string piece;
  while (piece.size() < size_t{256} << 10) {
    piece += comm("again", 7);
  }
  const std::vector<std::string> pieces(600, piece);  // 150 MiB
  const std::string records = compressed(pieces, RecordType::kCompressed);
  const std::string bytes = file_of({attribute_with(kTrailer)}, records + comm("last", 8));
  REQUIRE(bytes.size() < size_t{2} << 20);
  const auto told = [](const std::vector<std::string>& problems) {
    return problems.size() == 1 && problems[0].find("than 32 times") != std::string::npos;
  };
  auto reader = Reader::open(bytes);
  REQUIRE(reader);
  uint64_t count = 0;
  std::string last;
  for (Record record; reader->next(record); ++count) {
    last = parse_comm(record)->name;
  }
  CHECK(told(reader->problems()));
  CHECK(count * comm("again", 7).size() <
        Reader::kUnfolded * bytes.size() + Reader::kUnfoldedBase + 2 * Inflater::kBlockBytes);
  CHECK(count * comm("again", 7).size() > Reader::kUnfoldedBase);
  CHECK(last == "last");

  const auto joined = join_directory(file_of({attribute_with(kTrailer)}, comm("begin", 0)),
                                     std::vector<std::string_view>{records});
  REQUIRE(joined);
  CHECK(told(joined->problems));
  CHECK(joined->bytes.size() <
        JoinedDirectory::kMemory * bytes.size() + JoinedDirectory::kMemoryBase);
}

TEST_CASE("perf.data: cut off anywhere, every whole record is read and the rest is told") {
  const std::vector<std::string> parts = {comm("one", 1), comm("two", 2), round(),
                                          comm("three", 3)};
  const std::string head = pipe_header() + attribute_record(attribute_with(kTrailer));
  std::string bytes = head;
  std::vector<size_t> ends;
  for (const std::string& part : parts) {
    bytes += part;
    ends.push_back(bytes.size());
  }
  for (size_t size = head.size(); size <= bytes.size(); ++size) {
    const auto whole = static_cast<size_t>(
        std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= size; }));
    const size_t last = whole == 0 ? head.size() : ends[whole - 1];
    const Read all = read(std::string_view(bytes).substr(0, size));
    CHECK(all.records.size() == 1 + whole);
    REQUIRE(all.problems.size() == (size == last ? 0 : 1));
    if (size != last) {
      CHECK(all.problems[0].rfind("byte " + std::to_string(last) + ":", 0) == 0);
    }
  }
  // As a file: the header knows how much is missing.
  const std::string file = file_of({attribute_with(kTrailer)}, parts[0] + parts[1]);
  const Read cut = read(std::string_view(file).substr(0, file.size() - 10));
  CHECK(cut.records.size() == 1);
  CHECK(cut.problems.size() == 2);
}

TEST_CASE("perf.data: sizes that cannot be") {
  // A record without a size; claims of more attributes, ids and features than there are.
  std::string records = comm("one", 1);
  records += Fields().put(uint32_t{3}).put(uint16_t{0}).put(uint16_t{0}).bytes();
  const Read none = read(pipe_header() + attribute_record(attribute_with(kTrailer)) + records);
  CHECK(none.records.size() == 2);
  CHECK(none.problems.size() == 1);
  for (size_t at = 8; at < kFileHeaderSize; at += 8) {
    for (const char fill : {'\xFF', '\x7F', '\x01'}) {
      std::string bytes = file_of({attribute_with(kTrailer, {1, 2, 3})}, comm("one", 1));
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(at),
                bytes.begin() + static_cast<ptrdiff_t>(at) + 8, fill);
      auto reader = Reader::open(bytes);
      if (reader) {
        Record record;
        while (reader->next(record)) {
        }
      }
    }
  }
}

TEST_CASE("perf.data: rounds put the records in the order of time") {
  const std::string head = pipe_header() + attribute_record(attribute_with(kTrailer));
  const std::string bytes = head + comm("d", 40) + comm("b", 20) + round() + comm("c", 30) +
                            comm("f", 60) + round() + comm("e", 50) + comm("e2", 50) +
                            comm("now", 0);
  std::vector<std::string> names = names_in_order(bytes, 1000);
  // "now" has no time: it comes where it stands, behind what the rounds had made due.
  CHECK(std::find(names.begin(), names.end(), "now") != names.end());
  names.erase(std::find(names.begin(), names.end(), "now"));
  CHECK(names == std::vector<std::string>{"b", "c", "d", "e", "e2", "f"});
  // With little room everything still comes, once.
  names = names_in_order(bytes, 2);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"b", "c", "d", "e", "e2", "f", "now"});
}

TEST_CASE("perf.data: features") {
  const auto text = [](const std::string& value) {
    return Fields()
        .put(static_cast<uint32_t>(value.size() + 1))
        .put_bytes(value)
        .put_bytes(std::string(1, '\0'))
        .bytes();
  };
  const std::string id(20, '\x5A');
  const std::string build_id =
      record_bytes(RecordType::kHeaderBuildId, 0,
                   Fields().put(uint32_t{1}).put_bytes(id).put(uint32_t{0}).put_text("/x").bytes());
  const WrittenAttribute attribute = attribute_with(kTrailer, {7});
  const std::string events = Fields()
                                 .put(uint32_t{1})
                                 .put(uint32_t{128})
                                 .put_bytes(attribute.bytes())
                                 .put(uint32_t{1})
                                 .bytes() +
                             text("mem:0x10:w") + Fields().put(uint64_t{7}).bytes();
  const std::string bytes = file_of(
      {attribute}, comm("one", 1),
      {{2, build_id},
       {3, text("host")},
       {11, Fields().put(uint32_t{2}).bytes() + text("perf") + text("record")},
       {12, events},
       {16, Fields().put(uint32_t{1}).put(uint32_t{8}).bytes() + text("uprobe")},
       {21, Fields().put(uint64_t{1}).put(uint64_t{9}).bytes()},
       {29, Fields().put(uint32_t{1}).put(uint32_t{4}).put(uint64_t{5}).put(uint64_t{6}).bytes()}});
  auto reader = Reader::open(bytes);
  REQUIRE(reader);
  const FileInfo& info = reader->info();
  CHECK(reader->problems().empty());
  CHECK(info.hostname == "host");
  CHECK(info.command_line == std::vector<std::string>{"perf", "record"});
  CHECK(info.attributes[0].name == "mem:0x10:w");
  CHECK(info.pmus.at(8) == "uprobe");
  REQUIRE(info.build_ids.size() == 1);
  CHECK(info.build_ids[0].id == id);
  CHECK(info.build_ids[0].path == "/x");
  CHECK(*info.last_sample_time == 9);
  CHECK(info.clock_data->record_clock == 6);
}

TEST_CASE("perf.data: raw trace dumps with their list are read as one") {
  const std::string list =
      "tsomon-pt 1\n# of a test\nclock 10 500 1000\nprocessor 90 2 3 30\n"
      "mmap 5 100 0x400000 0x1000 0 /bin/my prog\ncomm 5 5 90 my prog\n"
      "fork 5 6 5 5 110\nswitch in 2 120 5 6\nswitch out 2 130 5 6\nexit 5 6 140\n"
      "trace cpu 2 dump.pt\ntrace thread 5 6 other.pt\n";
  const auto bytes = perf_data_of_list(
      list, [](const std::string& path) -> Result<std::string> { return "bytes of " + path; });
  REQUIRE(bytes);
  const Read all = read(*bytes);
  CHECK(all.problems.empty());
  std::vector<std::string> kinds;
  for (const Record& record : all.records) {
    kinds.emplace_back(record_name(record.type));
  }
  CHECK(kinds == std::vector<std::string>{"ATTR", "ATTR", "AUXTRACE_INFO", "TIME_CONV", "MMAP2",
                                          "COMM", "FORK", "SWITCH", "SWITCH", "EXIT",
                                          "ITRACE_START", "AUXTRACE", "AUXTRACE"});
  CHECK(parse_auxtrace_info(all.records[2])->values[12] == 90);
  CHECK(parse_mmap(all.records[4])->path == "/bin/my prog");
  CHECK(all.records[7].sample_id.cpu == 2);
  CHECK(all.records[7].sample_id.tid == 6);
  CHECK(parse_switch(all.records[8])->out);
  CHECK(parse_auxtrace(all.records[11])->data == "bytes of dump.pt");
  CHECK(parse_auxtrace(all.records[11])->cpu == 2);
  CHECK(parse_auxtrace(all.records[12])->tid == 6);
  for (const char* wrong :
       {"", "tsomon-pt 2\n", "tsomon-pt 1\nclock 1\n", "tsomon-pt 1\nclock 40 1 1\n",
        "tsomon-pt 1\nswitch by 1 1 1 1\n", "tsomon-pt 1\nmmap 5 100 0x40000 1 0\n",
        "tsomon-pt 1\nexit 5 6 14x\n", "tsomon-pt 1\nwhat\n"}) {
    const auto refused = perf_data_of_list(
        wrong, [](const std::string&) -> Result<std::string> { return std::string(); });
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("expected") != std::string::npos);
  }
}

TEST_CASE("perf.data: a directory's files are read as one, by time") {
  const auto whole_of = [](const std::vector<std::string>& records) {
    std::string all;
    for (const std::string& record : records) {
      all += record;
    }
    return all;
  };
  const std::vector<WrittenFeature> features{{3, std::string("\5\0\0\0host\0", 9)}};
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    // Parts, each in any order, compressed or not, with trace data that have no time.
    std::vector<std::string> parts(random() % 4);
    std::vector<std::pair<uint64_t, std::string>> expected;
    for (std::string& part : parts) {
      std::vector<std::string> records;
      for (uint64_t left = random() % 20; left != 0; --left) {
        const uint64_t time = 1 + random() % 1000;
        records.push_back(comm(std::to_string(random()), time));
        expected.emplace_back(time, records.back());
      }
      part = random() % 2 == 0 ? whole_of(records)
                               : compressed({whole_of(records)}, RecordType::kCompressed);
    }
    const std::string begin = comm("begin", 0);
    const std::string data = file_of({attribute_with(kTrailer)}, begin, features);
    std::vector<std::string_view> views(parts.begin(), parts.end());
    const auto joined = join_directory(data, views);
    REQUIRE(joined);
    CHECK(joined->problems.empty());
    std::stable_sort(expected.begin(), expected.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const Read found = read(joined->bytes);
    CHECK(found.problems.empty());
    REQUIRE(found.records.size() == expected.size() + 1);
    CHECK(found.records[0].payload == std::string_view(begin).substr(8));
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(found.records[i + 1].payload == std::string_view(expected[i].second).substr(8));
    }
    const auto reader = Reader::open(joined->bytes);
    CHECK(reader->info().hostname == "host");
  }
  // What is cut off is told with its file; what is no recording is refused.
  const std::string data = file_of({attribute_with(kTrailer)}, comm("begin", 0), features);
  const std::string part = comm("whole", 5) + comm("cut", 6);
  const auto cut =
      join_directory(data, {std::string_view(), std::string_view(part).substr(0, part.size() - 8)});
  REQUIRE(cut);
  REQUIRE(cut->problems.size() == 1);
  CHECK(cut->problems[0].starts_with("data.1: byte "));
  CHECK(read(cut->bytes).records.size() == 2);
  CHECK_FALSE(join_directory("no perf.data", {}));
  CHECK_FALSE(join_directory(pipe_header() + comm("pipe", 1), {}));
  for (size_t size = 0; size < data.size(); ++size) {
    join_directory(std::string_view(data).substr(0, size), {part});
  }
}
