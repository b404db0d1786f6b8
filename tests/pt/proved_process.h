// Processes of a few blocks of code, for tests of what is proved of their memory.
//
// Purpose     Threads as lists of blocks with times, made of pieces of code; data of the test's own
//             file stands for that of the process. Nothing of it is executed.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "decoders/pt/code/code.h"
#include "decoders/pt/memory/cross_thread_propagation.h"
#include "tests/pt/code_bytes.h"
#include "tests/pt/own_modules.h"

namespace tsomon::test::proofs {

using pt::AddressSource;
using pt::PathEntry;
using Code = std::vector<uint8_t>;

inline constexpr int kProcess = 7;
// Data of a mapped file; nothing of it is really accessed.
inline uint64_t data[256] = {1};
inline const uint64_t kWord = reinterpret_cast<uint64_t>(&data[100]);
inline const uint64_t kTable = reinterpret_cast<uint64_t>(&data[0]);      // 64 words, kWord is none
inline const uint64_t kAround = reinterpret_cast<uint64_t>(&data[90]);    // 64 words, kWord is one
inline const uint64_t kPointer = reinterpret_cast<uint64_t>(&data[200]);  // what is stored in kWord

// Code of an address of its own, near enough to the data.
struct Piece {
  Code code;
  uint32_t instructions = 1;
  uint64_t data = 0;  // what the last four bytes are to be relative to
};

inline Piece join(const std::vector<Piece>& pieces, uint64_t at) {
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

inline Piece set_rcx(uint64_t to) { return {{0x48, 0x8D, 0x0D, 0, 0, 0, 0}, 1, to}; }       // lea
inline Piece set_rsi(uint64_t to) { return {{0x48, 0x8D, 0x35, 0, 0, 0, 0}, 1, to}; }       // lea
inline Piece set_rdi(uint64_t to) { return {{0x48, 0x8D, 0x3D, 0, 0, 0, 0}, 1, to}; }       // lea
inline Piece store_rcx(uint64_t to) { return {{0x48, 0x89, 0x0D, 0, 0, 0, 0}, 1, to}; }     // mov
inline Piece load_rax(uint64_t from) { return {{0x48, 0x8B, 0x05, 0, 0, 0, 0}, 1, from}; }  // mov
inline Piece lock_add(uint64_t to) { return {{0xF0, 0x48, 0x01, 0x0D, 0, 0, 0, 0}, 1, to}; }
inline const Piece use{{0x48, 0x8B, 0x18}};                  // mov (%rax),%rbx
inline const Piece store_unknown{{0x49, 0x89, 0x10}};        // mov %rdx,(%r8)
inline const Piece mask{{0x83, 0xE2, 0x3F}};                 // and $63,%edx
inline const Piece store_indexed{{0x4C, 0x89, 0x04, 0xD7}};  // mov %r8,(%rdi,%rdx,8)
inline const Piece push{{0x51}};                             // push %rcx
inline const Piece fence{{0x0F, 0xAE, 0xF0}};
inline const Piece load_unknown{{0x4D, 0x8B, 0x08}};  // mov (%r8),%r9
inline Piece call(uint8_t number) { return {{0xB8, number, 0, 0, 0, 0x0F, 0x05}, 2, 0}; }
inline const Piece any_call{{0x0F, 0x05}};
inline const Piece long_count{{0xBA, 0, 1, 0, 0}};  // mov $256,%edx

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
    const auto read = code_reader(piece.code, begin);
    const pt::CodeBlock* block = cache_.find(1, begin, piece.instructions, read);
    REQUIRE(block != nullptr);
    at_ += 256;
    return block;
  }

  pt::ReadOnlyData constants_;
  pt::CodeCache cache_;
  std::vector<std::unique_ptr<pt::ThreadPath>> paths_;
  std::map<size_t, pt::PlacedSample> samples_;  // by path
  uint64_t at_ = reinterpret_cast<uint64_t>(&data) + (1 << 20);
};

// The thread that stores and loads, with something in between.
inline Thread loader(const std::vector<Piece>& between = {}) {
  Thread thread{{{set_rcx(kPointer), store_rcx(kWord)}, 100, 110}};
  if (!between.empty()) {
    thread.push_back({between, 150, 160});
  }
  thread.push_back({{load_rax(kWord), use}, 200, 210});
  return thread;
}

inline const Timed kBegins{{fence}, 0, 10};
inline const Timed kEnds{{call(60)}, 900, 910};

// With another thread that does this between its beginning and its end.
inline AddressSource beside(const std::vector<Timed>& other,
                            const std::vector<Piece>& between = {}) {
  Process process;
  process.add(loader(between));
  Thread thread{kBegins};
  thread.insert(thread.end(), other.begin(), other.end());
  thread.push_back(kEnds);
  process.add(thread);
  return process.last();
}

inline constexpr AddressSource kProved = AddressSource::kMemory;
inline constexpr AddressSource kUnknown = AddressSource::kUnknown;

// New threads: made by a call at one place.
inline constexpr uint64_t kMake = 0x40000000;  // where clone is called
inline constexpr uint64_t kSite = kMake + 12;  // and returns
inline constexpr uint32_t kThreadFlags = 0x10F00;
inline constexpr uint32_t kOwnPointer = 0x80000;  // CLONE_SETTLS

inline Piece set_r8(uint64_t to) { return {{0x4C, 0x8D, 0x05, 0, 0, 0, 0}, 1, to}; }  // lea
inline Piece set_edi(uint32_t to) {
  Piece piece{{0xBF, 0, 0, 0, 0}, 1, 0};
  std::memcpy(piece.code.data() + 1, &to, 4);
  return piece;
}
inline Timed make(int64_t time, uint32_t flags = kThreadFlags) {
  return {{set_edi(flags), call(56)}, time, time + 10, kMake};
}
// A new thread that loads through r8.
inline Thread child(int64_t lo, int64_t hi) {
  return {{{load_unknown}, lo, hi, kSite}, {{call(60)}, 900, 910}};
}
// Two threads made at the same place, with kPointer and kTable in r8.
inline Thread makes_two() {
  return {{{set_r8(kPointer)}, 20, 25},
          make(30),
          {{set_r8(kTable)}, 50, 55},
          make(60),
          {{fence}, 80, 90},
          kEnds};
}
inline constexpr auto kR8 = x86::Register::kR8;
inline constexpr auto kFs = x86::Register::kFsBase;

}  // namespace tsomon::test::proofs
