// What is known of memory: the thread's stack, and what nobody writes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "decoders/pt/code/read_only_data.h"
#include "decoders/pt/memory/accesses.h"
#include "decoders/x86/dataflow.h"
#include "tests/pt/code_bytes.h"
#include "tests/pt/own_modules.h"
#include "tests/pt/traced_programs.h"

using namespace tsomon;
using namespace tsomon::test;
using pt::AddressSource;
using pt::PathEntry;

namespace {

using Code = std::vector<uint8_t>;

constexpr uint64_t kCaller = 0x401000;
constexpr uint64_t kFunction = 0x401005;  // behind the call

// The pieces of a function; behind the call so that blocks follow one another in the bytes.
const Code call_next{0xE8, 0, 0, 0, 0};
const Code allocate{0x48, 0x83, 0xEC, 0x18};               // sub $0x18,%rsp
const Code make_address{0x48, 0x8D, 0x0D, 0, 0x20, 0, 0};  // lea 0x2000(%rip),%rcx
const Code spill{0x48, 0x89, 0x4C, 0x24, 0x08};            // mov %rcx,0x8(%rsp)
const Code take_address{0x48, 0x8D, 0x44, 0x24, 0x10};     // lea 0x10(%rsp),%rax
const Code publish{0x48, 0x89, 0x07};                      // mov %rax,(%rdi)
const Code store_anywhere{0x48, 0x89, 0x16};               // mov %rdx,(%rsi)
const Code store_over{0x48, 0x89, 0x10};                   // mov %rdx,(%rax)
const Code system_call{0xB8, 1, 0, 0, 0, 0x0F, 0x05};      // mov $1,%eax; syscall
const Code reload{0x48, 0x8B, 0x5C, 0x24, 0x08};           // mov 0x8(%rsp),%rbx
const Code use{0x48, 0x8B, 0x03};                          // mov (%rbx),%rax
const Code push_saved{0x51};                               // push %rcx
const Code pop_saved{0x5B};                                // pop %rbx
const Code long_nop{0x0F, 0x1F, 0x00};                     // nopl (%rax)
const Code multiply{0x49, 0xF7, 0xE1};                     // mul %r9

struct Piece {
  const Code& code;
  uint32_t instructions = 1;
};

class Last : public pt::AccessSink {
 public:
  void entry(const PathEntry&, const std::vector<pt::FoundAccess>& accesses) override {
    if (!accesses.empty()) {
      all.insert(all.end(), accesses.begin(), accesses.end());
    }
  }
  std::vector<pt::FoundAccess> all;
};

// The last access of a function made of these pieces, called in front of the eyes or not.
AddressSource last_access(const std::vector<Piece>& pieces, bool called, bool alone = false,
                          bool before = false) {
  Code code = call_next;
  uint32_t instructions = 0;
  uint64_t address = 0;  // what rcx holds
  for (const Piece& piece : pieces) {
    code.insert(code.end(), piece.code.begin(), piece.code.end());
    instructions += piece.instructions;
    if (&piece.code == &make_address) {
      address = kCaller + code.size() + 0x2000;
    }
  }
  const auto read = code_reader(code, kCaller);
  pt::CodeCache cache;
  pt::ThreadPath path{1, 1, {}};
  if (called) {
    path.entries.emplace_back().block = cache.find(1, kCaller, 1, read);
  }
  path.entries.emplace_back().block = cache.find(1, kFunction, instructions, read);
  REQUIRE(path.entries.back().block != nullptr);
  Last sink;
  pt::AccessOptions options;
  options.memory = alone;
  options.frames_before = before;
  find_accesses(path, {}, options, sink);
  const pt::FoundAccess& last = sink.all.back();
  if (last.source != AddressSource::kUnknown) {
    CHECK(last.range.address == address);
  }
  return last.source;
}

}  // namespace

