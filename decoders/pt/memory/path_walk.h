// A path as terms: what its registers, its stack and, where asked for, other memory hold, and the
// addresses of its accesses.
//
// Method      Every block's steps (block_steps.h) run on the state; what nothing gives is a leaf.
//             Samples, PTWRITE values, targets of indirect branches and comparisons that branches
//             were taken on are facts about terms (symbolic_values.h). Addresses are terms: what becomes
//             known of a node later settles the earlier ones.
// Signals     A handler that returns without having touched the registers that the kernel saved
//             on its stack gives them back.
// Length      One state, of which the steps of all instructions (path_walk_*.cpp) change parts.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <tsl/robin_map.h>

#include "decoders/pt/code/escape_analysis.h"
#include "decoders/pt/memory/accesses.h"
#include "decoders/pt/memory/global_words.h"
#include "decoders/pt/memory/thread_stack.h"
#include "decoders/pt/values/symbolic_values.h"

namespace tsomon::pt {

class PathWalk {
 public:
  // Where an access of a block was: once for each, in order.
  struct Place {
    SymbolicValue address;
    uint32_t repeats = 0;  // position + 1 in repeats(); 0: once
    bool followed = true;
    bool own = false;    // of the thread's stack, where no other thread can get at it
    bool stack = false;  // of the thread's stack
  };
  using Registers = std::array<SymbolicValue, x86::kRegisters>;
  struct NewThreadTerms {
    Registers registers;
    SymbolicValue flags;
    SymbolicValue thread_pointer;
  };
  // What was in the registers at a system call.
  struct Call {
    SymbolicValue number;
    std::array<SymbolicValue, 6> arguments;
    std::array<bool, 6> own{};              // pointers into the thread's stack
    std::optional<NewThreadTerms> creates;  // of clone and clone3
  };
  struct Repeats {
    SymbolicValue count;
    SymbolicValue down;
  };

  PathWalk(int process, const AccessOptions& options);

  // Which entry of the path comes next; whether it is the loader's while it binds a symbol.
  void at(size_t entry, bool binds) {
    if (globals_) {
      globals_->at(entry, binds);
    }
  }
  void block(const CodeBlock& block) {
    enter(block);
    run(block.steps);
    last_ = &block;
  }
  // `samples`: those of this block, by instruction.
  void block(const CodeBlock& block, const PlacedSample* samples, const PlacedSample* samples_end);
  void written(const x86::Instruction& instruction, uint64_t value);
  // The path goes on at `ip`, not where it was.
  void elsewhere(uint64_t ip);
  void gap();

  // Where the accesses of the blocks that follow go: there is room for each of them.
  void record_to(Place* places) { place_ = places; }
  const Place* recorded() const { return place_; }
  std::vector<Repeats>& repeats() { return repeats_; }
  std::vector<Call>& calls() { return calls_; }
  // Before the path.
  const Registers& first() const { return first_; }
  SymbolicValues& terms() { return terms_; }
  // Facts that need more than equations, then the equations.
  void solve();
  // `each`: applied to every term that the caller still holds.
  void forget_before(size_t node, std::span<Place> places, std::vector<Repeats>& repeats,
                     std::vector<Call>& calls);

 private:
  static constexpr uint64_t kMostEntries = 4096;  // of a table that is searched

  struct Tested {
    SymbolicValue a;
    SymbolicValue b;
    x86::Condition condition = x86::Condition::kNone;
    uint8_t size = 8;
    bool compared = false;
  };
  // What a signal handler interrupted.
  struct Interrupted {
    Registers registers;
    ThreadStack stack;
    std::array<uint64_t, 2> ips;  // where it may go on
    uint32_t frame = 0;           // node of the stack pointer that the handler began with
    bool intact = true;
  };
  // What constant memory gave, at an address that is not known.
  struct TableLoad {
    SymbolicValue address;
    SymbolicValue value;
    uint64_t searched = ~uint64_t{0};  // for the value: entries up to this one
    uint8_t size = 0;
  };
  struct Table {
    uint64_t address = 0;
    uint64_t value = 0;  // that is looked for
    uint32_t most = 0;   // the last entry
    uint8_t size = 0;    // bytes of the value
    uint8_t shift = 0;   // from entry to entry
    bool operator==(const Table&) const = default;
  };
  struct Searched {
    Table table;
    std::optional<uint64_t> found;
  };
  struct Page {
    uint64_t number = ~uint64_t{0};
    ReadOnlyData::Page content;
  };
  struct MemoryKey {
    uint32_t node;
    int64_t unit;
    bool operator==(const MemoryKey&) const = default;
  };
  struct MemoryHash {
    size_t operator()(const MemoryKey& key) const {
      return (static_cast<uint64_t>(key.unit) ^ uint64_t{key.node} << 40) * 0x9E3779B97F4A7C15ULL >>
             20;
    }
  };
  struct MemoryStorage {
    tsl::robin_map<MemoryKey, SymbolicWord, MemoryHash> words;
    uint32_t node = 0;  // of the access under way

