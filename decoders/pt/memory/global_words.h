// Words of files' writable data that a thread has stored or loaded, and that certainly still stand.
//
// Contract    A word is given at a later load of the thread when its own stores since cannot have
//             changed it, and no other thread's store can have taken effect in between
//             (interference.h says on what that rests).
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "decoders/pt/memory/interference.h"
#include "decoders/pt/values/symbolic_values.h"

namespace tsomon::pt {

// What a walk needs to prove that memory has not changed.
struct MemoryProofs {
  const Interference* others = nullptr;
  const ThreadStores* self = nullptr;
  const PathTimes* times = nullptr;
};

class GlobalWords {
 public:
  GlobalWords(int process, const MemoryProofs& proofs, const ReadOnlyData& constants)
      : process_(process), proofs_(proofs), constants_(constants) {}

  // `binds`: what the thread does is the loader's while it binds a symbol.
  void at(size_t entry, bool binds) {
    at_ = entry;
    binds_ = binds;
  }
  // Whether words at the address are kept.
  bool keeps(uint64_t address, unsigned size) const;
  // The word at an address that is kept, cut to `size`; nothing where it may have changed.
  std::optional<SymbolicValue> load(uint64_t address, unsigned size, SymbolicValues& terms);
  // It is there now.
  void put(uint64_t address, unsigned size, SymbolicValue value);
  void forget(uint64_t address, uint64_t size);
  void store(const KernelWrites& writes);
  // The thread stored somewhere.
  void forget_any();
  void forget_all() {
    words_.clear();
    bound_.clear();
  }

  template <typename Apply>
  void each_term(Apply apply) {
    for (SymbolicMemory* words : {&words_, &bound_}) {
      for (auto& [address, word] : *words) {
        apply(word.value);
      }
    }
  }

 private:
  static constexpr size_t kMost = size_t{1} << 16;

  struct SymbolicWord {
    SymbolicValue value;
    unsigned size = 0;
    int64_t since = 0;
  };
  using SymbolicMemory =
      std::map<uint64_t, SymbolicWord>;  // by address; they do not overlap, in both of them

  static void forget(SymbolicMemory& words, uint64_t address, uint64_t size);

  int process_;
  MemoryProofs proofs_;
  const ReadOnlyData& constants_;
  size_t at_ = 0;
  bool binds_ = false;
  SymbolicMemory words_;
  SymbolicMemory bound_;  // those that binding may change
};

}  // namespace tsomon::pt
