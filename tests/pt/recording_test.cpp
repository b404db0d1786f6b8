// Intel PT in a perf.data through `tsomon check` and `tsomon script`, against the stepped run.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <intel-pt.h>

#include "decoders/pt/flow/flow.h"
#include "decoders/pt/memory/trace.h"
#include "monitor/check/check_input.h"
#include "monitor/input/load.h"
#include "monitor/pack/make_pack.h"
#include "tests/monitor/folder.h"
#include "tests/pt/traced_programs.h"
#include "tests/pt/written_recording.h"

using namespace tsomon;
using namespace tsomon::test;
using tsomon::testing::Folder;

namespace {

PerfOptions with_unit(const std::string& unit) {
  PerfOptions options;
  options.units = {unit};
  return options;
}

LoadedTrace load(const std::string& path, const std::vector<std::string>& units = {}) {
  PerfOptions options;
  options.units = units;
  auto loaded = load_trace(path, InputFormat::kAuto, options);
  REQUIRE_MESSAGE(loaded, loaded.error().to_string());
  CHECK(loaded->format == InputFormat::kPerf);
  return std::move(*loaded);
}

CheckedInput checked(const std::string& path, const std::vector<std::string>& units = {}) {
  PerfOptions options;
  options.units = units;
  auto result = check_input(path, InputFormat::kAuto, {}, options);
  REQUIRE_MESSAGE(result, result.error().to_string());
  return std::move(*result);
}

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

size_t count(const Trace& trace, EventKind kind) {
  return static_cast<size_t>(
      std::count_if(trace.events.begin(), trace.events.end(),
                    [&](const Event& event) { return event.kind() == kind; }));
}

EncodedRun encoded_on(const SteppedRun& run, unsigned cpus) {
  EncodeOptions options;
  options.cpus = cpus;
  return encode(run, options);
}

// What a processor writes with ptw=1,branch=0,fup_on_ptw=1.
EncodedRun values_only(const SteppedRun& run, bool addresses) {
  EncodedRun encoded;
  for (uint32_t thread = 0; thread < run.threads.size(); ++thread) {
    EncodedStream stream;
    stream.thread = thread;
    stream.bytes.resize(run.steps.size() * 40 + 4096);
    pt_config config;
    pt_config_init(&config);
    config.begin = stream.bytes.data();
    config.end = config.begin + stream.bytes.size();
    pt_encoder* const encoder = pt_alloc_encoder(&config);
    REQUIRE(encoder != nullptr);
    const auto write = [&](pt_packet_type type, auto fill) {
      pt_packet packet{};
      packet.type = type;
      fill(packet.payload);
      REQUIRE(pt_enc_next(encoder, &packet) > 0);
    };
    const auto time = [&](size_t step) {
      write(ppt_tsc, [&](auto& payload) { payload.tsc.tsc = time_of(step); });
    };
    write(ppt_psb, [](auto&) {});
    time(0);
    write(ppt_psbend, [](auto&) {});
    for (size_t i = 0; i < run.steps.size(); ++i) {
      const test::Step& step = run.steps[i];
      const x86::Instruction& code = run.at(step.ip);
      // What follows a value is taken to be executed: not so where the stepper stopped.
      if (step.thread != thread || !code.ptwrite || i + 200 > run.steps.size()) {
        continue;
      }
      time(i - 1);
      write(ppt_ptw, [&](auto& payload) {
        payload.ptw.plc = code.source.size == 8 ? 1 : 0;
        payload.ptw.payload = step.registers.value(code.source.reg);
        if (code.source.size != 8) {
          payload.ptw.payload &= 0xFFFFFFFFU;
        }
        payload.ptw.ip = addresses ? 1 : 0;
      });
      if (addresses) {
        write(ppt_fup, [&](auto& payload) {
          payload.ip.ipc = pt_ipc_sext_48;
          payload.ip.ip = step.ip;
        });
      }
      time(i + 1);
    }
    uint64_t size = 0;
    pt_enc_get_offset(encoder, &size);
    pt_free_encoder(encoder);
    stream.bytes.resize(size);
    encoded.streams.push_back(std::move(stream));
  }
  return encoded;
}

}  // namespace

