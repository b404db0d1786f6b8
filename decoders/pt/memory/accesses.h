// Which bytes the instructions of a path accessed.
//
// Purpose     PT shows the path, not the data. Addresses come from the instruction alone (absolute,
//             relative to the instruction pointer), from values that the program wrote into the
//             trace (PTWRITE), from samples of the registers, and from carrying all of these along
//             the path, forwards and backwards (as in ProRace, OSDI 2017, and REPT, OSDI 2018).
// Contract    What is found is what the processor accessed; what cannot be known is kUnknown.
// Facts       Registers are carried along as terms (symbolic_values.h): what a later fact says of a value
//             also settles what was made of it before. Facts are samples, PTWRITE values, the
//             targets of indirect branches, and comparisons that branches were taken on.
// Constants   Memory that nobody writes is read from `constants`.
// Stack       Registers that were saved and locals are followed through the thread's own stack,
//             also where the stack pointer itself is not known (thread_stack.h says what is relied
//             upon). `frames_before` goes further: it relies on functions that were entered before
//             the path began, or before a gap, not having given pointers to their locals away.
// Memory      Other values are carried through memory only where `memory` says that nobody else
//             can change them: the process has one thread and shares no writable memory. A store to
//             an unknown address, and the kernel, end what is known.
// Windows     Facts are carried backwards over kWindow blocks at least.
// Masked      accesses are at most what is given; repeats with an unknown count are unknown.
// Thread-safety: distinct finders are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "decoders/pt/code/read_only_data.h"
#include "decoders/pt/flow/flow.h"
#include "decoders/pt/values/system_calls.h"
#include "decoders/x86/instruction.h"

namespace tsomon::pt {

enum class AddressSource : uint8_t {
  kUnknown,
  kInstruction,  // absolute, or relative to the instruction pointer
  kForward,      // registers carried along from facts before
  kBackward,     // ... from facts after
  kStack,        // carried through the thread's stack as well
  kMemory,       // ... through other memory
  kOwnStack,  // no address, but certainly the thread's stack, where no other thread can get at it
  kLoader,    // no address, but a load of the loader's while it binds a symbol (binding.h)
};

// `within`, `stack`: of an access whose address is not known, where that is asked for.
struct FoundAccess {
  const x86::Instruction* instruction = nullptr;
  const x86::Access* access = nullptr;
  x86::ByteRange range;  // size 0: nothing was accessed, or unknown
  AddressSource source = AddressSource::kUnknown;
  bool stack = false;     // somewhere on the thread's own stack
  x86::ByteRange within;  // no byte of it is elsewhere; size 0: may be anywhere
};

// Registers between two instructions that the thread executed, as they were at some moment of
// [min(earliest, time), time]: nothing that comes before them in the path was executed later, and
// nothing after them earlier.
struct RegisterSample {
  int process = 0;
  int thread = 0;
  int64_t time = 0;
  uint64_t ip = 0;  // of the instruction that follows them; with `after`, of the one before
  x86::RegisterFile registers;
  int64_t earliest = kTimeMax;
  bool after = false;
  bool interrupt = false;  // it was taken where the thread was interrupted
};

struct PlacedSample {
  size_t entry = 0;        // of the path, a block
  size_t instruction = 0;  // in the block
  x86::RegisterFile registers;
  // Of a clone3 that comes next: what its structure has as the new thread's pointer.
  std::optional<uint64_t> thread_pointer = std::nullopt;
};

inline bool is_before(const PlacedSample& a, const PlacedSample& b) {
  return a.entry != b.entry ? a.entry < b.entry : a.instruction < b.instruction;
}

// Where in the path the samples belong (placed_samples.cpp): the one place that has their address
// at their time. Those that could belong to several places, or into a gap, are left out, and those
// with more than 65,536 entries of the path to choose from. O(path + samples * (log path +
// choice)). At an instruction that repeats they say nothing of the registers that it changes: it
// may have been half done.
std::vector<PlacedSample> place_samples(const ThreadPath& path,
                                        const std::vector<RegisterSample>& samples);

struct MemoryProofs;  // global_words.h

class AccessSink {
 public:
  AccessSink() = default;
  AccessSink(const AccessSink&) = delete;
  AccessSink& operator=(const AccessSink&) = delete;
  virtual ~AccessSink() = default;
  // A block with its accesses in order; other entries with none.
  virtual void entry(const PathEntry& entry, const std::vector<FoundAccess>& accesses) = 0;
  // Where asked for: the block that comes next is the loader's while it binds a symbol (binding.h).
  virtual void binds() {}
  // Where asked for, after the last entry: what is known of the registers before the first.
  virtual void began(const x86::RegisterFile& registers) { static_cast<void>(registers); }
  // Where asked for: the block before ended with it.
  virtual void system_call(const SystemCall& call) { static_cast<void>(call); }
};

struct AccessOptions {
  bool memory = false;  // see above
  // Registers alone, carried forwards: several times as fast, and finds less.
  bool registers_only = false;
  bool stack = true;
  bool frames_before = false;
  bool reach = false;  // where unknown accesses may be, and system calls, are asked for
  const ReadOnlyData* constants = nullptr;
  // Values are carried through the data of files where this proves that nobody else has changed
  // them. Not with registers_only; requires `constants`.
  const MemoryProofs* proofs = nullptr;
};

inline constexpr size_t kWindow = 2048;

// `samples` by place.
void find_accesses(const ThreadPath& path, const std::vector<PlacedSample>& samples,
                   const AccessOptions& options, AccessSink& sink);

}  // namespace tsomon::pt
