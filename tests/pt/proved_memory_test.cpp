// Values carried through the data of files by proof: each rule with the case that must stay
// unknown.
#include "decoders/pt/proved_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decoders/pt/code.h"
#include "decoders/pt/other_writers.h"
#include "decoders/pt/trace.h"
#include "tests/pt/own_modules.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;
using pt::AddressSource;
using pt::PathEntry;

namespace {

using Code = std::vector<uint8_t>;

constexpr int kProcess = 7;
// Data of a mapped file; nothing of it is really accessed.
uint64_t data[256] = {1};
const uint64_t kWord = reinterpret_cast<uint64_t>(&data[100]);
const uint64_t kTable = reinterpret_cast<uint64_t>(&data[0]);      // 64 words, kWord is none
const uint64_t kAround = reinterpret_cast<uint64_t>(&data[90]);    // 64 words, kWord is one
const uint64_t kPointer = reinterpret_cast<uint64_t>(&data[200]);  // what is stored in kWord

// Code of an address of its own, near enough to the data.
struct Piece {
  Code code;
  uint32_t instructions = 1;
  uint64_t data = 0;  // what the last four bytes are to be relative to
};

Piece join(const std::vector<Piece>& pieces, uint64_t at) {
  Piece joined{{}, 0, 0};
  for (Piece piece : pieces) {
    if (piece.data != 0) {
      const auto distance =
          static_cast<int32_t>(piece.data - (at + joined.code.size() + piece.code.size()));
      std::memcpy(piece.code.data() + piece.code.size() - 4, &distance, 4);
    }
    joined.code.insert(joined.code.end(), piece.code.begin(), piece.code.end());
    joined.instructions += piece.instructions;
  }
  return joined;
}

Piece set_rcx(uint64_t to) { return {{0x48, 0x8D, 0x0D, 0, 0, 0, 0}, 1, to}; }       // lea
Piece set_rsi(uint64_t to) { return {{0x48, 0x8D, 0x35, 0, 0, 0, 0}, 1, to}; }       // lea
Piece set_rdi(uint64_t to) { return {{0x48, 0x8D, 0x3D, 0, 0, 0, 0}, 1, to}; }       // lea
Piece store_rcx(uint64_t to) { return {{0x48, 0x89, 0x0D, 0, 0, 0, 0}, 1, to}; }     // mov
Piece load_rax(uint64_t from) { return {{0x48, 0x8B, 0x05, 0, 0, 0, 0}, 1, from}; }  // mov
Piece lock_add(uint64_t to) { return {{0xF0, 0x48, 0x01, 0x0D, 0, 0, 0, 0}, 1, to}; }
const Piece use{{0x48, 0x8B, 0x18}};                  // mov (%rax),%rbx
const Piece store_unknown{{0x49, 0x89, 0x10}};        // mov %rdx,(%r8)
const Piece mask{{0x83, 0xE2, 0x3F}};                 // and $63,%edx
const Piece store_indexed{{0x4C, 0x89, 0x04, 0xD7}};  // mov %r8,(%rdi,%rdx,8)
const Piece push{{0x51}};                             // push %rcx
const Piece fence{{0x0F, 0xAE, 0xF0}};
const Piece load_unknown{{0x4D, 0x8B, 0x08}};  // mov (%r8),%r9
Piece call(uint8_t number) { return {{0xB8, number, 0, 0, 0, 0x0F, 0x05}, 2, 0}; }
const Piece any_call{{0x0F, 0x05}};
const Piece long_count{{0xBA, 0, 1, 0, 0}};  // mov $256,%edx

struct Timed {
  std::vector<Piece> pieces;  // none: a gap
  int64_t lo = 0;
  int64_t hi = 0;
  uint64_t at = 0;  // its address; 0: a new one
  bool resumed = false;
  bool elsewhere = false;  // with no pieces
};
using Thread = std::vector<Timed>;

class Last : public pt::AccessSink {
 public:
  void entry(const PathEntry&, const std::vector<pt::FoundAccess>& accesses) override {
    last = accesses.empty() ? last : accesses.back();
  }
  pt::FoundAccess last;
};

class Process {
 public:
  Process() : constants_(own_modules(kProcess).code) {}

  // Where the next block of code will be.
  uint64_t next() const { return at_; }