TEST_CASE("perf.data with PT: accesses of the run, per thread, per CPU and as raw dumps") {
  const Folder folder;
  for (const char* name : {"hash_table", "queue", "threads"}) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    for (const unsigned cpus : {0U, 2U}) {
      CAPTURE(cpus);
      const EncodedRun encoded = encoded_on(run, cpus);
      const pt::DecodedTrace direct = make_trace(decode_flow(input_of(run, encoded)));
      const std::string path = folder.write("perf.data", perf_data_of(run, encoded));
      const LoadedTrace loaded = load(path);
      const size_t found = check_accesses(run, loaded.trace, 1);
      CHECK(found > 0);
      CHECK(loaded.trace.complete == direct.trace.complete);
      CHECK(loaded.trace.sampled == !loaded.trace.complete);
      CHECK(loaded.trace.lost_events == direct.counts.unknown);
      CHECK(mentions(loaded.warnings, "are known"));
      if (cpus == 0) {
        CHECK(loaded.trace.events.size() == direct.trace.events.size());
      } else {  // the times of the switches are rounded
        CHECK(loaded.trace.events.size() * 10 > direct.trace.events.size() * 9);
      }
      const std::string list = trace_list_of(
          run, encoded,
          [&](const std::string& file, const std::string& bytes) { folder.write(file, bytes); });
      const LoadedTrace raw = load(folder.write("list", list));
      CHECK(raw.trace.events.size() * 10 > loaded.trace.events.size() * 9);
      CHECK(check_accesses(run, raw.trace, 1) > 0);
    }
  }
}

TEST_CASE("perf.data with PT: the trace in samples that overlap is the trace") {
  const Folder folder;
  for (const char* name : {"hash_table", "queue", "threads"}) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    for (const unsigned cpus : {0U, 2U}) {
      CAPTURE(cpus);
      const EncodedRun encoded = encoded_on(run, cpus);
      const LoadedTrace whole = load(folder.write("whole", perf_data_of(run, encoded)));
      RecordingOptions options;
      options.aux_size = 5997;
      options.aux_every = 1001;
      const std::string path = folder.write("sampled", perf_data_of(run, encoded, options));
      const LoadedTrace sampled = load(path);
      CHECK(sampled.trace.events.size() == whole.trace.events.size());
      CHECK(check_accesses(run, sampled.trace, 1) > 0);
      // Nobody knows what came before the first sample, and behind the last one.
      CHECK_FALSE(sampled.trace.complete);
      CHECK(sampled.trace.sampled);
      CHECK(mentions(sampled.warnings, " 0 do not certainly continue the one before"));
      CHECK(checked(path).report.verdict() != Verdict::kClean);
    }
  }
}

TEST_CASE("perf.data with PT: between samples that do not overlap something is missing") {
  const Folder folder;
  for (const char* name : {"hash_table", "queue", "threads"}) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    EncodeOptions encoding;
    encoding.psb_every = 500;
    const EncodedRun encoded = encode(run, encoding);
    const LoadedTrace whole = load(folder.write("whole", perf_data_of(run, encoded)));
    RecordingOptions options;
    options.aux_size = 2000;
    options.aux_every = 2500;
    const LoadedTrace sampled = load(folder.write("sampled", perf_data_of(run, encoded, options)));
    CHECK(sampled.trace.events.size() < whole.trace.events.size());
    CHECK(check_accesses(run, sampled.trace, 1) > 0);
    CHECK_FALSE(sampled.trace.complete);
    CHECK(mentions(sampled.warnings, "do not certainly continue the one before"));
  }
}

