// Values carried through the data of files by proof: each rule with the case that must stay
// unknown.
#include "decoders/pt/memory/cross_thread_propagation.h"

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "decoders/pt/memory/interference.h"
#include "decoders/pt/memory/trace.h"
#include "tests/pt/proved_process.h"

using namespace tsomon;
using namespace tsomon::test;
using namespace tsomon::test::proofs;

TEST_CASE("a word of data stands until another thread may have stored to it") {
  CHECK(beside({}) == kProved);
  CHECK(beside({{{store_rcx(kWord)}, 150, 160}}) == kUnknown);
  CHECK(beside({{{store_rcx(kWord + 4)}, 150, 160}}) == kUnknown);
  CHECK(beside({{{store_rcx(kWord - 7)}, 150, 160}}) == kUnknown);
  CHECK(beside({{{lock_add(kWord)}, 150, 160}}) == kUnknown);
  CHECK(beside({{{store_rcx(kWord + 16)}, 150, 160}}) == kProved);
  CHECK(beside({{{load_rax(kWord)}, 150, 160}}) == kProved);
  CHECK(beside({{{load_unknown}, 150, 160}}) == kProved);
}

TEST_CASE("a store takes effect between its issue and the end of the next fence") {
  const Timed early{{store_rcx(kWord)}, 20, 30};
  CHECK(beside({early}) == kUnknown);  // may be in the store buffer
  CHECK(beside({early, {{fence}, 40, 50}}) == kProved);
  CHECK(beside({early, {{lock_add(kTable)}, 40, 50}}) == kProved);
  CHECK(beside({early, {{fence}, 40, 100}}) == kUnknown);  // and our store at 100
  CHECK(beside({early, {{fence}, 120, 130}}) == kUnknown);
  CHECK(beside({{{fence}, 15, 18}, early}) == kUnknown);
  CHECK(beside({{{lock_add(kWord)}, 20, 30}}) == kProved);
  CHECK(beside({{{store_rcx(kWord)}, 205, 215}}) == kUnknown);
  CHECK(beside({{{store_rcx(kWord)}, 211, 220}}) == kProved);
  // Only a store that was later than ours is in question.
  CHECK(beside({early, {{fence}, 40, 50}, {{store_rcx(kWord)}, 211, 220}}) == kProved);
  CHECK(beside({early, {{fence}, 40, 50}, {{store_rcx(kWord)}, 120, 130}}) == kUnknown);
}

TEST_CASE("a store of another thread is where its address may be") {
  CHECK(beside({{{store_unknown}, 150, 160}}) == kUnknown);
  CHECK(beside({{{store_unknown}, 20, 30}, {{fence}, 40, 50}}) == kProved);
  CHECK(beside({{{mask, set_rdi(kTable), store_indexed}, 150, 160}}) == kProved);
  CHECK(beside({{{mask, set_rdi(kAround), store_indexed}, 150, 160}}) == kUnknown);
  CHECK(beside({{{set_rdi(kTable), store_indexed}, 150, 160}}) == kUnknown);
  CHECK(beside({{{push}, 150, 160}}) == kProved);
}

TEST_CASE("what the thread itself may have stored") {
  CHECK(beside({}, {store_unknown}) == kUnknown);
  CHECK(beside({}, {store_rcx(kWord + 16)}) == kProved);
  CHECK(beside({}, {set_rcx(kTable), store_rcx(kWord + 4)}) == kUnknown);
  CHECK(beside({}, {mask, set_rdi(kTable), store_indexed}) == kProved);
  CHECK(beside({}, {mask, set_rdi(kAround), store_indexed}) == kUnknown);
  CHECK(beside({}, {lock_add(kWord + 4)}) == kUnknown);
  CHECK(beside({}, {push}) == kProved);
  CHECK(beside({}, {load_unknown}) == kProved);
}

