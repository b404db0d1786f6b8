// Functions whose code has made no pointer into their own frame: nobody else can have one.
//
// Purpose     Frames that were there before the path began, or after a gap, are as good as those
//             that it shows the call of, when the code that they belong to cannot have given a
//             pointer to them away: whatever ran before.
// Method      All the code of the function that runs on the frame is looked at: its range of the
//             table for unwinding, what it jumps to elsewhere (.cold), where exceptions go on.
//             Instructions that use the stack pointer for more than accesses, or move it by more
//             than constants, may make a pointer: the frame counts wherever none of them leads to.
//             The frame's size has to be the same by the table and by the code.
// Relies on   The table for unwinding telling the truth about the function's range, and on what
//             thread_stack.h relies on. A callee may make pointers to its arguments on the stack;
//             those are its own as long as it runs.
// Misses      Functions with a frame pointer, or with a jump through a register or a table.
// Complexity  O(instructions of the function * log), once; then a look-up.
// Thread-safety: none; one for each process that is walked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "decoders/pt/code/read_only_data.h"
#include "decoders/pt/code/unwind_table.h"
#include "decoders/x86/instruction.h"

namespace tsomon::pt {

class EscapeAnalysis {
 public:
  // `constants` must outlive this; null: there are none.
  EscapeAnalysis(int process, const ReadOnlyData* constants)
      : process_(process), constants_(constants) {}

  // Bytes from the stack pointer, before the instruction at `ip`, to the return address of a
  // frame that no pointer goes to. Nothing: not known to be one.
  std::optional<int64_t> return_address(uint64_t ip);

 private:
  static constexpr size_t kMostParts = 16;
  static constexpr uint64_t kMostCode = uint64_t{1} << 18;  // bytes of a part

  // An instruction and where it goes on.
  struct Site {
    uint64_t next = 0;              // 0: not there
    uint64_t target = 0;            // of a jump
    std::optional<int64_t> pushes;  // bytes that the stack pointer goes down; nothing: not constant
    bool exposes = false;
    bool calls = false;  // exceptions may go on elsewhere
  };
  struct Code {
    std::map<uint64_t, Site> sites;
    std::vector<uint64_t> landing_pads;
  };
  // What was found out about a function.
  struct Facts {
    bool read = false;
    std::set<uint64_t> exposed;         // where a pointer may be about
    std::map<uint64_t, int64_t> sizes;  // of the frame, as the code has made it
  };

  std::optional<int64_t> find(uint64_t ip);
  Facts look_at(const UnwindTable& table, const UnwindTable::Function& function) const;
  static std::set<uint64_t> exposed_by(const Code& code);
  static std::map<uint64_t, int64_t> sizes_of(const Code& code, uint64_t begin);
  // Adds a part's code; where it goes on elsewhere with the frame. False: not understood.
  bool read_part(const UnwindTable& table, const UnwindTable::Function& part, Code& code,
                 std::vector<uint64_t>& goes_on) const;
  static bool leaves_for_good(const UnwindTable& table, const UnwindTable::Function& part,
                              const x86::Instruction& jump);

  int process_;
  const ReadOnlyData* constants_;
  std::unordered_map<uint64_t, std::optional<int64_t>> known_;  // by ip
  std::map<uint64_t, Facts> functions_;                         // by their begin
  std::map<uint64_t, UnwindTable> tables_;                      // by their header
};

}  // namespace tsomon::pt