TEST_CASE("perf.data with PT: samples of the trace with sizes that cannot be") {
  const Folder folder;
  const SteppedRun& run = stepped("hash_table");
  RecordingOptions options;
  options.aux_size = 1000;
  options.aux_every = 1000;
  const EncodedRun encoded = encoded_on(run, 0);
  const std::string good = perf_data_of(run, encoded, options);
  const auto& bytes = encoded.streams[0].bytes;
  REQUIRE(bytes.size() > 1000);
  const size_t data = good.find(std::string(bytes.begin(), bytes.begin() + 1000));
  REQUIRE(data != std::string::npos);
  for (const uint64_t size : {uint64_t{1} << 63, ~uint64_t{0}, uint64_t{1008}, uint64_t{65536}}) {
    CAPTURE(size);
    std::string bad = good;
    const size_t at = data - sizeof size;  // of the first sample
    bad.replace(at, sizeof size, {reinterpret_cast<const char*>(&size), sizeof size});
    const LoadedTrace loaded = load(folder.write("bad", bad));
    CHECK_FALSE(loaded.trace.complete);
    CHECK(mentions(loaded.warnings, "samples with trace data could not be read"));
  }
}

TEST_CASE("perf.data with PT: proofs need all threads of a program that perf started") {
  const Folder folder;
  for (const unsigned cpus : {0U, 2U}) {
    const SteppedRun& run = stepped("queue");
    EncodeOptions encoding;
    encoding.cpus = cpus;
    encoding.sample_every = 499;
    const EncodedRun encoded = encode(run, encoding);
    const auto lost = [&](const RecordingOptions& options) {
      const LoadedTrace loaded =
          load(folder.write("perf.data", perf_data_of(run, encoded, options)));
      CHECK(check_accesses(run, loaded.trace, 1) > 0);
      return loaded.trace.lost_events;
    };
    RecordingOptions options;
    options.sample_every = encoding.sample_every;
    const uint64_t some = lost(options);
    options.whole = true;
    CHECK(lost(options) < some);
    options.snapshot = true;
    CHECK(lost(options) == some);
  }
}

TEST_CASE("perf.data with PT: units are functions by name, and what is incomplete is never clean") {
  const Folder folder;
  const SteppedRun& run = stepped("hash_table");
  const EncodedRun encoded = encoded_on(run, 0);
  const std::string path = folder.write("perf.data", perf_data_of(run, encoded));
  size_t calls = 0;
  const LoadedTrace loaded = load(path, {"slot_of*"});
  for (const test::Step& step : run.steps) {
    calls += run.at(step.ip).branch == x86::Branch::kCall ? 1 : 0;
  }
  REQUIRE(calls > 50);
  CHECK(count(loaded.trace, EventKind::kUnitBegin) == calls);
  CHECK(std::string(loaded.trace.symbols.labels.text(0)).rfind("slot_of", 0) == 0);

  // One thread, every address known.
  const CheckedInput whole = checked(path, {"slot_of*"});
  CHECK(whole.report.complete());
  CHECK(whole.report.verdict() == Verdict::kClean);
  CHECK(whole.report.units > calls);
  REQUIRE(whole.report.coverage);
  CHECK(whole.report.coverage->unknown == 0);
  CHECK(whole.report.coverage->gaps == 0);
  CHECK(report_json(path, whole.symbols, whole.report)["coverage"]["instructions"] ==
        run.steps.size());

  RecordingOptions damaged;
  damaged.truncated = 2;
  const CheckedInput cut = checked(folder.write("cut", perf_data_of(run, encoded, damaged)));
  CHECK(cut.report.verdict() == Verdict::kInconclusive);
  CHECK_FALSE(cut.report.complete());
  CHECK(cut.report.coverage->gaps > 0);
  CHECK(mentions(cut.warnings, "trace bytes were lost"));

  const auto wrong = load_trace(path, InputFormat::kAuto, with_unit("no_such_function"));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("no_such_function") != std::string::npos);
  const std::string text = folder.write("text", "T1|w(x)|1\n");
  CHECK_FALSE(load_trace(text, InputFormat::kAuto, with_unit("main")));
}

