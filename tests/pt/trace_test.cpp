// PT as a trace of events: against the accesses and calls of the stepped run.
#include "decoders/pt/memory/trace.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "monitor/process/elf_image.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;

namespace {

// The function that is called most often.
uint64_t busiest_function(const SteppedRun& run, size_t& calls) {
  std::map<uint64_t, size_t> targets;
  for (const Step& step : run.steps) {
    if (run.at(step.ip).branch == x86::Branch::kCall) {
      ++targets[step.next];
    }
  }
  const auto most = std::max_element(targets.begin(), targets.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  REQUIRE(most != targets.end());
  calls = most->second;
  return most->first;
}

size_t count(const Trace& trace, EventKind kind) {
  return static_cast<size_t>(
      std::count_if(trace.events.begin(), trace.events.end(),
                    [&](const Event& event) { return event.kind() == kind; }));
}

uint64_t address_of(const SteppedRun& run, const std::string& name) {
  for (const MappedCode& code : run.code) {
    const auto image = attach::ElfImage::open(code.file, code.file);
    if (!image) {
      continue;
    }
    for (const attach::Symbol& symbol : (*image)->functions()) {
      const auto offset = (*image)->offset_of(symbol.address);
      if (symbol.text() == name && offset && *offset >= code.offset &&
          *offset - code.offset < code.size) {
        return *offset - code.offset + code.address;
      }
    }
  }
  FAIL("no " << name);
  return 0;
}

}  // namespace

TEST_CASE("events are accesses of the run, in their time, threads in their order") {
  for (const std::string& name : traced_programs()) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    const EncodedRun encoded = encode(run);
    const pt::Flow flow = decode_flow(input_of(run, encoded));
    uint64_t unknown = ~uint64_t{0};
    for (const bool all_threads : {false, true}) {
      pt::TraceOptions options;
      options.all_threads = all_threads;
      const pt::DecodedTrace decoded = make_trace(flow, options);
      const Trace& trace = decoded.trace;
      CHECK(trace.complete == (decoded.counts.unknown == 0));
      CHECK(check_accesses(run, trace, 0) > 0);
      CHECK(decoded.counts.unknown <= unknown);
      CHECK((all_threads || decoded.counts.through_memory == 0));
      unknown = decoded.counts.unknown;
    }
  }
}

TEST_CASE("what is found in damaged traces are accesses of the run") {
  for (const std::string& name : traced_programs()) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    EncodeOptions encoding;
    encoding.overflow_one_in = 400;
    const EncodedRun encoded = encode(run, encoding);
    const pt::Flow flow = decode_flow(input_of(run, encoded));
    for (const bool more : {false, true}) {
      pt::TraceOptions options;
      options.frames_before = more;
      options.all_threads = more;  // nothing is proved where there are gaps
      options.memory = more && run.threads.size() == 1;
      const pt::DecodedTrace decoded = make_trace(flow, options);
      CHECK(!decoded.trace.complete);
      check_accesses(run, decoded.trace, 0);
    }
  }
}

TEST_CASE("units are the calls of a function") {
  for (const char* name : {"hash_table", "recursion"}) {
    const SteppedRun& run = stepped(name);
    size_t calls = 0;
    const uint64_t entry = busiest_function(run, calls);
    REQUIRE(calls > 50);
    pt::TraceOptions options;
    options.units.functions = {{"busy", entry, run.threads[0]}};
    options.branches = true;
    EncodeOptions encoding;
    EncodedRun encoded = encode(run, encoding);
    const pt::Flow flow = decode_flow(input_of(run, encoded));
    const Trace trace = make_trace(flow, options).trace;
    CHECK(count(trace, EventKind::kUnitBegin) == calls);
    CHECK(count(trace, EventKind::kUnitEnd) <= calls);
    CHECK(count(trace, EventKind::kUnitEnd) + 110 >= calls);  // the last ones are open
    CHECK(count(trace, EventKind::kBranch) > calls);
    // Depth never falls below zero.
    int depth = 0;
    for (const Event& event : trace.events) {
      depth += event.kind() == EventKind::kUnitBegin ? 1 : 0;
      depth -= event.kind() == EventKind::kUnitEnd ? 1 : 0;
      CHECK(depth >= 0);
    }

    encoding.overflow_one_in = 400;
    encoded = encode(run, encoding);
    const pt::DecodedTrace damaged = make_trace(decode_flow(input_of(run, encoded)), options);
    CHECK(!damaged.trace.complete);
    CHECK(damaged.counts.incomplete_units > 0);
    CHECK(count(damaged.trace, EventKind::kUnitBegin) < calls);
  }
}

TEST_CASE("units of functions that longjmp and exceptions leave hold nothing behind their end") {
  const SteppedRun& run = stepped("left_early");
  const int pid = run.threads[0];
  const uint64_t entry = address_of(run, "unit_of_work");
  for (const bool by_name : {false, true}) {
    CAPTURE(by_name);
    pt::TraceOptions options;
    options.units.functions = {{"work", entry, pid}};
    if (by_name) {
      options.units.leaving = {{address_of(run, "longjmp"), pid},
                               {address_of(run, "_Unwind_RaiseException"), pid}};
    }
    const EncodedRun encoded = encode(run);
    const pt::DecodedTrace decoded = make_trace(decode_flow(input_of(run, encoded)), options);
    size_t calls = 0;
    size_t at = 0;    // step
    size_t used = 0;  // events of it
    size_t ends = 0;
    bool in_unit = false;
    for (const Event& event : decoded.trace.events) {
      if (event.kind() == EventKind::kUnitEnd) {
        in_unit = false;
        continue;
      }
      const uint64_t ip =
          std::stoull(decoded.trace.symbols.location_text(event.location), nullptr, 16);
      if (used != 0 && (run.steps[at].ip != ip || used == run.at(ip).access_count)) {
        ++at;
        used = 0;
      }
      while (at < run.steps.size() && run.steps[at].ip != ip) {
        ++at;
      }
      REQUIRE(at < run.steps.size());
      if (event.kind() == EventKind::kUnitBegin) {
        in_unit = true;
        ++calls;
        // The function has been left when the stack is above its return address.
        const uint64_t stack = run.steps[at].registers.value(x86::Register::kRsp);
        for (ends = at; ends < run.steps.size(); ++ends) {
          if (run.steps[ends].registers.value(x86::Register::kRsp) > stack) {
            break;
          }
        }
      } else {
        ++used;
        CHECK((!in_unit || at < ends));
      }
    }
    CHECK(decoded.counts.incomplete_units >= 20);
    CHECK(calls >= (by_name ? 55 : 30));
  }
}