  void add(const Thread& thread) {
    auto path = std::make_unique<pt::ThreadPath>();
    path->process = kProcess;
    path->thread = static_cast<int>(paths_.size()) + 1;
    for (const Timed& timed : thread) {
      PathEntry& entry = path->entries.emplace_back();
      entry.lo = timed.lo;
      entry.hi = timed.hi;
      entry.resumed = timed.resumed;
      entry.kind = timed.elsewhere        ? PathEntry::Kind::kElsewhere
                   : timed.pieces.empty() ? PathEntry::Kind::kGap
                                          : PathEntry::Kind::kBlock;
      if (!timed.pieces.empty()) {
        const uint64_t new_one = at_;
        at_ = timed.at != 0 ? timed.at : at_;
        entry.block = block(timed.pieces);
        at_ = timed.at != 0 ? new_one : at_;
      }
    }
    paths_.push_back(std::move(path));
  }
  void is_main() { paths_.back()->thread = kProcess; }
  const pt::ThreadPath& path(size_t i) const { return *paths_[i]; }
  void begin_at(uint64_t address) { at_ = address; }
  // What the registers were in front of the last path.
  void began(x86::Register name, uint64_t value) {
    pt::PlacedSample& sample = samples_[paths_.size() - 1];
    sample.registers.set(name, value);
  }

  // How the last access of the first thread was found.
  AddressSource last() {
    std::vector<pt::ThreadToFind> threads;
    for (const auto& path : paths_) {
      threads.push_back({path.get(), {}});
      if (const auto sample = samples_.find(threads.size() - 1); sample != samples_.end()) {
        threads.back().samples.push_back(sample->second);
      }
    }
    std::vector<std::unique_ptr<Last>> sinks(paths_.size());
    pt::AccessOptions options;
    options.constants = &constants_;
    find_with_proofs(threads, options, [&](size_t i) -> pt::AccessSink& {
      sinks[i] = std::make_unique<Last>();
      return *sinks[i];
    });
    const pt::FoundAccess& last = sinks[0]->last;
    if (last.source != AddressSource::kUnknown) {
      CHECK(last.range.address == kPointer);
    }
    return last.source;
  }

 private:
  const pt::CodeBlock* block(const std::vector<Piece>& pieces) {
    const uint64_t begin = at_;
    const Piece piece = join(pieces, begin);
    const auto read = [&](uint64_t at, uint8_t* to, size_t size) {
      const size_t from = std::min<size_t>(at - begin, piece.code.size());
      const size_t there = std::min(size, piece.code.size() - from);
      std::copy_n(piece.code.begin() + static_cast<ptrdiff_t>(from), there, to);
      return there;
    };
    const pt::CodeBlock* block = cache_.find(1, begin, piece.instructions, read);
    REQUIRE(block != nullptr);
    at_ += 256;
    return block;
  }

  pt::Constants constants_;
  pt::CodeCache cache_;
  std::vector<std::unique_ptr<pt::ThreadPath>> paths_;
  std::map<size_t, pt::PlacedSample> samples_;  // by path
  uint64_t at_ = reinterpret_cast<uint64_t>(&data) + (1 << 20);
};

// The thread that stores and loads, with something in between.
Thread loader(const std::vector<Piece>& between = {}) {
  Thread thread{{{set_rcx(kPointer), store_rcx(kWord)}, 100, 110}};
  if (!between.empty()) {
    thread.push_back({between, 150, 160});
  }
  thread.push_back({{load_rax(kWord), use}, 200, 210});
  return thread;
}

const Timed kBegins{{fence}, 0, 10};
const Timed kEnds{{call(60)}, 900, 910};

// With another thread that does this between its beginning and its end.
AddressSource beside(const std::vector<Timed>& other, const std::vector<Piece>& between = {}) {
  Process process;
  process.add(loader(between));
  Thread thread{kBegins};
  thread.insert(thread.end(), other.begin(), other.end());
  thread.push_back(kEnds);
  process.add(thread);
  return process.last();
}

constexpr AddressSource kProved = AddressSource::kMemory;
constexpr AddressSource kUnknown = AddressSource::kUnknown;

}  // namespace

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

