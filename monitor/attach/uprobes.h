// Probes on instructions of a process, whichever way their hits come.
//
// Thread-safety: none. The kernel takes all probes out when this process ends, however it does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/attach/hit.h"
#include "tso/support/result.h"

namespace tsomon::attach {

// A location whose contents are read at a hit: base + index * 2^shift + displacement.
struct MemoryOperand {
  x86::Register base = x86::Register::kNone;
  x86::Register index = x86::Register::kNone;
  uint8_t shift = 0;
  uint8_t size = 0;       // 1, 2, 4, 8 bytes; 0: nothing is read
  bool relative = false;  // instead of `base` the address of the probe
  int32_t displacement = 0;
};

struct ProbePlace {
  uint64_t offset = 0;     // in the file
  uint64_t semaphore = 0;  // offset of a counter to be raised while the probe is there; 0: none
  uint32_t source = 0;     // Hit::source, below 2^18
  MemoryOperand memory;    // Hit::memory
};

// Probes that were set; they go with it.
using ProbeHold = std::shared_ptr<void>;

class Uprobes {
 public:
  virtual ~Uprobes() = default;
  virtual const char* name() const = 0;  // for the user

  // All or none. errno of the kernel in `refused` when it says no: ENOTSUP or EINVAL stand for an
  // instruction that it does not probe.
  virtual Result<ProbeHold> attach(pid_t pid, const std::string& file,
                                   const std::vector<ProbePlace>& places,
                                   int* refused = nullptr) = 0;
  // Appends what has come. Not in order, but for the hits of a thread on one processor.
  virtual void read(std::vector<Hit>& hits) = 0;
  virtual uint64_t lost() const = 0;
  // Modules were loaded or unloaded.
  virtual void mappings_changed() {}
  virtual bool reads_memory() const { return false; }  // else Hit::memory is never there
};

}  // namespace tsomon::attach