TEST_CASE("perf.data with PT: what is assumed finds more, the quick way less") {
  const Folder folder;
  const auto found = [&](const SteppedRun& run, const PerfOptions& options,
                         std::vector<std::string>* notes = nullptr) {
    const std::string path = folder.write("perf.data", perf_data_of(run, encoded_on(run, 0)));
    const auto loaded = load_trace(path, InputFormat::kAuto, options);
    REQUIRE(loaded);
    if (notes != nullptr) {
      *notes = loaded->warnings;
    }
    return check_accesses(run, loaded->trace, 1);
  };
  PerfOptions quick;
  quick.quick = true;
  PerfOptions assumed;
  assumed.assume_memory = true;
  assumed.assume_frames = true;
  std::vector<std::string> notes;
  const SteppedRun& strings = stepped("strings");
  CHECK(found(strings, quick) < found(strings, {}));
  CHECK(found(strings, {}) <= found(strings, assumed, &notes));
  CHECK_FALSE(mentions(notes, "several threads"));
  const SteppedRun& queue = stepped("queue");
  CHECK(found(queue, {}) <= found(queue, assumed, &notes));
  CHECK(mentions(notes, "several threads"));
  // Frames that are certain not to be shared are left out.
  const std::string path = folder.write("perf.data", perf_data_of(queue, encoded_on(queue, 0)));
  const auto left_out = [&](const PerfOptions& options) {
    const auto judged = check_input(path, InputFormat::kAuto, {}, options);
    REQUIRE(judged);
    return judged->report.coverage->stack;
  };
  CHECK(left_out({}) < left_out(assumed));
  const auto refused = load_trace(folder.write("text", "T1|w(x)|1\n"), InputFormat::kAuto, quick);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kUsage);
}

TEST_CASE("perf.data with PT: units between markers and written values") {
  const Folder folder;
  const SteppedRun& run = stepped("left_early_ptwrite");
  const std::string path = folder.write("perf.data", perf_data_of(run, encoded_on(run, 0)));
  const LoadedTrace written = load(path, {"ptwrite:0x7457a00000000001..0x7457a00000000002:marked"});
  CHECK(count(written.trace, EventKind::kUnitBegin) >= 50);
  CHECK(count(written.trace, EventKind::kUnitEnd) >= 50);
  CHECK(written.trace.symbols.labels.text(0) == "marked");
#if __has_include(<sys/sdt.h>)
  const LoadedTrace marked = load(path, {"usdt:left_early:begin..end"});
  CHECK(count(marked.trace, EventKind::kUnitBegin) >= 50);
  CHECK(count(marked.trace, EventKind::kUnitEnd) >= 50);
#endif
  for (const char* wrong : {"ptwrite:1", "ptwrite:1..x", "ptwrite:1..2:", "usdt:left_early:begin",
                            "usdt:left_early:begin..no_such", "usdt:nobody:begin..end"}) {
    CAPTURE(wrong);
    const auto refused = load_trace(path, InputFormat::kAuto, with_unit(wrong));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::kUsage);
  }
}

TEST_CASE("perf.data with PT: units of threads that interleave are violated, whatever is missing") {
  const Folder folder;
  const SteppedRun& run = stepped("threads");
  const std::string path = folder.write("perf.data", perf_data_of(run, encoded_on(run, 0)));
  const CheckedInput input = checked(path, {"transfer*"});
  CHECK_FALSE(input.report.complete());
  CHECK(input.report.coverage->unknown > 0);
#if defined(__clang__)
  // It adds to an array on the stack in between, at places that are not known: too much stays open.
  CHECK(input.report.verdict() != Verdict::kClean);
#else
  CHECK(input.report.verdict() == Verdict::kDefinite);
  // The counter without a mutex is read and written by all of them in turn.
  REQUIRE_FALSE(input.report.findings.empty());
  CHECK(input.report.findings[0].violation.cycle.size() >= 2);
#endif
  // The call of main was not seen: no unit but single accesses.
  CHECK(checked(path, {"main"}).report.verdict() == Verdict::kInconclusive);
}

TEST_CASE("perf.data with PT: written values without branches") {
  const Folder folder;
  RecordingOptions options;
  options.config = 1 | 1U << 5 | 1U << 10 | 1U << 12;  // pt, fup_on_ptw, tsc, ptw
  for (const char* name : {"pointer_chasing_ptwrite", "hash_table_ptwrite"}) {
    const SteppedRun& run = stepped(name);
    const EncodedRun encoded = values_only(run, true);
    const LoadedTrace loaded = load(folder.write(name, perf_data_of(run, encoded, options)));
    size_t values = 0;
    for (const test::Step& step : run.steps) {
      values += run.at(step.ip).ptwrite ? 1 : 0;
    }
    REQUIRE(values > 100);
    CHECK(check_accesses(run, loaded.trace, 1) * 2 > values);
    CHECK_FALSE(loaded.trace.complete);
    CHECK(loaded.trace.sampled);
    const EncodedRun without = values_only(run, false);
    const LoadedTrace none = load(folder.write(name, perf_data_of(run, without, options)));
    CHECK(none.trace.events.empty());
    CHECK(mentions(none.warnings, "fup_on_ptw"));
  }
}