TEST_CASE("a thread's own stack is where no file's data is") {
  const Piece stack_pointer{{0x48, 0x8D, 0x3C, 0x24}};  // lea (%rsp),%rdi
  const Piece low_half{{0x89, 0xD2}};                   // mov %edx,%edx
  const Piece signed_half{{0x48, 0x63, 0xD2}};          // movslq %edx,%rdx
  // An index of 64 bits may be the way from the stack to anywhere.
  for (const bool own : {false, true}) {
    const auto with = [&](const std::vector<Piece>& index) {
      std::vector<Piece> pieces{index};
      pieces.push_back(stack_pointer);
      pieces.push_back(store_indexed);
      return own ? beside({}, pieces) : beside({{pieces, 150, 160}});
    };
    CHECK(with({}) == kUnknown);
    CHECK(with({mask}) == kProved);
    CHECK(with({low_half}) == kProved);
    CHECK(with({signed_half}) == kProved);
  }
  // Near the stack, but a file's data.
  const auto near = [](bool known) {
    Process process;
    process.add(loader({store_unknown}));
    process.began(x86::Register::kRsp, kWord - 512);
    if (known) {
      process.began(x86::Register::kR8, kWord);
    }
    return process.last();
  };
  CHECK(near(true) == kUnknown);
  CHECK(near(false) == kUnknown);
  // A stack in a file's data, where it is known to be.
  const auto pushed = [](uint64_t stack) {
    Process process;
    process.add(loader());
    process.add({kBegins, {{push}, 150, 160}, kEnds});
    if (stack != 0) {
      process.began(x86::Register::kRsp, stack);
    }
    return process.last();
  };
  CHECK(pushed(0) == kProved);
  CHECK(pushed(kWord + 16) == kProved);
  CHECK(pushed(kWord + 8) == kUnknown);
}

TEST_CASE("what lies below the stack is not the thread's own") {
  const Piece enter{{0xE8, 0, 0, 0, 0}};    // call the next
  const Piece save{{0x49, 0x89, 0x08}};     // mov %rcx,(%r8)
  const Piece restore{{0x49, 0x8B, 0x00}};  // mov (%r8),%rax
  const auto with = [&](uint64_t below) {
    const uint64_t stack = kWord - (uint64_t{1} << 30);
    const uint64_t begin = kTable + (1 << 21);
    Process process;
    process.add({{{enter}, 10, 15, begin},
                 {{set_rcx(kPointer), save}, 20, 25, begin + 5},
                 {{restore, use}, 30, 35}});
    process.began(x86::Register::kRsp, stack);
    process.began(x86::Register::kR8, stack - 8 - below);
    return process.last();
  };
  CHECK(with(64) != kUnknown);
  CHECK(with(4096) == kUnknown);
}

TEST_CASE("many ranges of a page, and times of many threads") {
  const auto reads = [](uint64_t last) {
    std::vector<Timed> other;
    for (uint64_t i = 0; i < 20; ++i) {
      other.push_back({{long_count, set_rsi(kTable + 8 * i), call(0)}, 150, 160});
    }
    other.push_back({{long_count, set_rsi(last), call(0)}, 150, 160});
    return beside(other);
  };
  CHECK(reads(kWord - 256) == kProved);
  CHECK(reads(kWord - 255) == kUnknown);
  CHECK(reads(kWord + 7) == kUnknown);

  struct One {
    size_t thread;
    int64_t from;
    int64_t until;
  };
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<One> all(random() % 8);
    pt::WriteTimes times;
    for (One& one : all) {
      one.thread = random() % 3;
      one.from = static_cast<int64_t>(random() % 20);
      one.until = one.from + static_cast<int64_t>(random() % 20);
      times.add(one.thread, one.from, one.until);
    }
    times.finish();
    for (int ask = 0; ask < 20; ++ask) {
      const size_t but = random() % 4;
      const auto from = static_cast<int64_t>(random() % 40);
      const int64_t to = from + static_cast<int64_t>(random() % 10);
      const bool expected = std::any_of(all.begin(), all.end(), [&](const One& one) {
        return one.thread != but && one.from <= to && one.until >= from;
      });
      CHECK(times.meets(but, from, to) == expected);
    }
  }
}