    static int64_t from(int64_t unit) { return unit; }
    static int64_t upto(int64_t unit) { return unit; }
    SymbolicWord* find(int64_t unit) {
      const auto found = words.find({node, unit});
      return found == words.end() ? nullptr : &found.value();
    }
    SymbolicWord* make(int64_t unit) {
      static constexpr size_t kMost = size_t{1} << 20;
      if (words.size() > kMost) {
        words.clear();
        return nullptr;
      }
      return &words[{node, unit}];
    }
  };

  SymbolicValue at(Ref ref) const {
    return SymbolicValue::read(slots_[ref.slot]).plus(static_cast<uint64_t>(ref.offset));
  }
  SymbolicValue& reg(x86::Register name) { return slots_[static_cast<unsigned>(name)]; }
  const SymbolicValue& reg(x86::Register name) const { return slots_[static_cast<unsigned>(name)]; }

  void enter(const CodeBlock& block) {
    block_ip_ = block.ip();
    if (has_target_ || tested_.condition != x86::Condition::kNone) {
      branch_to(block_ip_);
    }
    returns_from_signal_ = false;
    if (stack_.asks_for_frame()) {
      find_frame(block_ip_);
    }
  }
  void run(const BlockSteps& block);
  void find_frame(uint64_t ip);
  void move_stack(SymbolicValue& to, int64_t offset);
  void set_registers(const Step*& step, const Step* end);
  void complex(const x86::Instruction& instruction);
  void opaque(const Step& step);
  SymbolicValue made_of_stack(const Step& step, SymbolicValue a, SymbolicValue b,
                              SymbolicValue made);
  std::optional<SymbolicValue> aligned(SymbolicValue pointer, SymbolicValue mask) const;
  SymbolicValue indexed(const Step& step, SymbolicValue a, SymbolicValue b);
  void multiply_wide(const Step& step);
  void decide(const Step& step);
  void select(const Step& step);
  void string(const x86::Instruction& instruction);
  void system_call();
  NewThreadTerms new_thread(bool in_memory);
  void sample(const x86::RegisterFile& registers);
  void branch_to(uint64_t ip);
  void forget_registers(x86::RegisterMask names);