TEST_CASE("a spilled value comes back while no pointer into its frame is about") {
  const std::vector<Piece> kept{{allocate},       {make_address}, {spill},
                                {store_anywhere}, {reload},       {use}};
  CHECK(last_access(kept, true) == AddressSource::kStack);
  // The frame is older than the path: a pointer into it may be about.
  CHECK(last_access(kept, false) == AddressSource::kUnknown);
  CHECK(last_access(kept, false, false, true) == AddressSource::kStack);
  const std::vector<Piece> kernel{{allocate},       {make_address}, {spill},
                                  {system_call, 2}, {reload},       {use}};
  CHECK(last_access(kernel, true) == AddressSource::kStack);
}

TEST_CASE("conditional moves whose condition is known") {
  const Code five{0xBA, 5, 0, 0, 0};              // mov $5,%edx
  const Code compare{0x83, 0xFA, 0x03};           // cmp $3,%edx
  const Code compare_others{0x48, 0x39, 0xF7};    // cmp %rsi,%rdi
  const Code negate{0xF7, 0xDA};                  // neg %edx
  const Code add{0x83, 0xC2, 0x01};               // add $1,%edx
  const Code if_greater{0x48, 0x0F, 0x4F, 0xD9};  // cmovg %rcx,%rbx
  const Code if_less{0x48, 0x0F, 0x4C, 0xD9};     // cmovl %rcx,%rbx
  const Code if_sign{0x48, 0x0F, 0x48, 0xD9};     // cmovs %rcx,%rbx
  const auto used = [&](const Code& test, const Code& choose) {
    return last_access({{make_address}, {five}, {test}, {choose}, {use}}, true);
  };
  CHECK(used(compare, if_greater) == AddressSource::kForward);
  CHECK(used(compare, if_less) == AddressSource::kUnknown);  // rbx as it was
  CHECK(used(compare_others, if_greater) == AddressSource::kUnknown);
  CHECK(used(negate, if_sign) == AddressSource::kForward);
  CHECK(used(negate, if_less) == AddressSource::kForward);
  // The overflow of an addition is not followed.
  CHECK(used(add, if_less) == AddressSource::kUnknown);
  // Either may be the pointer.
  const Code take_to_rcx{0x48, 0x8D, 0x4C, 0x24, 0x10};  // lea 0x10(%rsp),%rcx
  const std::vector<Piece> leaked{{allocate},       {make_address},   {spill},
                                  {take_to_rcx},    {compare_others}, {if_greater},
                                  {store_anywhere}, {reload},         {use}};
  CHECK(last_access(leaked, true) == AddressSource::kUnknown);
}

TEST_CASE("a published pointer into the frame ends what is known of it") {
  const std::vector<Piece> leaked{{allocate}, {take_address}, {publish}, {make_address},
                                  {spill},    {reload},       {use}};
  // Another thread may write through it at any time.
  CHECK(last_access(leaked, true) == AddressSource::kUnknown);
  CHECK(last_access(leaked, true, true) == AddressSource::kStack);
  const std::vector<Piece> stored{{allocate}, {take_address},   {publish}, {make_address},
                                  {spill},    {store_anywhere}, {reload},  {use}};
  CHECK(last_access(stored, true, true) == AddressSource::kUnknown);
  // A pointer that stays in registers is followed.
  const std::vector<Piece> followed{{allocate},   {make_address},   {spill},  {take_address},
                                    {store_over}, {store_anywhere}, {reload}, {use}};
  CHECK(last_access(followed, true) == AddressSource::kStack);
}

