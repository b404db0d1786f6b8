// Instructions that were interrupted half done, handlers of signals, and samples of such places:
// each rule with the case that must stay unknown.
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/pt/flow/path_times.h"
#include "decoders/pt/memory/trace.h"
#include "tests/pt/code_bytes.h"
#include "tests/pt/proved_process.h"

using namespace tsomon;
using namespace tsomon::test;
using namespace tsomon::test::proofs;

TEST_CASE("an instruction that repeats is as old as the first time that it was interrupted") {
  const Piece up{{0xFC}};
  const Piece one{{0xB9, 1, 0, 0, 0}};           // mov $1,%ecx
  const Piece store_string{{0xF3, 0x48, 0xAB}};  // rep stosq
  const auto with = [&](bool resumed, bool elsewhere, int64_t fenced) {
    std::vector<Timed> other{{{up, set_rdi(kWord), one}, 20, 30}, {{fence}, fenced, fenced + 5}};
    if (elsewhere) {
      other.push_back({{}, 211, 220, 0, false, true});
    }
    other.push_back({{store_string}, 211, 220, 0, resumed});
    return beside(other);
  };
  CHECK(with(false, false, 40) == kProved);
  CHECK(with(true, false, 40) == kUnknown);
  CHECK(with(true, false, 203) == kUnknown);
  // Stores to several places, too: vpscatterqq %zmm1,(%rax,%zmm0,8){%k1}; xsave (%rsp)
  for (const Piece& scatters :
       {Piece{{0x62, 0xF2, 0xFD, 0x49, 0xA1, 0x0C, 0xC0}}, Piece{{0x48, 0x0F, 0xAE, 0x24, 0x24}}}) {
    CHECK(beside({{{scatters}, 211, 220, 0, false}}) == kProved);
    CHECK(beside({{{scatters}, 211, 220, 0, true}}) == kUnknown);
  }
  // The one that a handler interrupted may never come.
  CHECK(with(false, true, 40) == kUnknown);
  const Timed handler{{}, 150, 160, 0, false, true};
  CHECK(beside({handler, {{fence}, 300, 310}}) == kUnknown);
  CHECK(beside({{{load_unknown}, 20, 30}, {{}, 40, 50, 0, false, true}, {{fence}, 60, 70}}) ==
        kProved);
  Process process;
  Thread own = loader();
  own.insert(own.begin() + 1, handler);
  process.add(own);
  process.add({kBegins, kEnds});
  CHECK(process.last() == kUnknown);
}

TEST_CASE("the base of fs is not what a signal handler's return restores") {
  const Piece load_block{{0x64, 0x48, 0x8B, 0x04, 0x25, 0, 0, 0, 0}};  // mov %fs:0,%rax
  const Piece set_base{{0xF3, 0x48, 0x0F, 0xAE, 0xD0}};                // wrfsbase %rax
  const Piece leave{{0xC3}};
  const auto with = [&](const std::vector<Piece>& handler) {
    std::vector<Piece> pieces{handler};
    pieces.push_back(leave);
    const Timed jump{{}, 20, 30, 0, false, true};
    Process process;
    process.add({{{load_unknown}, 10, 20, kMake},
                 jump,
                 {pieces, 30, 40},
                 {{call(15)}, 40, 50},
                 jump,
                 {{load_block}, 60, 70, kMake + load_unknown.code.size()}});
    process.began(kFs, kPointer);
    return process.last();
  };
  CHECK(with({}) != kUnknown);
  CHECK(with({set_base}) == kUnknown);
}

TEST_CASE("samples at an instruction that repeats may be of its middle") {
  const Code code{0x90, 0xF3, 0xA4, 0x90};  // nop; rep movsb; nop
  const auto read = code_reader(code, kMake);
  pt::CodeCache cache;
  pt::ThreadPath path{1, 1, {}};
  PathEntry& entry = path.entries.emplace_back();
  entry.block = cache.find(1, kMake, 3, read);
  entry.lo = 0;
  entry.hi = 100;
  const auto known = [&](uint64_t ip, bool after) {
    pt::RegisterSample sample;
    sample.process = sample.thread = 1;
    sample.time = 50;
    sample.ip = ip;
    sample.after = after;
    for (const auto name : {x86::Register::kRcx, x86::Register::kRdi, x86::Register::kRbx}) {
      sample.registers.set(name, 1);
    }
    const auto placed = place_samples(path, {sample});
    REQUIRE(placed.size() == 1);
    return placed[0].registers.known;
  };
  const auto all = x86::mask_of(x86::Register::kRcx) | x86::mask_of(x86::Register::kRdi) |
                   x86::mask_of(x86::Register::kRbx);
  CHECK(known(kMake, false) == all);
  CHECK(known(kMake, true) == all);
  CHECK(known(kMake + 1, false) == x86::mask_of(x86::Register::kRbx));
  CHECK(known(kMake + 1, true) == x86::mask_of(x86::Register::kRbx));
  CHECK(known(kMake + 3, false) == all);
}

TEST_CASE("an event that was interrupted half done has the time from before") {
  const Timed jump{{}, 50, 60, 0, false, true};
  const auto stored = [&](bool resumed, bool handled) {
    const Piece up{{0xFC}};
    const Piece one{{0xB9, 1, 0, 0, 0}};           // mov $1,%ecx
    const Piece store_string{{0xF3, 0x48, 0xAB}};  // rep stosq
    Process process;
    Thread thread{{{up, set_rdi(kWord), one}, 20, 30, kTable + (1 << 21)},
                  {{store_string}, 100, 110, kTable + (1 << 21) + 13, resumed}};
    if (handled) {
      const Thread handler{jump, {{{{0xC3}}}, 60, 70}, {{call(15)}, 70, 80}, jump};
      thread.insert(thread.begin() + 1, handler.begin(), handler.end());
    }
    process.add(thread);
    pt::Flow flow;
    flow.threads = {process.path(0)};
    const Trace trace = make_trace(flow).trace;
    for (const Event& event : trace.events) {
      if (event.kind() == EventKind::kWrite) {
        CHECK(event.address == kWord);
        return trace.lo(event);
      }
    }
    return int64_t{-1};
  };
  CHECK(stored(false, false) == 100);
  CHECK(stored(true, false) == 20);
  CHECK(stored(true, true) == -1);
}

TEST_CASE("samples that have no place in front of the path say nothing") {
  Process process;
  process.add({{{load_unknown, fence}, 20, 25}, {{}, 30, 35}, {{load_unknown}, 40, 45}});
  const pt::ThreadPath& path = process.path(0);
  const auto last = [&](const std::vector<pt::PlacedSample>& places) {
    std::vector<pt::PlacedSample> samples = places;
    for (pt::PlacedSample& sample : samples) {
      sample.registers.set(kR8, kPointer);
    }
    Last sink;
    find_accesses(path, samples, {}, sink);
    return sink.last.source;
  };
  CHECK(last({{2, 0, {}}}) != kUnknown);
  CHECK(last({{2, 1, {}}}) == kUnknown);
  CHECK(last({{2, 500, {}}, {2, size_t{1} << 40, {}}}) == kUnknown);
  CHECK(last({{0, 1, {}}, {0, 0, {}}}) == kUnknown);
  CHECK(last({{1, 0, {}}}) == kUnknown);  // a gap
  CHECK(last({{7, 0, {}}}) == kUnknown);
  CHECK(last({{2, 0, {}}, {0, 0, {}}}) != kUnknown);
  CHECK(last({{1, 0, {}}, {2, 0, {}}}) != kUnknown);
}