TEST_CASE("perf.data with PT: code that is missing or another's is not known, and counted") {
  const Folder folder;
  const SteppedRun& run = stepped("recursion");
  const EncodedRun encoded = encoded_on(run, 0);
  RecordingOptions missing;
  missing.path = [](const std::string& path) { return "/nonexistent" + path; };
  RecordingOptions replaced;
  replaced.build_id = std::string(20, 'x');
  for (const RecordingOptions& options : {missing, replaced}) {
    const CheckedInput input =
        checked(folder.write("perf.data", perf_data_of(run, encoded, options)));
    CHECK(input.report.verdict() == Verdict::kInconclusive);
    CHECK(input.report.events == 0);
    CHECK(input.report.coverage->gaps > 0);
    CHECK(mentions(input.warnings, "traced_recursion: no such file"));
    CHECK(mentions(input.warnings, "trace cannot be followed"));
  }
}

TEST_CASE("perf.data with PT: kernel and user code of whole CPUs, switches by tracepoints") {
  const Folder folder;
  for (const char* name : {"queue", "threads"}) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    EncodeOptions encoding;
    encoding.cpus = 2;
    const LoadedTrace user =
        load(folder.write("user", perf_data_of(run, encode(run, encoding))), {"main"});
    encoding.kernel = true;
    RecordingOptions options;
    options.kernel = true;
    const EncodedRun encoded = encode(run, encoding);
    const LoadedTrace both = load(folder.write("both", perf_data_of(run, encoded, options)));
    CHECK(check_accesses(run, both.trace, 1) * 10 > check_accesses(run, user.trace, 1) * 9);
    options.tracepoints = true;
    const LoadedTrace old = load(folder.write("old", perf_data_of(run, encoded, options)));
    CHECK(check_accesses(run, old.trace, 1) == check_accesses(run, both.trace, 1));
    CHECK(old.trace.events.size() == both.trace.events.size());
  }
}

TEST_CASE("perf.data with PT: threads of a CPU without switches, and traces of another kind") {
  const Folder folder;
  const SteppedRun& run = stepped("queue");
  RecordingOptions options;
  options.switches = false;
  const CheckedInput unknown =
      checked(folder.write("perf.data", perf_data_of(run, encoded_on(run, 2), options)));
  CHECK(unknown.report.verdict() == Verdict::kInconclusive);
  CHECK(mentions(unknown.warnings, "--switch-events"));

  // As if the records had been lost from a quarter on.
  EncodedRun encoded = encoded_on(run, 2);
  const int64_t known = encoded.switches[encoded.switches.size() / 4].time;
  options.switches = true;
  options.switches_until = known;
  const LoadedTrace partly = load(folder.write("perf.data", perf_data_of(run, encoded, options)));
  CHECK(check_accesses(run, partly.trace, 1) > 0);
  CHECK_FALSE(partly.trace.complete);
  CHECK(mentions(partly.warnings, "no thread was known"));
  options = RecordingOptions();
  options.trace_type = 3;
  const CheckedInput other =
      checked(folder.write("perf.data", perf_data_of(run, encoded_on(run, 0), options)));
  CHECK(other.report.verdict() == Verdict::kInconclusive);
  CHECK(mentions(other.warnings, "trace data of type 3"));
}

