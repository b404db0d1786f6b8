// The uprobes that cost least at a hit, of those that this kernel has.
//
// Errors      kEnvironment: neither BPF nor perf events take uprobes here; why BPF does not.
// Thread-safety: pure but for the kernel's state.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "monitor/attach/uprobes.h"
#include "tso/support/result.h"

namespace tsomon::attach {

struct ChosenUprobes {
  std::unique_ptr<Uprobes> probes;
  std::string why_slower;  // why not through BPF; empty: they are
};

// For process `pid`.
Result<ChosenUprobes> choose_uprobes(pid_t pid);

}  // namespace tsomon::attach
