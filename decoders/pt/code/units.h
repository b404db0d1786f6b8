// The units of a thread's path: calls of functions, and what lies between two markers.
//
// Functions   From the first instruction to the return, tail calls and recursion included. The
//             addresses that calls return to are kept, and every return is compared with them.
// Markers     Instructions (USDT sites) and values of PTWRITE at which units begin and end. An end
//             closes the innermost open unit of its label, one without a begin is left out.
// Uncertain   A unit ends where it begins to be uncertain whether the thread is still in it: where
//             something is missing, where a function is entered that leaves others without their
//             returns (longjmp, an exception), where a jump over a long way goes after a call or
//             through a register (as longjmp does; calls of other modules go through memory).
//             A return to another address than its call's shows too late that functions were left:
//             the units that are open, or end there, are dissolved, their accesses are in no unit.
//             So a unit never holds what was executed after its end.
// Misses      Jumps out of a function over less than 64 KB that are in no function known by name,
//             until a return shows it.
// Complexity  O(1) for each call. Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tsl/robin_map.h>
#include <tsl/robin_set.h>

#include "decoders/x86/instruction.h"

namespace tsomon::pt {

struct UnitFunction {
  std::string label;
  uint64_t entry = 0;
  int process = 0;
};

struct UnitMarker {
  std::string label;
  uint64_t address = 0;
  int process = 0;
  bool begins = false;  // else it ends
};

// Values of PTWRITE, in every process.
struct WrittenMarker {
  std::string label;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Function that may end without returning to where it was called.
struct LeavingFunction {
  uint64_t entry = 0;
  int process = 0;
};

struct UnitOptions {
  std::vector<UnitFunction> functions;
  std::vector<UnitMarker> markers;
  std::vector<WrittenMarker> written;
  std::vector<LeavingFunction> leaving;
};

// Where the events go.
class UnitEvents {
 public:
  UnitEvents() = default;
  UnitEvents(const UnitEvents&) = delete;
  UnitEvents& operator=(const UnitEvents&) = delete;
  virtual ~UnitEvents() = default;
  // Their numbers, for take_back(). `at`: null where something is missing.
  virtual size_t begin_unit(const std::string& label, const x86::Instruction* at) = 0;
  virtual size_t end_unit(const x86::Instruction* at) = 0;
  virtual void take_back(size_t event) = 0;
};

class UnitsOnPath {
 public:
  UnitsOnPath(const UnitOptions& options, int process, UnitEvents& events);

  bool none() const { return none_; }
  // Before the instructions of a block that begins at `ip`.
  void block(uint64_t ip);
  // Before and after what each instruction does.
  void before(const x86::Instruction& instruction);
  void after(const x86::Instruction& instruction);
  void value(uint64_t written);
  // Something is missing here.
  void interrupt();

  uint64_t incomplete() const { return incomplete_; }

 private:
  static constexpr int64_t kMarked = -1;
  struct Open {
    const std::string* label = nullptr;
    int64_t depth = kMarked;  // of the calls when the function was entered
    size_t begin = 0;         // event
  };
  struct Closed {
    size_t begin = 0;
    size_t end = 0;
  };

  int64_t depth() const { return static_cast<int64_t>(returns_.size()); }
  void begin(const std::string& label, int64_t depth, const x86::Instruction* at);
  void end_marked(const std::string& label, const x86::Instruction* at);
  // The units from number `first` on.
  void cut(size_t first, const x86::Instruction* at);
  void returned(const x86::Instruction& instruction);
  void dissolve();

  UnitEvents& events_;
  bool none_ = true;
  tsl::robin_map<uint64_t, const std::string*> functions_;  // by entry
  tsl::robin_map<uint64_t, const std::string*> begins_;
  tsl::robin_map<uint64_t, const std::string*> ends_;
  tsl::robin_set<uint64_t> leaving_;
  const std::vector<WrittenMarker>& written_;

  std::vector<Open> open_;
  std::vector<uint64_t> returns_;          // where the open calls return to
  tsl::robin_set<uint64_t> behind_calls_;  // every such address
  std::vector<Closed> closed_;             // by the return before this block
  uint64_t expected_ = 0;                  // where it goes; 0: not known
  uint64_t jumped_from_ = 0;               // by an indirect jump
  bool jumped_by_register_ = false;
  uint64_t incomplete_ = 0;
  bool called_ = false;   // the instruction before called, or jumped anywhere
  bool arrived_ = false;  // ... or jumped directly
};

}  // namespace tsomon::pt