  std::optional<uint64_t> constant_at(uint64_t address, unsigned size);
  const SymbolicValue* settled_at(uint64_t address, unsigned size);
  // Where the C library keeps the address of the thread's block in it.
  bool is_own_pointer(SymbolicValue address, unsigned size) const {
    return address.node == reg(x86::Register::kFsBase).node && is_self_pointer(address, size);
  }
  bool is_self_pointer(SymbolicValue address, unsigned size) const;
  void forget_settled(uint64_t address, uint64_t size);
  // Known, and not through a fact: no place of the stack has become known so.
  static bool is_certain(SymbolicValue address) {
    return address.known() && (address.via & kViaFact) == 0;
  }
  // Neither known nor a place of the stack, as far as that shows at once.
  bool is_elsewhere(SymbolicValue address) const {
    return !address.known() && !stack_.owns(address.node) && !terms_.node(address.node).known;
  }
  SymbolicValue load(SymbolicValue address, unsigned size) {
    if (is_own(address)) {
      return load_own(address, size);
    }
    return is_certain(address)             ? load_known(address, size)
           : is_own_pointer(address, size) ? reg(x86::Register::kFsBase)
           : is_elsewhere(address)         ? load_elsewhere(address, size)
                                           : load_found(address, size);
  }
  SymbolicValue load_own(SymbolicValue address, unsigned size) {
    return options_.stack ? stack_.load(address, size, terms_) : terms_.leaf(size);
  }
  SymbolicValue load_elsewhere(SymbolicValue address, unsigned size) {
    const SymbolicValue value = options_.memory ? load_shared(address, size) : terms_.leaf(size);
    const SymbolicValues::Node& node = terms_.node(address.node);
    if (options_.constants != nullptr &&
        (node.operation == x86::Operation::kShiftLeft || node.most < kMostEntries)) {
      load_entry(address, value, size);
    }
    return value;
  }
  SymbolicValue load_found(SymbolicValue address, unsigned size);
  SymbolicValue load_known(SymbolicValue address, unsigned size);
  SymbolicValue load_shared(SymbolicValue address, unsigned size);
  void load_entry(SymbolicValue address, SymbolicValue value, unsigned size);
  void store(SymbolicValue address, unsigned size, SymbolicValue value, bool pushed) {
    if (is_own(address)) {
      store_own(address, size, value, pushed);
    } else if (is_certain(address) || is_elsewhere(address)) {
      store_outside(address, size, value);
    } else {
      store_found(address, size, value, pushed);
    }
  }
  // Not to the stack, as far as that is known.
  void store_outside(SymbolicValue address, unsigned size, SymbolicValue value) {
    leak(value);
    store_elsewhere(address, size);
    if (globals_) {
      store_global(address, size, value);
    }
    if (options_.memory) {
      store_shared(address, size, value);
    }
  }
  void store_own(SymbolicValue address, unsigned size, SymbolicValue value, bool pushed) {
    frame_written(address, size);
    if (options_.memory) {
      memory_store(address.node);
    }
    stack_.store(address, size, value, pushed, terms_);
  }
  void store_found(SymbolicValue address, unsigned size, SymbolicValue value, bool pushed);
  void store_shared(SymbolicValue address, unsigned size, SymbolicValue value);
  void store_unknown(SymbolicValue address, uint64_t size);
  void store_elsewhere(SymbolicValue address, uint64_t size) {
    if (globals_) {
      forget_global(address, size);
    }
    if (!is_certain(address)) {
      store_somewhere(address);
    }
    if (address.known() && !settled_.empty()) {
      forget_settled(address.offset, size);
    }
    if (options_.memory) {
      forget_shared(address, size);
    }
  }
  void store_somewhere(SymbolicValue address);
  void forget_shared(SymbolicValue address, uint64_t size);
  void store_indexed(SymbolicValue base, uint64_t offset);
  void store_anywhere();
  void store_by_others();
  SymbolicValue load_global(uint64_t address, unsigned size);
  void store_global(SymbolicValue address, unsigned size, SymbolicValue value);
  void forget_global(SymbolicValue address, uint64_t size);
  void memory_store(uint32_t node);
  void touch(SymbolicValue address, uint64_t size);
  bool is_own(SymbolicValue term) const {
    return stack_.owns(term.node) && ThreadStack::is_near(term);
  }
  void leak(SymbolicValue term) {
    if (stack_.owns(term.node)) {
      leaked(term);
    }
  }
  void leaked(SymbolicValue term);
  // Relative to the stack pointer, where that is known; else with what is known since.
  SymbolicValue on_stack(SymbolicValue address) const {
    if (address.node == 0 && (address.via & kViaFact) == 0) {
      return address;
    }
    if (is_own(address)) {
      return address;
    }
    address = terms_.resolve(address);
    return address.known() && (address.via & kViaFact) != 0 ? perhaps_on_stack(address) : address;
  }
  SymbolicValue perhaps_on_stack(SymbolicValue address) const;
  // The registers that a signal handler's return restores.
  void frame_written(SymbolicValue address, uint64_t size) {
    // The return address before them is the handler's.
    if (!interrupted_.empty() && address.node == interrupted_.back().frame &&
        static_cast<int64_t>(address.offset) > 8 - static_cast<int64_t>(size)) {
      interrupted_.back().intact = false;
    }
  }
  void record(SymbolicValue address, const x86::Access& access) {
    Place& place = *place_++;
    address.write(place.address);
    place.repeats = 0;
    place.followed = true;
    const bool stack = is_own(address) && !access.stack_relative();
    place.own = stack && stack_.is_private(address);
    place.stack = stack || (options_.reach && into_stack(address));
  }
  // Through an index that is not known.
  bool into_stack(SymbolicValue address) const;
  bool is_index(SymbolicValue term, unsigned depth = 0) const;
  void look_up(TableLoad& load);
  std::optional<uint64_t> search(const Table& table);

  int process_;
  AccessOptions options_;
  SymbolicValues terms_;
  std::vector<SymbolicValue> slots_;
  ThreadStack stack_;
  EscapeAnalysis escape_analysis_;
  SymbolicMemory<MemoryStorage> memory_;
  uint32_t memory_epoch_ = 0;
  uint32_t last_writer_ = 0;
  std::deque<Interrupted> interrupted_;
  bool returns_from_signal_ = false;
  Tested tested_;
  SymbolicValue target_;
  bool has_target_ = false;
  std::optional<bool> decided_;  // by the last kDecide
  uint32_t decided_via_ = 0;
  const CodeBlock* last_ = nullptr;
  std::vector<TableLoad> table_loads_;
  std::array<Searched, 64> searched_{};        // the last ones
  std::array<Page, 64> pages_{};               // of constants, the last ones used
  std::map<uint64_t, SymbolicValue> settled_;  // words that are always the same, by address
  uint64_t block_ip_ = 0;
  Place* place_ = nullptr;  // of the next access
  std::vector<Repeats> repeats_;
  std::vector<Call> calls_;
  Registers first_;
  std::optional<GlobalWords> globals_;  // where proofs are at hand
};

}  // namespace tsomon::pt
