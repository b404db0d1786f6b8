// Straight pieces of code, decoded once.
//
// Thread-safety: none: one cache for each decoding thread. Blocks live as long as the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <tsl/robin_map.h>

#include "decoders/pt/code/block_steps.h"
#include "decoders/x86/instruction.h"

namespace tsomon::pt {

struct CodeBlock {
  // What an instruction does to known registers when nothing is known of memory: unless all of
  // `required` is known, it only makes `writes` unknown.
  struct Effect {
    x86::RegisterMask required = 0;
    x86::RegisterMask writes = 0;
  };
  struct Place {
    const x86::Instruction* instruction = nullptr;
    const x86::Access* access = nullptr;
    x86::RegisterMask required = 0;  // without them the address is not known; kNever: never is
    bool plain = false;              // once, of a known size: the address is all there is to know
  };
  static constexpr x86::RegisterMask kNever = ~x86::kAllRegisters;

  std::vector<x86::Instruction> instructions;  // never empty
  std::vector<Place> accesses;                 // in order
  std::vector<Effect> effects;                 // of each instruction
  BlockSteps steps;
  uint64_t first = 0;          // address
  bool jumps_by_word = false;  // ends with a jump through a word at a constant address
  uint64_t ip() const { return first; }
  // Where the program goes on, when that is one of two places; 0: none, or not known from the code.
  std::array<uint64_t, 2> goes_on_at() const;
};

class CodeCache {
 public:
  // Bytes of the code at an address: how many could be read.
  using Read = std::function<size_t(uint64_t address, uint8_t* to, size_t size)>;

  // `count` instructions from `ip` on, in the image `image` (equal images have equal code). Null
  // when the bytes are no such instructions.
  const CodeBlock* find(uint64_t image, uint64_t ip, uint32_t count, const Read& read) {
    const size_t slot = hash(ip, count) % kRecent;
    Recent& recent = recent_[slot];
    if (recent.ip == ip && recent.count == count && recent.image == image) {
      return recent.block;
    }
    const CodeBlock* block = find_or_decode(image, ip, count, read);
    recent = {image, ip, count, block};
    return block;
  }
  // Nothing more is decoded: no program has so much code, but damaged input may seem to.
  bool full() const { return instructions_ >= kMostInstructions; }

 private:
  static constexpr size_t kRecent = 4096;
  static constexpr uint64_t kMostInstructions = uint64_t{1} << 21;  // of all blocks

  struct Key {
    uint64_t image;
    uint64_t ip;
    uint32_t count;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return hash(key.ip, key.count) ^ key.image * 0x9E3779B97F4A7C15ULL;
    }
  };
  struct Recent {
    uint64_t image = 0;
    uint64_t ip = 0;
    uint32_t count = 0;
    const CodeBlock* block = nullptr;
  };

  static size_t hash(uint64_t ip, uint32_t count) {
    return (ip ^ uint64_t{count} << 40) * 0x9E3779B97F4A7C15ULL >> 20;
  }
  const CodeBlock* find_or_decode(uint64_t image, uint64_t ip, uint32_t count, const Read& read);

  uint64_t instructions_ = 0;
  std::array<Recent, kRecent> recent_{};
  tsl::robin_map<Key, std::unique_ptr<CodeBlock>, KeyHash> blocks_;
};

}  // namespace tsomon::pt
