// The abstract x86-TSO machine: one FIFO store buffer per thread, one shared memory, one lock.
//
// Source      Owens, Sarkar, Sewell, A Better x86 Memory Model: x86-TSO (TPHOLs 2009); theory
//             section 8. Ground truth for the checkers that work on traces.
// Steps       execute(t) runs the next instruction of thread t; commit(t) moves the oldest store
//             of t's buffer to memory. A load takes the newest store to its location in its own
//             buffer, else memory. A fence or locked operation executes only when the buffer of its
//             thread is empty; a locked operation loads and stores memory in that one step, so the
//             machine's lock needs no state. Under kSc a store goes to memory as it executes, and
//             there are no commit steps.
// Programs    See tso/machine/program.h: abstract locations without overlap, no mixed sizes. A
//             compare-exchange that fails writes nothing (x86 writes the old value back, which no
//             other access can tell from the value that is there).
// State       Plain data that anyone may inspect: what every load read, from which write, whether
//             out of its own buffer. Memory is not stored: it is the last write of `coherence`.
// Cost        A step is O(buffer + 1), and so is taking it back; enabled_steps is O(threads).
// Misses      Speculation, non-temporal stores, write-combining memory, and everything else that
//             the paper leaves out; sfence and lfence do nothing here.
// Thread-safety: Machine is immutable; a State belongs to one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tso/machine/program.h"

namespace tsomon::machine {

enum class Model : uint8_t { kSc, kTso };

struct Rules {
  Model model = Model::kTso;
  uint32_t store_buffer = 0xFFFFFFFFU;  // entries; a store waits while the buffer is full
};

// Names the write of an event: `event` counts the events of `thread` from 0. Thread 0xFFFF stands
// for the initial value of the location.
struct WriteId {
  uint16_t thread = 0xFFFF;
  uint16_t event = 0;
  bool is_initial() const { return thread == 0xFFFF; }
  bool operator==(const WriteId&) const = default;
};

enum class MemoryEventKind : uint8_t { kLoad, kStore, kLocked, kFence };

// What an instruction did to memory. Instructions that leave memory alone make no event.
struct MemoryEvent {
  MemoryEventKind kind = MemoryEventKind::kFence;
  bool forwarded = false;  // the load was served by its own thread's buffer
  bool writes = false;     // kStore, and kLocked but for a compare-exchange that failed
  Location location = 0;
  uint32_t instruction = 0;  // index in the thread's program
  WriteId source;            // of kLoad and kLocked: the write that was read
  Value read = 0;
  Value written = 0;
};

struct ThreadState {
  uint32_t next = 0;            // instruction to execute; the number of instructions: finished
  uint32_t backward_jumps = 0;  // taken so far
  uint8_t flags = 0;
  std::array<Value, kRegisters> registers{};
  std::vector<MemoryEvent> events;  // in program order
  std::vector<uint32_t> stores;     // indices of the kStore events among them, in program order
  uint32_t committed = 0;           // so many of `stores` have left the buffer
};

struct State {
  std::vector<ThreadState> threads;
  std::vector<std::vector<WriteId>> coherence;  // per location the writes in memory, oldest first
};

struct Step {
  enum class Kind : uint8_t { kExecute, kCommit };
  Kind kind = Kind::kExecute;
  uint16_t thread = 0;

  static Step execute(uint16_t thread) { return {Kind::kExecute, thread}; }
  static Step commit(uint16_t thread) { return {Kind::kCommit, thread}; }
  bool operator==(const Step&) const = default;
};

// What apply() changed and the rest of the state does not show.
struct Undo {
  Step step;
  uint8_t flags = 0;
  Register written = 0;
  bool made_event = false;
  uint32_t next = 0;
  uint32_t backward_jumps = 0;
  Value value = 0;  // of the register `written`
};

class Machine {
 public:
  // Requires an empty program.check(). The program must outlive the machine.
  explicit Machine(const Program& program, Rules rules = {});
  explicit Machine(const Program&& program, Rules rules = {}) = delete;

  State initial() const;
  bool is_enabled(const State& state, Step step) const;
  void enabled_steps(const State& state, std::vector<Step>& steps) const;
  // Requires is_enabled(state, step).
  Undo apply(State& state, Step step) const;
  // Takes back the last step that was applied and not yet taken back.
  void undo(State& state, const Undo& undo) const;

  // All threads have run to their end and all buffers are empty.
  bool is_final(const State& state) const;
  bool is_finished(const State& state, uint16_t thread) const {
    return state.threads[thread].next >= program_.threads[thread].instructions.size();
  }
  // The instruction that execute(thread) would run. Requires !is_finished.
  const Instruction& next_instruction(const State& state, uint16_t thread) const {
    return program_.threads[thread].instructions[state.threads[thread].next];
  }
  Value memory(const State& state, Location location) const;
  const Program& program() const { return program_; }
  uint16_t threads() const { return static_cast<uint16_t>(program_.threads.size()); }
  const Rules& rules() const { return rules_; }

 private:
  struct Seen {
    Value value;
    WriteId source;
    bool forwarded;
  };
  Seen in_memory(const State& state, Location location) const;
  Seen load(const State& state, const ThreadState& thread, uint16_t number,
            Location location) const;
  void execute(State& state, uint16_t number, Undo& undo) const;

  const Program& program_;
  Rules rules_;
};

}  // namespace tsomon::machine