TEST_CASE("units between written values and between instructions") {
  const SteppedRun& run = stepped("left_early_ptwrite");
  const EncodedRun encoded = encode(run);
  const pt::Flow flow = decode_flow(input_of(run, encoded));
  std::vector<uint64_t> places;  // of the first PTWRITE and of the second one
  size_t written = 0;
  for (const Step& step : run.steps) {
    if (run.at(step.ip).ptwrite) {
      ++written;
      if (std::find(places.begin(), places.end(), step.ip) == places.end()) {
        places.push_back(step.ip);
      }
    }
  }
  REQUIRE(written >= 100);  // 120 of the whole program
  REQUIRE(places.size() == 2);
  pt::TraceOptions by_value;
  by_value.units.written = {{"marked", 0x7457a00000000001, 0x7457a00000000002}};
  pt::TraceOptions by_place;
  by_place.units.markers = {{"marked", places[0], run.threads[0], true},
                            {"marked", places[1], run.threads[0], false}};
  for (const pt::TraceOptions& options : {by_value, by_place}) {
    const pt::DecodedTrace decoded = make_trace(flow, options);
    CHECK(decoded.counts.incomplete_units == 0);
    CHECK(count(decoded.trace, EventKind::kUnitBegin) == (written + 1) / 2);
    CHECK(count(decoded.trace, EventKind::kUnitEnd) == written / 2);
    size_t inside = 0;
    bool in_unit = false;
    for (const Event& event : decoded.trace.events) {
      if (event.kind() == EventKind::kUnitBegin || event.kind() == EventKind::kUnitEnd) {
        in_unit = event.kind() == EventKind::kUnitBegin;
      } else {
        inside += in_unit ? 1 : 0;
      }
    }
    CHECK(inside >= written);  // `marked` is read and written
    CHECK(inside <= 2 * written);
  }
}

TEST_CASE("locked operations and fences") {
  const SteppedRun& run = stepped("queue");
  size_t locked = 0;
  for (const Step& step : run.steps) {
    locked += run.at(step.ip).locked() ? 1 : 0;
  }
  const EncodedRun encoded = encode(run);
  const Trace trace = make_trace(decode_flow(input_of(run, encoded))).trace;
  CHECK(locked >= 600);
  CHECK(count(trace, EventKind::kReadModifyWrite) >= 600);
  CHECK(count(trace, EventKind::kReadModifyWrite) + count(trace, EventKind::kFence) >= locked);
}

TEST_CASE(
    "a load that may have been forwarded from an unseen store takes place at any later time") {
  // mov %rax,(%rbx); mov 0x100(%rip),%ecx; mfence; mov 0x100(%rip),%ecx
  const std::vector<uint8_t> code{0x48, 0x89, 0x03, 0x8B, 0x0D, 0, 0x01, 0, 0,
                                  0x0F, 0xAE, 0xF0, 0x8B, 0x0D, 0, 0x01, 0, 0};
  constexpr uint64_t kBase = 0x401000;
  const auto read = [&](uint64_t address, uint8_t* to, size_t size) {
    const size_t at = address - kBase;
    const size_t there = std::min(size, code.size() - at);
    std::copy_n(code.begin() + static_cast<ptrdiff_t>(at), there, to);
    return there;
  };
  const auto loads = [&](uint64_t ip, uint32_t instructions, bool gap, bool partial) {
    pt::Flow flow;
    flow.code.push_back(std::make_unique<pt::CodeCache>());
    const pt::CodeBlock* block = flow.code[0]->find(1, ip, instructions, read);
    REQUIRE(block != nullptr);
    flow.threads.push_back({1, 1, {}});
    auto& entries = flow.threads[0].entries;
    if (gap) {
      entries.push_back({pt::PathEntry::Kind::kGap, false, {}, 0, 10});
    }
    entries.push_back({pt::PathEntry::Kind::kBlock, false, {block}, 10, 20});
    pt::TraceOptions options;
    options.partial = partial;
    const Trace trace = make_trace(flow, options).trace;
    std::vector<int64_t> ends;
    for (const Event& event : trace.events) {
      if (event.kind() == EventKind::kRead) {
        ends.push_back(trace.hi(event));
      }
    }
    return ends;
  };
  using Ends = std::vector<int64_t>;
  CHECK(loads(kBase, 4, false, false) == Ends{kTimeMax, 20});
  CHECK(loads(kBase + 3, 3, false, false) == Ends{20, 20});
  CHECK(loads(kBase + 3, 3, true, false) == Ends{kTimeMax, 20});
  CHECK(loads(kBase + 3, 3, false, true) == Ends{kTimeMax, 20});
}
