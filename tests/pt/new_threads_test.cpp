// What is passed on to new threads, and what the C library says of them: each rule with the case
// that must stay unknown.
#include "decoders/pt/memory/new_threads.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/pt/proved_process.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;
using namespace tsomon::test::proofs;

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
    const pt::ReadOnlyData constants(code);
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
