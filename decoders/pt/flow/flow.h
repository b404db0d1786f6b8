// From PT packets to what every thread executed.
//
// Purpose     Paths: for each thread its blocks of instructions in order, with the places where
//             something is missing and what the trace says besides.
// Method      From packet to packet over the mapped files (fast_flow.h); a part of a stream in
//             which that meets anything unusual is libipt's block decoder's. Each stream is decoded
//             by itself, in parallel; streams of CPUs are cut into threads where user code is
//             entered, by the list of switches.
// Loss        After an error decoding goes on where the trace gives the next address of code that
//             is known (resync.h), or at the next PSB. Each loss is a gap in the path of every
//             thread that may have run meanwhile: code that no section holds (generated at run
//             time), too.
// Kernel      Code in the upper half of the address space is left out (user_packets.h).
// Transactions that abort leave no instructions.
// Registers   A path goes on "elsewhere" where the program did not go itself: a signal handler
//             begins, code that was not traced returns. Interrupts leave no mark.
// Misses      Changes of the code that no section shows. A thread whose switch falls between two
//             times that cannot be told apart: a gap.
// Memory      32 bytes a block of the path.
// Thread-safety: decode_flow() is safe to call concurrently.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decoders/pt/code/code.h"
#include "decoders/pt/code/read_only_data.h"
#include "decoders/pt/packets/input.h"

namespace tsomon::pt {

struct PathEntry {
  enum class Kind : uint8_t {
    kBlock,      // `block` was executed
    kGap,        // something is missing here
    kElsewhere,  // what follows is not what the program itself went on with
    kValue,      // the PTWRITE at the end of the block before wrote `value`
  };
  Kind kind = Kind::kBlock;
  bool resumed = false;  // of a block: the thread came back to it from what is not traced
  union {
    const CodeBlock* block = nullptr;  // of kBlock
    uint64_t value;                    // of kValue
  };
  int64_t lo = kTimeMin;  // the entry took place in [lo, hi]
  int64_t hi = kTimeMax;
};

struct ThreadPath {
  int process = 0;
  int thread = 0;
  std::vector<PathEntry> entries;
};

struct Flow {
  std::vector<ThreadPath> threads;    // by thread id
  std::vector<std::string> problems;  // one line for each kind of loss, with how often
  uint64_t gaps = 0;
  uint64_t of_nobody = 0;  // times that user code ran while no thread of the switches did
  uint64_t instructions = 0;
  uint64_t instructions_walked = 0;              // of these, without libipt
  std::vector<std::unique_ptr<CodeCache>> code;  // what the paths point into
  ReadOnlyData constants;
};

struct FlowOptions {
  unsigned jobs = 1;                           // streams at once
  uint64_t cache_bytes = uint64_t{256} << 20;  // of mapped files, for each stream
  bool libipt = false;                         // for all of it
};

Flow decode_flow(const Input& input, const FlowOptions& options = {});

}  // namespace tsomon::pt
