// A change of a program that an exploration tries, without a change of its source.
//
// Purpose     A repair is named by places in the source; the runtime knows instruction pointers.
//             Which of these are meant is learnt from the runs: a place that comes up for the first
//             time may be one of them, and what was run before it was known is void.
// Blocks      By the lines of one function where these are known, else by the texts of locations.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "monitor/explore/program_process.h"
#include "monitor/process/symbols.h"

namespace tsomon::explore {

struct RepairedBlock {
  // Empty: by the texts alone.
  std::string function;
  std::string file;
  uint32_t first_line = 0;
  uint32_t last_line = 0;
  std::vector<std::string> inside;   // locations in the order of the block
  std::vector<std::string> outside;  // others of the same method
  bool whole = false;                // all of the method: a loop around it does not leave it
};

struct ProgramRepair {
  std::vector<std::string> fences;  // locations of stores that a full fence follows
  std::vector<RepairedBlock> blocks;
  bool empty() const { return fences.empty() && blocks.empty(); }
};

class RepairPlaces {
 public:
  RepairPlaces(const ProgramRepair& repair, ProgramProcess& process, Symboliser& symbols)
      : repair_(repair), process_(process), symbols_(symbols) {}

  // True: the program was changed, and what was run before is void.
  bool learn(const Run& run);
  // Some of its places never came up.
  bool applied() const { return fenced_ || in_block_; }
  bool has_room() const { return has_room_; }

 private:
  bool learn_place(uint64_t pc);

  const ProgramRepair& repair_;
  ProgramProcess& process_;
  Symboliser& symbols_;
  std::unordered_set<uint64_t> known_;
  bool fenced_ = false;
  bool in_block_ = false;
  bool has_room_ = true;
};

}  // namespace tsomon::explore
