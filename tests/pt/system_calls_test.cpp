// What system calls mean for the proofs of memory: each rule with the case that must stay unknown.
#include "decoders/pt/values/system_calls.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "tests/pt/proved_process.h"

using namespace tsomon;
using namespace tsomon::test;
using namespace tsomon::test::proofs;

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
  const uint64_t nothing = kTable - (uint64_t{1} << 30);
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