TEST_CASE("other memory may come where a file's data was") {
  const auto number = [](uint32_t of) {
    Piece piece{{0xB8, 0, 0, 0, 0, 0x0F, 0x05}, 2, 0};
    std::memcpy(piece.code.data() + 1, &of, 4);
    return piece;
  };
  const auto set_r10 = [](uint32_t to) {
    Piece piece{{0x41, 0xBA, 0, 0, 0, 0}, 1, 0};
    std::memcpy(piece.code.data() + 2, &to, 4);
    return piece;
  };
  const auto set_edx = [](uint32_t to) {
    Piece piece{{0xBA, 0, 0, 0, 0}, 1, 0};
    std::memcpy(piece.code.data() + 1, &to, 4);
    return piece;
  };
  const Piece size{{0xBE, 8, 0, 0, 0}};  // mov $8,%esi
  const uint64_t nothing = reinterpret_cast<uint64_t>(&data) - (uint64_t{1} << 30);
  // Long before, and behind a fence since.
  const auto before = [](const std::vector<Piece>& pieces) {
    return beside({{pieces, 20, 30}, {{fence}, 40, 50}});
  };
  CHECK(before({size, set_rdi(kWord + 8), call(11)}) == kUnknown);  // munmap
  CHECK(before({size, set_rdi(nothing), call(11)}) == kProved);
  CHECK(before({size, call(11)}) == kUnknown);
  const auto map = [&](const std::vector<Piece>& address, int flags) {
    std::vector<Piece> pieces{address};
    pieces.insert(pieces.end(), {size, set_r10(static_cast<uint32_t>(flags)), call(9)});
    return before(pieces);
  };
  CHECK(map({}, MAP_PRIVATE | MAP_ANONYMOUS) == kProved);
  CHECK(map({}, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED) == kUnknown);
  CHECK(map({}, MAP_SHARED | MAP_FIXED) == kUnknown);
  CHECK(map({}, MAP_PRIVATE | MAP_FIXED) == kProved);
  CHECK(map({set_rdi(kWord)}, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED) == kUnknown);
  CHECK(before({size, call(9)}) == kUnknown);  // with any flags
  CHECK(before({size, set_rdi(kWord), set_r10(MREMAP_MAYMOVE), call(25)}) == kUnknown);
  CHECK(before({size, set_rdi(nothing), set_r10(MREMAP_MAYMOVE), call(25)}) == kProved);
  CHECK(before({size, set_rdi(nothing), set_r10(MREMAP_FIXED), call(25)}) == kUnknown);
  CHECK(before({set_edx(0), call(30)}) == kProved);  // shmat
  CHECK(before({set_edx(040000), call(30)}) == kUnknown);
  // madvise: whole pages are emptied, now or at any time.
  CHECK(before({size, set_rdi(kWord + 8), set_edx(MADV_DONTNEED), call(28)}) == kProved);
  CHECK(before({size, set_rdi(kWord + 8), set_edx(MADV_FREE), call(28)}) == kUnknown);
  CHECK(before({size, set_rdi(kWord + 8), call(28)}) == kUnknown);
  const Piece longer{{0x48, 0xBA, MADV_FREE, 0, 0, 0, 1, 0, 0, 0}};  // of 32 bits it is the same
  CHECK(before({size, set_rdi(kWord + 8), longer, call(28)}) == kUnknown);
  CHECK(beside({{{size, set_rdi(kWord + 8), set_edx(MADV_DONTNEED), call(28)}, 150, 160}}) ==
        kUnknown);
  CHECK(beside({{{size, set_rdi(nothing), set_edx(MADV_DONTNEED), call(28)}, 150, 160}}) ==
        kProved);
  // Ways to call that are not known may do anything, such as to make a process.
  CHECK(before({number(462)}) == kProved);
  CHECK(before({number(463)}) == kUnknown);
  CHECK(before({number(0x40000000U | 1)}) == kUnknown);
  CHECK(before({{{0xCD, 0x80}}}) == kUnknown);  // int $0x80
  CHECK(before({{{0x0F, 0x34}}}) == kUnknown);  // sysenter
  CHECK(before({{{0xCC}}}) == kProved);         // int3
}

TEST_CASE("the C library's loader maps files where no data is") {
  const std::vector<pt::CodeSection> code = own_modules(kProcess).code;
  const auto file = std::find_if(code.begin(), code.end(), [](const pt::CodeSection& section) {
    return section.file.find("ld-linux") != std::string::npos;
  });
  REQUIRE(file != code.end());
  const Piece size{{0xBE, 8, 0, 0, 0}};            // mov $8,%esi
  const Piece fixed{{0x41, 0xBA, 0x32, 0, 0, 0}};  // mov $(fixed, private, anonymous),%r10d
  const auto with = [&](const Thread& first, const std::vector<Piece>& pieces, bool main) {
    Process process;
    process.add(loader());
    Thread thread = first;
    thread.push_back({pieces, 20, 30, file->address + 4096});
    thread.push_back({{fence}, 40, 50});
    thread.push_back(kEnds);
    process.add(thread);
    if (main) {
      process.is_main();
    }
    return process.last();
  };
  CHECK(with({}, {size, call(11)}, true) == kProved);
  CHECK(with({}, {size, call(11)}, false) == kUnknown);
  CHECK(with({kBegins}, {size, call(11)}, true) == kUnknown);  // the program has begun
  CHECK(with({kBegins}, {size, fixed, call(9)}, false) == kProved);
  CHECK(with({kBegins}, {size, call(25)}, true) == kUnknown);  // mremap
}