TEST_CASE("a rounded pointer is followed where it is known what is cut off") {
  const Code align_stack{0x48, 0x83, 0xE4, 0xF0};       // and $-16,%rsp
  const Code allocate_odd{0x48, 0x83, 0xEC, 0x28};      // sub $0x28,%rsp
  const Code take_third{0x48, 0x8D, 0x44, 0x24, 0x1F};  // lea 0x1f(%rsp),%rax: to 0x18
  const Code take_first{0x48, 0x8D, 0x44, 0x24, 0x10};  // lea 0x10(%rsp),%rax: to 0x8
  const Code round{0x48, 0x83, 0xE0, 0xF0};             // and $-16,%rax
  const auto rounded = [&](const Code& first, const Code& take) {
    return last_access({{first},
                        {allocate_odd},
                        {make_address},
                        {spill},
                        {take},
                        {round},
                        {store_over},
                        {store_anywhere},
                        {reload},
                        {use}},
                       true);
  };
  CHECK(rounded(align_stack, take_third) == AddressSource::kStack);
  CHECK(rounded(align_stack, take_first) == AddressSource::kUnknown);  // over what was spilled
  // It may be anywhere within 16 bytes, and is not followed.
  CHECK(rounded(long_nop, take_third) == AddressSource::kUnknown);
}

TEST_CASE("a pointer that is only named or overwritten goes nowhere") {
  const std::vector<Piece> named{{allocate}, {make_address},   {spill},  {take_address},
                                 {long_nop}, {store_anywhere}, {reload}, {use}};
  CHECK(last_access(named, true) == AddressSource::kStack);
  const Code take_to_rdx{0x48, 0x8D, 0x54, 0x24, 0x10};  // lea 0x10(%rsp),%rdx
  const std::vector<Piece> overwritten{{allocate}, {make_address},   {spill},  {take_to_rdx},
                                       {multiply}, {store_anywhere}, {reload}, {use}};
  CHECK(last_access(overwritten, true) == AddressSource::kStack);
  // The product may be made back into the pointer.
  const std::vector<Piece> multiplied{{allocate}, {make_address},   {spill},  {take_address},
                                      {multiply}, {store_anywhere}, {reload}, {use}};
  CHECK(last_access(multiplied, true) == AddressSource::kUnknown);
}

TEST_CASE("what was pushed is nobody else's") {
  const std::vector<Piece> pushed{{allocate},   {take_address},   {publish},   {make_address},
                                  {push_saved}, {store_anywhere}, {pop_saved}, {use}};
  CHECK(last_access(pushed, true) == AddressSource::kStack);
  CHECK(last_access(pushed, false) == AddressSource::kStack);
}

TEST_CASE("a store through a followed pointer changes the stack") {
  // lea 0x8(%rsp),%rax instead of 0x10
  const Code take_spill{0x48, 0x8D, 0x44, 0x24, 0x08};
  const std::vector<Piece> over{{allocate},   {make_address}, {spill}, {take_spill},
                                {store_over}, {reload},       {use}};
  CHECK(last_access(over, true) == AddressSource::kUnknown);
}

