// Samples of a perf.data that carry registers, for the addresses of a PT trace.
//
// Purpose     Registers of user code (--intr-regs, --user-regs) with the moment that they belong
//             to.
// Moment      A sample that an interrupt, a breakpoint or a probe takes has the registers in front
//             of its address, and nothing of the thread is executed until its time is read. A
//             precise event (PEBS) has those after the instruction when its address is exact. Its
//             time may be the one at which the buffer was emptied: it was written later than the
//             last emptying before, which is not one of the last millisecond.
// Misses      Samples without address, thread or time, of the kernel or of 32-bit code: counted.
// Complexity  O(1) for each sample, finish() sorts. Memory: 200 bytes for each.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "decoders/perf/sample.h"
#include "decoders/pt/memory/accesses.h"

namespace tsomon {

class PtSamples {
 public:
  void see(const perf::Attribute& attribute, const perf::Record& record);

  // `tsc`: TSC cycles at a time of the records. Once.
  template <typename Tsc>
  std::vector<pt::RegisterSample> finish(Tsc tsc) {
    set_beginnings();
    std::vector<pt::RegisterSample> samples;
    for (Seen& seen : samples_) {
      seen.sample.time = tsc(seen.time + 1);  // rounded
      seen.sample.earliest = tsc(seen.earliest);
      if (seen.sample.time == kTimeMin) {  // the clock does not reach so far back
        ++left_out_;
      } else {
        samples.push_back(seen.sample);
      }
    }
    return samples;
  }
  uint64_t left_out() const { return left_out_; }

 private:
  struct Seen {
    pt::RegisterSample sample;
    uint64_t time = 0;
    uint64_t earliest = 0;
    uint64_t event = 0;  // attribute
    uint32_t cpu = 0;
    bool precise = false;
  };
  void set_beginnings();

  std::vector<Seen> samples_;
  uint64_t left_out_ = 0;
};

}  // namespace tsomon