TEST_CASE("what the kernel may have written for system calls") {
  CHECK(beside({}, {call(1)}) == kProved);     // write
  CHECK(beside({}, {call(217)}) == kUnknown);  // getdents64: not in the table
  CHECK(beside({{{call(1)}, 150, 160}}) == kProved);
  CHECK(beside({{{call(217)}, 150, 160}}) == kUnknown);
  CHECK(beside({{{call(217)}, 20, 30}}) == kUnknown);
  CHECK(beside({{{call(217)}, 20, 30}, {{fence}, 40, 50}}) == kProved);
  CHECK(beside({{{fence, call(217)}, 20, 30}}) == kUnknown);
  // read into 256 bytes at rsi
  CHECK(beside({{{long_count, set_rsi(kWord - 256), call(0)}, 150, 160}}) == kProved);
  CHECK(beside({{{long_count, set_rsi(kWord - 255), call(0)}, 150, 160}}) == kUnknown);
  CHECK(beside({{{set_rsi(kWord - 256), call(0)}, 150, 160}}) == kUnknown);
  CHECK(beside({{{long_count, call(0)}, 150, 160}}) == kUnknown);
  CHECK(beside({}, {long_count, set_rsi(kWord - 256), call(0)}) == kProved);
  CHECK(beside({}, {long_count, set_rsi(kWord - 255), call(0)}) == kUnknown);
  CHECK(beside({{{any_call}, 20, 30}, {{fence}, 40, 50}}) == kUnknown);  // may have made a process
  CHECK(beside({{{call(58)}, 20, 30}, {{fence}, 40, 50}}) == kUnknown);  // vfork
  CHECK(beside({{{call(57)}, 20, 30}, {{fence}, 40, 50}}) == kProved);   // fork
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

namespace {

constexpr uint64_t kMake = 0x40000000;  // where clone is called
constexpr uint64_t kSite = kMake + 12;  // and returns
constexpr uint32_t kThreadFlags = 0x10F00;
constexpr uint32_t kOwnPointer = 0x80000;  // CLONE_SETTLS

Piece set_r8(uint64_t to) { return {{0x4C, 0x8D, 0x05, 0, 0, 0, 0}, 1, to}; }  // lea
Piece set_edi(uint32_t to) {
  Piece piece{{0xBF, 0, 0, 0, 0}, 1, 0};
  std::memcpy(piece.code.data() + 1, &to, 4);
  return piece;
}
Timed make(int64_t time, uint32_t flags = kThreadFlags) {
  return {{set_edi(flags), call(56)}, time, time + 10, kMake};
}
// A new thread that loads through r8.
Thread child(int64_t lo, int64_t hi) {
  return {{{load_unknown}, lo, hi, kSite}, {{call(60)}, 900, 910}};
}
// Two threads made at the same place, with kPointer and kTable in r8.
Thread makes_two() {
  return {{{set_r8(kPointer)}, 20, 25},
          make(30),
          {{set_r8(kTable)}, 50, 55},
          make(60),
          {{fence}, 80, 90},
          kEnds};
}
constexpr auto kR8 = x86::Register::kR8;
constexpr auto kFs = x86::Register::kFsBase;

}  // namespace

TEST_CASE("a new thread has its creator's registers") {
  const auto with = [](const Thread& created, const Thread& creator) {
    Process process;
    process.add(created);
    process.add(creator);
    return process.last();
  };
  const Thread creator{{{set_r8(kPointer)}, 20, 25}, make(30), kEnds};
  CHECK(with(child(35, 50), creator) != kUnknown);
  // The path does not begin with the thread.
  Thread gap = child(35, 50);
  gap.insert(gap.begin(), Timed{{}, 35, 36});
  CHECK(with(gap, creator) == kUnknown);
  Thread elsewhere = child(35, 50);
  elsewhere[0].at += 64;
  CHECK(with(elsewhere, creator) == kUnknown);
  CHECK(with(child(5, 10), creator) == kUnknown);  // it was there before
  // A process in the same memory (vfork); one call more than threads.
  CHECK(with(child(35, 50), {{{set_r8(kPointer)}, 20, 25}, make(30, 0x4100), kEnds}) == kUnknown);
  CHECK(with(child(35, 50), {{{set_r8(kPointer)}, 20, 25}, make(30), make(200), kEnds}) ==
        kUnknown);
  // What the call changes: rax.
  Thread other = child(35, 50);
  other[0].pieces = {use};
  CHECK(with(other, creator) == kUnknown);
}

TEST_CASE("which call made a thread has to be certain") {
  const auto with = [](int64_t first, int64_t second, std::optional<uint64_t> known) {
    Process process;
    process.add(child(first, first + 5));
    process.add(makes_two());
    process.add(child(second, second + 5));
    if (known) {
      process.began(kR8, *known);
    }
    return process.last();
  };
  CHECK(with(41, 71, std::nullopt) != kUnknown);  // begins before the second call
  CHECK(with(71, 71, std::nullopt) == kUnknown);
  CHECK(with(58, 71, std::nullopt) == kUnknown);  // may be the second call's
  // The other one is the second call's by what is known of it.
  CHECK(with(71, 71, kTable) != kUnknown);
  // It is neither one's: something is not as it should be.
  CHECK(with(71, 71, kTable + 8) == kUnknown);
}

TEST_CASE("what is known of new threads is told where they were created, whatever their numbers") {
  const Piece other{{0x4D, 0x8B, 0x01}};  // mov (%r9),%r8
  const auto with = [](const Thread& creator) {
    Process process;
    process.add(creator);
    process.add(child(71, 76));  // of the second call
    process.add(child(41, 46));
    process.began(kR8, kPointer);
    return process.last();
  };
  CHECK(with({make(30), {{other}, 50, 55}, make(60), {{load_unknown}, 100, 105}}) == kUnknown);
  CHECK(with({{{load_unknown}, 20, 25}, make(30), {{set_r8(kTable)}, 50, 55}, make(60), kEnds}) !=
        kUnknown);
}

TEST_CASE("what is known of a new thread is known of its creator") {
  const auto with = [](uint32_t flags, x86::Register name) {
    Process process;
    process.add({{{load_unknown}, 20, 25}, make(30, flags), kEnds});
    process.add(child(35, 50));
    process.began(name, kPointer);
    return process.last();
  };
  CHECK(with(kThreadFlags | kOwnPointer, kFs) != kUnknown);
  CHECK(with(kThreadFlags, kFs) == kUnknown);
  CHECK(with(kThreadFlags, kR8) != kUnknown);
  CHECK(with(kThreadFlags, x86::Register::kR11) == kUnknown);
}

TEST_CASE("clone3 has the new thread's pointer in memory") {
  const Piece enter{{0xE8, 0, 0, 0, 0}};                    // call the next
  const Piece room{{0x48, 0x83, 0xEC, 0x40}};               // sub $64,%rsp
  const Piece set_pointer{{0x4C, 0x89, 0x44, 0x24, 0x38}};  // mov %r8,56(%rsp)
  const Piece pointer{{0x48, 0x8D, 0x3C, 0x24}};            // lea (%rsp),%rdi
  const Piece give_away{{0x49, 0x89, 0x3A}};                // mov %rdi,(%r10)
  const Piece clone3{{0xB8, 0xB3, 0x01, 0, 0, 0x0F, 0x05}, 2, 0};
  const auto set_flags = [](uint32_t flags) {  // movq $flags,(%rsp)
    Piece piece{{0x48, 0xC7, 0x04, 0x24, 0, 0, 0, 0}, 1, 0};
    std::memcpy(piece.code.data() + 4, &flags, 4);
    return piece;
  };
  const auto with = [&](uint32_t flags, const std::vector<Piece>& before_call) {
    std::vector<Piece> pieces{room, set_pointer, set_flags(flags), pointer};
    pieces.insert(pieces.end(), before_call.begin(), before_call.end());
    pieces.push_back(load_unknown);
    pieces.push_back(clone3);
    Process process;
    process.add({{{enter}, 20, 25, kMake}, {pieces, 30, 40, kMake + 5}, kEnds});
    Thread created = child(35, 50);
    created[0].at = kMake + 5 + join(pieces, 0).code.size();
    process.add(created);
    process.began(kFs, kPointer);
    return process.last();
  };
  CHECK(with(kThreadFlags | kOwnPointer, {}) != kUnknown);
  CHECK(with(kThreadFlags, {}) == kUnknown);
  CHECK(with(kThreadFlags | kOwnPointer, {give_away}) == kUnknown);
}

TEST_CASE("the creator goes on with its registers") {
  const auto with = [](bool known) {
    Process process;
    Thread creator{{{set_r8(kPointer)}, 20, 25}, make(30), {{load_unknown}, 60, 65}};
    process.add(creator);
    if (known) {
      process.add(child(35, 50));
    }
    return process.last();
  };
  CHECK(with(true) != kUnknown);
  CHECK(with(false) == kUnknown);
}

TEST_CASE("a new thread may write where registers point that it was given") {
  const Piece enter{{0xE8, 0, 0, 0, 0}};                // call the next
  const Piece save{{0x48, 0x89, 0x4C, 0x24, 0xF8}};     // mov %rcx,-8(%rsp)
  const Piece restore{{0x48, 0x8B, 0x44, 0x24, 0xF8}};  // mov -8(%rsp),%rax
  const Piece point{{0x48, 0x8D, 0x5C, 0x24, 0xF8}};    // lea -8(%rsp),%rbx
  const auto with = [&](const std::vector<Piece>& also) {
    std::vector<Piece> pieces{save};
    pieces.insert(pieces.end(), also.begin(), also.end());
    Process process;
    process.add({{{set_rcx(kPointer)}, 10, 15},
                 {{enter}, 20, 22, kMake - 64},
                 {pieces, 23, 25, kMake - 59},
                 make(30),
                 {{restore, use}, 60, 65}});
    process.add(child(35, 50));
    return process.last();
  };
  CHECK(with({}) != kUnknown);
  CHECK(with({point}) == kUnknown);
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
  const auto read = [&](uint64_t at, uint8_t* to, size_t size) {
    const size_t from = std::min<size_t>(at - kMake, code.size());
    const size_t there = std::min(size, code.size() - from);
    std::copy_n(code.begin() + static_cast<ptrdiff_t>(from), there, to);
    return there;
  };
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
    flow.constants = pt::Constants(own_modules(kProcess).code);
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

TEST_CASE("the C library's own pointer to a thread's block") {
  const Piece load_self{{0x64, 0x48, 0x8B, 0x04, 0x25, 0x10, 0, 0, 0}};  // mov %fs:16,%rax
  const Piece load_next{{0x64, 0x48, 0x8B, 0x04, 0x25, 0x18, 0, 0, 0}};  // mov %fs:24,%rax
  const auto with = [&](uint64_t code, const Piece& load) {
    Process process;
    process.add({{{load, use}, 20, 25, code}});
    process.began(kFs, kPointer);
    return process.last();
  };
  const auto library = reinterpret_cast<uint64_t>(&::getpid);
  CHECK(with(library, load_self) != kUnknown);
  CHECK(with(library, load_next) == kUnknown);
  CHECK(with(kMake, load_self) == kUnknown);
}

TEST_CASE("places of the C library's variables of threads need a process with no others") {
  const SteppedRun& run = stepped("threads");
  std::vector<pt::CodeSection> code = input_of(run, encode(run)).code;
  const int process = run.threads[0];
  const auto words = [&] {
    const pt::Constants constants(code);
    size_t known = 0;
    for (const pt::CodeSection& section : code) {
      const uint64_t end =
          section.address +
          (section.file.find("libc.so") == std::string::npos ? 0 : uint64_t{4} << 20);
      for (uint64_t at = section.address; at < end; at += 8) {
        known += constants.thread_offset(process, at) ? 1 : 0;
      }
    }
    return known;
  };
#if !defined(TSOMON_SANITIZED)  // the sanitizer's own file has such variables
  CHECK(words() != 0);          // that they are right is seen where all addresses are compared
#endif
  const std::vector<pt::CodeSection> own = own_modules(process).code;
  const auto other = std::find_if(own.begin(), own.end(), [](const pt::CodeSection& section) {
    return section.file.find("libstdc++") != std::string::npos;
  });
  REQUIRE(other != own.end());
  code.push_back(*other);
  CHECK(words() == 0);
  code.back().file = "no such file";
  CHECK(words() == 0);
}

TEST_CASE("only data of mapped files is carried") {
  Process process;
  const uint64_t elsewhere = process.next() + (1 << 30);
  process.add({{{set_rcx(kPointer), store_rcx(elsewhere)}, 100, 110},
               {{load_rax(elsewhere), use}, 200, 210}});
  CHECK(process.last() == kUnknown);
}
