// What a processor's trace unit would have written for a stepped run.
//
// Purpose     Intel PT packets by libipt's encoder: PSB groups, TNT bits, compressed addresses and
//             returns, time, PTWRITE, interrupts, context switches; and damage where it is asked
//             for.
// Time        Step i takes place at time_of(i).
// Streams     One for each thread, or one for each of `cpus` with the switches told beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/pt/stepped_run.h"

namespace tsomon::test {

struct EncodeOptions {
  uint64_t seed = 1;
  unsigned cpus = 0;  // 0: one stream for each thread
  bool mtc = true;
  bool cyc = true;
  bool compress_returns = true;
  bool long_tnt = true;
  bool ptwrite_ip = true;            // a FUP behind each PTW
  bool early_fup = false;            // erratum BDM70: a PSB group in front of PGE has a FUP
  unsigned bits = 64;                // of the code, as MODE.Exec says
  size_t psb_every = 2000;           // bytes
  unsigned interrupt_one_in = 3000;  // steps
  bool kernel = false;               // it is traced, too: packets of some kernel code
  unsigned overflow_one_in = 0;      // steps
  size_t sample_every = 0;           // steps: an interrupt, at kSampleTime before the step
  size_t pebs_every = 0;             // steps: a PEBS block with the registers before it
};

inline bool is_sampled(size_t step, size_t every) {
  return every != 0 && step % every == every / 2;
}

struct EncodedStream {
  std::vector<uint8_t> bytes;
  int cpu = -1;
  uint32_t thread = 0;        // of a stream without a cpu
  std::vector<size_t> steps;  // what it covers, in its order
  std::vector<bool> lost;     // which of them are not in the packets
  std::vector<size_t> psb_offsets;
};

struct ThreadSwitch {
  int64_t time = 0;
  int cpu = 0;
  uint32_t thread = 0;  // that runs from now on
};

struct EncodedRun {
  std::vector<EncodedStream> streams;
  std::vector<ThreadSwitch> switches;
};

inline constexpr uint64_t kFirstTime = 1000000;
inline constexpr uint64_t kTimePerStep = 10;
inline constexpr uint64_t kSampleTime = 4;
inline constexpr uint64_t time_of(size_t step) { return kFirstTime + step * kTimePerStep; }
// CPUID leaf 0x15 and the MTC frequency that the streams are written with.
inline constexpr uint32_t kTscRatioDenominator = 1;
inline constexpr uint32_t kTscRatioNumerator = 64;
inline constexpr uint8_t kMtcFrequency = 3;
inline constexpr uint8_t kNominalRatio = 30;

EncodedRun encode(const SteppedRun& run, const EncodeOptions& options = {});

}  // namespace tsomon::test
