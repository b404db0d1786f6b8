// What is probed in a process: from what the user names to places in files and what a hit means.
//
// Names       UNIT and ACCESSES are one of
//               [MODULE:]PATTERN         functions, as shell patterns; the executable's, or if it
//                                        has none of the name those of the other modules
//               MODULE+0xA[..0xB]        file addresses: the function there, or up to 0xB
//               0xA[..0xB]               addresses in the memory of the process
//               usdt:PROVIDER:A..B       from marker A to marker B (units only)
// Units       Begin with the function's first instruction. They end with each `ret`, or when a
//             later hit of the thread shows a stack that the function has left (hits_to_events.h):
//             that covers longjmp, exceptions and tail calls. A tail call to another unit ends the
//             first.
// Accesses    Every load, store, locked instruction and fence of the function's own code, callees
//             excluded, but for
//               - operands addressed through rsp, or through rbp where the function begins by
//                 making it a frame pointer: what is on the stack is taken to be the thread's own
//                 (a local variable whose address another thread has is missed);
//               - operands addressed through fs or gs (thread-local);
//               - operands whose address the general registers do not give (gathers), and
//                 conditional or masked ones: a note says where.
// Locked      The kernel sets no uprobe on an instruction with a LOCK prefix. Such an instruction
//             is told by the probe of one before it in the same straight run of code, with the
//             registers carried over, or by the one after it; where neither works, by a note, and
//             the result is incomplete.
// Locks       Those named, and pthread_mutex_*, pthread_rwlock_*, pthread_spin_*, pthread_cond_*: acquired when the
//             function returns 0, released when the release is called.
// Patterns    What a pattern with wildcards matches and no probe can bound is skipped, and a note
//             says how many and why. What was named is an error.
// Errors      kUsage with what was looked for where, and what has a similar name.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "decoders/x86/instruction.h"
#include "monitor/attach/uprobes.h"
#include "monitor/process/elf_image.h"
#include "monitor/process/symbols.h"
#include "monitor/process/target.h"
#include "tso/model/trace.h"

namespace tsomon::attach {

enum class LockRole : uint8_t {
  kAcquire,
  kAcquireShared,
  kRelease,
  kReleaseEither,  // however it was acquired
  kWait,           // gives the mutex (second argument) back and takes it again
};

inline bool is_release(LockRole role) {
  return role == LockRole::kRelease || role == LockRole::kReleaseEither;
}

// When a call that acquires has done so.
enum class LockResult : uint8_t { kZero, kAlways, kNonZero };

struct Action {
  enum class Kind : uint8_t {
    kEnter,   // of a unit
    kLeave,   // ... by return
    kBegin,   // of a unit, at a marker
    kEnd,     // ... at a marker
    kAccess,  // or a full fence
    kLock,    // a lock function is entered
    kLockReturn,
  };
  Kind kind = Kind::kAccess;
  bool fence = false;  // kAccess: no memory is accessed
  bool after = false;  // kAccess: it has taken place when the probe is hit
  LockRole role = LockRole::kAcquire;
  LockResult result = LockResult::kZero;
  uint32_t label = Interner::kNone;  // of Symbols::labels
  uint32_t location = Event::kNoLocation;
  x86::Access access;
  uint32_t function = 0;     // kEnter, kAccess: in Plan::functions,
  uint32_t instruction = 0;  // ... and in its code: the one that accesses
};

struct Site {
  uint32_t module = 0;  // in Target::modules()
  uint32_t group = 0;
  uint32_t function = 0;
  uint32_t instruction = 0;     // in the function's code; markers have none
  uint64_t address = 0;         // in the file as it counts
  uint64_t offset = 0;          // in the file
  uint64_t semaphore = 0;       // offset of the marker's counter; 0: none
  MemoryOperand memory;         // read at each hit: the location of
  uint32_t memory_action = 0;   // ... this one of
  std::vector<Action> actions;  // none: only what registers hold is of interest
  bool only_accesses() const;
};

struct PlannedFunction {
  std::string name;
  uint32_t module = 0;
  std::vector<Range> ranges;  // file addresses, the entry first
  std::vector<x86::Instruction> code;
  bool unit = false;
  bool accesses = false;
  bool by_pattern = false;  // no name without wildcards means it: it may be left out
};

// What is attached and detached in one piece; all of one module.
struct Group {
  std::string name;
  uint32_t module = 0;
  bool locks = false;
  std::vector<uint32_t> sites;
};

struct WatchPoint {
  std::string name;
  uint64_t address = 0;  // in memory
  uint32_t size = 0;     // 1, 2, 4 or 8, aligned
};

struct PlanRequest {
  std::vector<std::string> units;
  std::vector<std::string> accesses;  // besides the code of the units
  std::vector<std::string> watch;     // SYMBOL|ADDRESS[:LENGTH]
  bool unit_accesses = true;
  bool locks = true;
  // Patterns of functions that acquire or release the lock whose address is their first argument
  // (monitor/probe/lock_name.h), or ACQUIRE/RELEASE. They are no units, nor are their accesses.
  std::vector<std::string> named_locks;
  bool group_by_function = false;  // else by module
  bool values = false;             // what registers and memory hold is wanted, too
  // Names that no module has may be of one that is loaded later.
  bool later = false;
};

struct Plan {
  std::vector<PlannedFunction> functions;
  std::vector<Site> sites;
  std::vector<Group> groups;
  std::vector<WatchPoint> watch;
  std::vector<std::string> notes;   // what is not seen, for the user
  std::vector<std::string> missed;  // ... and should have been: the result is incomplete
  size_t accesses = 0;              // instructions
  SourcePlaces places;              // of the locations in the symbols
  std::set<std::string> settled;    // names that modules loaded later are not asked for
};

// Probes tell their number and what to read from memory in one word.
inline constexpr size_t kMaxSites = size_t{1} << 18;

// The debugging registers of a processor.
inline constexpr size_t kMaxWatchPoints = 4;

// Labels and locations are added to `symbols`.
Result<Plan> make_plan(const Target& target, const PlanRequest& request, Symbols& symbols);
// Adds to the plan what the modules from `first` (not 0) on have of what was asked for; `notes` and
// `missed` are about these alone.
Result<Plan> extend_plan(Plan plan, uint32_t first, const Target& target,
                         const PlanRequest& request, Symbols& symbols);

// Whether units begin at one of the sites from `first` on.
bool has_units(const Plan& plan, size_t first);

}  // namespace tsomon::attach