TEST_CASE("perf.data with PT: registers of samples give addresses, and none that is wrong") {
  const Folder folder;
  for (const char* name : {"pointer_chasing", "strings", "signals", "threads"}) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    for (const unsigned cpus : {0U, 2U}) {
      CAPTURE(cpus);
      EncodeOptions encoding;
      encoding.cpus = cpus;
      encoding.sample_every = 53;
      const EncodedRun encoded = encode(run, encoding);
      RecordingOptions options;
      const LoadedTrace alone = load(folder.write("alone", perf_data_of(run, encoded, options)));
      options.sample_every = 53;
      const LoadedTrace sampled = load(folder.write("often", perf_data_of(run, encoded, options)));
      CHECK(check_accesses(run, sampled.trace, 1) > check_accesses(run, alone.trace, 1));
      const auto placed = std::find_if(
          sampled.warnings.begin(), sampled.warnings.end(),
          [](const auto& line) { return line.find("have a certain place") != std::string::npos; });
      REQUIRE(placed != sampled.warnings.end());
      const size_t of = placed->find(" of ");
      CHECK(std::stoul(*placed) * 10 > std::stoul(placed->substr(of + 4)) * 9);
      options.precise = true;
      const LoadedTrace precise = load(folder.write("pebs", perf_data_of(run, encoded, options)));
      CHECK(check_accesses(run, precise.trace, 1) >= check_accesses(run, alone.trace, 1));
      CHECK(mentions(precise.warnings, "have a certain place"));

      encoding.pebs_every = std::exchange(encoding.sample_every, 0);
      const EncodedRun with_pebs = encode(run, encoding);
      const LoadedTrace in_trace = load(folder.write("via_pt", perf_data_of(run, with_pebs)));
      const size_t found = check_accesses(run, in_trace.trace, 1);
      // A loop of three loads goes round too often between two times.
      const bool can_be_placed = std::string(name) != "pointer_chasing";
      CHECK(found >= check_accesses(run, alone.trace, 1) + (can_be_placed ? 1 : 0));
      CHECK(mentions(in_trace.warnings, "have a certain place"));
    }
  }
}

TEST_CASE("perf.data with PT: files that are cut off anywhere, and flipped bits") {
  const Folder folder;
  const SteppedRun& run = stepped("queue");
  const std::string whole = perf_data_of(run, encoded_on(run, 2));
  const size_t all = load(folder.write("perf.data", whole)).trace.events.size();
#ifdef TSOMON_SANITIZED
  constexpr size_t kCuts = 8;
#else
  constexpr size_t kCuts = 40;
#endif
  for (size_t i = 0; i < kCuts; ++i) {
    const std::string cut = folder.write("cut", whole.substr(0, whole.size() * i / kCuts));
    if (const auto loaded = load_trace(cut, InputFormat::kPerf)) {
      CHECK_FALSE(loaded->trace.complete);
      CHECK(loaded->trace.events.size() < all);
      check_accesses(run, loaded->trace, 1);
    }
    std::string flipped = whole;
    flipped[whole.size() * i / kCuts] ^= static_cast<char>(1 << i % 8);
    const auto loaded = load_trace(folder.write("flipped", flipped), InputFormat::kPerf);
    CHECK((loaded || !loaded.error().message.empty()));
  }
}

TEST_CASE("perf.data with PT: a pack has the code that it needs") {
  const Folder folder;
  const SteppedRun& run = stepped("queue");
  const std::string path = folder.write("perf.data", perf_data_of(run, encoded_on(run, 0)));
  std::string bytes;
  const auto report = make_pack(path, {}, [&](std::string_view piece) {
    bytes += piece;
    return Result<void>();
  });
  REQUIRE_MESSAGE(report, report.error().to_string());
  CHECK(report->missing.empty());
  CHECK(report->code > 0);
  const std::string packed = folder.write("pack", bytes);
  FileSearch nowhere;
  nowhere.sysroot = "/nonexistent";
  const auto here = load_trace(path);
  const auto without = load_trace(path, InputFormat::kAuto, {}, nowhere);
  const auto from_pack = load_trace(packed, InputFormat::kAuto, {}, nowhere);
  REQUIRE(here);
  REQUIRE(without);
  REQUIRE_MESSAGE(from_pack, from_pack.error().to_string());
  CHECK(from_pack->format == InputFormat::kPerf);
  CHECK(from_pack->trace.events.size() == here->trace.events.size());
  CHECK(from_pack->warnings == here->warnings);
  CHECK(without->trace.events.size() < here->trace.events.size());
}
