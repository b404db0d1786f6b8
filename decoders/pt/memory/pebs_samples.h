// Register samples that the processor wrote into the trace itself (PEBS via PT, `aux-output`).
//
// Purpose     A block of the general registers (BBP, BIP, BEP packets) becomes a RegisterSample, so
//             that the values are carried along the path.
// Place       By the address of the next instruction (RIP of the registers), without it by that of
//             the instruction that was counted; by the block's own time stamp where it has one,
//             else by the times of the packets around it.
// Source      Intel SDM volume 3, "Intel Processor Trace", PEBS output to Intel PT: block item IDs.
// Misses      Blocks of 4-byte items; of other threads than can be told; blocks cut by OVF.
// Complexity  One pass over the packets of the streams that have such blocks.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "decoders/pt/memory/accesses.h"
#include "decoders/pt/packets/input.h"

namespace tsomon::pt {

struct PebsSamples {
  std::vector<RegisterSample> samples;
  uint64_t of_nobody = 0;  // it cannot be told whose they are
};

PebsSamples read_pebs_samples(const Input& input);

}  // namespace tsomon::pt