TEST_CASE("constants are what the mapped files hold in memory") {
  const OwnModules module = own_modules(7);
  const pt::ReadOnlyData constants(module.code);
  std::mt19937_64 random(1);
  uint8_t bytes[8];
  for (const auto& [address, size] : module.read_only) {
    for (int i = 0; i < 200 && size >= 8; ++i) {
      const uint64_t at = address + random() % (size - 7);
      REQUIRE(constants.read(7, at, bytes, 8));
      // Past what sanitizers watch.
      std::array<uint8_t, 8> there{};
      const iovec to{there.data(), there.size()};
      const iovec from{reinterpret_cast<void*>(at), there.size()};
      REQUIRE(::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) == 8);
      CHECK(std::equal(there.begin(), there.end(), std::begin(bytes)));
      const pt::ReadOnlyData::Page page = constants.page(7, at);
      CHECK(page.state != pt::ReadOnlyData::Page::State::kNone);
      if (page.state == pt::ReadOnlyData::Page::State::kSome) {
        REQUIRE(at % 4096 >= page.begin);
        REQUIRE(at % 4096 < page.end);
        CHECK(page.bytes[at % 4096 - page.begin] == static_cast<char>(there[0]));
      }
    }
    CHECK(!constants.read(7, address + size, bytes, 1));
    CHECK(!constants.read(8, address, bytes, 1));
  }
  CHECK(!module.writable.empty());
  for (const auto& [address, size] : module.writable) {
    CHECK(!constants.read(7, address, bytes, 1));
  }
  // Data is what is writable, to the byte.
  for (const auto& [address, size] : module.writable) {
    CHECK(constants.is_data(7, address, 8));
    CHECK(constants.is_data(7, address + size - 8, 8));
    CHECK(constants.may_be_data(7, address - 4, 8));
    CHECK(constants.may_be_data(7, address - 4096, 4097));
    CHECK(!constants.is_data(7, address - 4, 8));
    CHECK(!constants.is_data(8, address, 8));
    CHECK(!constants.may_be_data(7, address, 0));
  }
  for (const auto& [address, size] : module.read_only) {
    CHECK(!constants.may_be_data(7, address, size));
    CHECK(!constants.may_change_by_binding(7, address, size));
  }
  // Of this program's own data binding changes nothing.
  static uint64_t own = 1;
  CHECK(constants.is_data(7, reinterpret_cast<uint64_t>(&own), sizeof own));
  CHECK(!constants.may_change_by_binding(7, reinterpret_cast<uint64_t>(&own), sizeof own));
  // What is settled once it is loaded can no longer be written, but for two words.
  size_t settled = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char writable = '-';
    REQUIRE(std::sscanf(line.c_str(), "%lx-%lx r%c", &begin, &end, &writable) >= 2);
    size_t words = 0;
    for (uint64_t at = begin; writable == 'w' && at < end && end - begin < (8 << 20); at += 8) {
      words += constants.is_settled(7, at, 8) ? 1 : 0;
    }
    CHECK(words <= 2);
    for (uint64_t at = begin; writable != 'w' && at < end && end - begin < (8 << 20); at += 8) {
      settled += constants.is_settled(7, at, 8) ? 1 : 0;
    }
  }
  CHECK(settled > 16);
  CHECK(!constants.may_be_loader(7, reinterpret_cast<uint64_t>(&last_access)));
  CHECK(constants.may_be_loader(7, ::getauxval(AT_BASE) + 64));
  CHECK(constants.may_be_loader(7, 64));
  // Two files at the same place: neither.
  std::vector<pt::CodeSection> twice = module.code;
  REQUIRE(twice.size() >= 2);
  twice[1].address = twice[0].address;
  twice.resize(2);
  CHECK(!pt::ReadOnlyData(twice).read(7, twice[0].address + 64, bytes, 8));
  CHECK(!pt::ReadOnlyData({{"/nowhere", 0, 4096, 0x1000, kTimeMin, 7}}).read(7, 0x1000, bytes, 1));
}

TEST_CASE("what is settled is always the same") {
  size_t loads = 0;
  for (const std::string& name : traced_programs()) {
    CAPTURE(name);
    const SteppedRun& run = stepped(name);
    std::vector<pt::CodeSection> code;
    for (const MappedCode& mapped : run.code) {
      code.push_back({mapped.file, mapped.offset, mapped.size, mapped.address, kTimeMin, 1});
    }
    const pt::ReadOnlyData constants(code);
    std::map<uint64_t, uint64_t> values;
    for (size_t i = 0; i + 1 < run.steps.size(); ++i) {
      const Step& step = run.steps[i];
      const x86::Instruction& instruction = run.at(step.ip);
      if (constants.may_be_loader(1, step.ip)) {
        continue;
      }
      for (const x86::Access& access : instruction) {
        const auto range = evaluate(access, step.registers);
        if (!range || range->size != 8 || !constants.is_settled(1, range->address, 8)) {
          continue;
        }
        CHECK(access.kind == x86::AccessKind::kLoad);
        const bool followed =
            run.steps[i + 1].thread == step.thread && instruction.access_count == 1;
        const auto value =
            followed ? loaded_value(instruction, run.steps[i + 1].registers) : x86::Value();
        if (value) {
          ++loads;
          CHECK(values.try_emplace(range->address, *value).first->second == *value);
        }
      }
    }
  }
  CHECK(loads > 50);
}