TEST_CASE("a thread may have stored before its path and may store behind it") {
  const auto with = [](const Thread& other) {
    Process process;
    process.add(loader());
    process.add(other);
    return process.last();
  };
  CHECK(with({kBegins, kEnds}) == kProved);
  CHECK(with({{{load_unknown}, 0, 10}, kEnds}) == kUnknown);
  CHECK(with({{{load_unknown}, 0, 10}, {{fence}, 20, 30}, kEnds}) == kProved);
  CHECK(with({kBegins, {{load_unknown}, 120, 130}}) == kUnknown);
  CHECK(with({kBegins, {{load_unknown}, 220, 230}}) == kProved);
  CHECK(with({kBegins, {{}, 20, 30}, {{fence}, 40, 50}, kEnds}) == kUnknown);  // a gap
  CHECK(with({kBegins, {{}, 300, 310}, kEnds}) == kUnknown);
}

TEST_CASE("threads that were created need paths from there on") {
  const auto with = [](int calls, int created, bool behind, int64_t fenced) {
    Process process;
    process.add(loader());
    Thread creator{kBegins};
    for (int i = 0; i < calls; ++i) {
      creator.push_back({{call(56)}, 20, 30});
    }
    creator.push_back({{fence}, 40, 50});
    creator.push_back(kEnds);
    // Its blocks are 256 bytes apart; the call's is the second one.
    const uint64_t site = process.next() + 256 + 7;
    process.add(creator);
    for (int i = 0; i < created; ++i) {
      process.begin_at(behind ? site : site + 512);
      process.add({{{load_unknown}, 25, 35}, {{fence}, fenced, fenced + 5}, kEnds});
    }
    return process.last();
  };
  CHECK(with(0, 0, false, 0) == kProved);
  CHECK(with(1, 1, true, 40) == kProved);
  CHECK(with(1, 0, true, 40) == kUnknown);
  CHECK(with(1, 1, false, 40) == kUnknown);
  CHECK(with(2, 1, true, 40) == kUnknown);
  CHECK(with(1, 1, true, 120) == kUnknown);  // what it did before its first fence
}

TEST_CASE("a process that another one made may share its memory") {
  // A call of the C library's, and where it returns.
  uint64_t behind = 0;
  const auto* library = reinterpret_cast<const uint8_t*>(&::getpid);
  for (size_t i = 0; behind == 0 && i < 4096; ++i) {
    behind = library[i] == 0x0F && library[i + 1] == 0x05
                 ? reinterpret_cast<uint64_t>(library + i + 2)
                 : 0;
  }
  REQUIRE(behind != 0);
  const auto proved = [&](uint64_t first, bool alone) {
    pt::Flow flow;
    flow.constants = pt::ReadOnlyData(own_modules(kProcess).code);
    Process process;
    process.add({{{fence}, 0, 10, first},
                 {{set_rcx(kPointer), store_rcx(kWord)}, 100, 110},
                 {{load_rax(kWord), use}, 200, 210},
                 kEnds});
    process.add({kBegins, kEnds});
    flow.threads = {process.path(0), process.path(1)};
    flow.threads[0].thread = kProcess;
    flow.threads[1].process += alone ? 0 : 1;
    pt::TraceOptions options;
    options.all_threads = true;
    return make_trace(flow, options).counts.through_memory != 0;
  };
  CHECK(proved(behind, true));
  CHECK_FALSE(proved(behind, false));
  CHECK(proved(behind - 2, false));
}

TEST_CASE("only data of mapped files is carried") {
  Process process;
  const uint64_t elsewhere = process.next() + (1 << 30);
  process.add({{{set_rcx(kPointer), store_rcx(elsewhere)}, 100, 110},
               {{load_rax(elsewhere), use}, 200, 210}});
  CHECK(process.last() == kUnknown);
}
