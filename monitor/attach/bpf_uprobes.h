// Uprobes whose hits a small BPF program writes into one ring.
//
// Purpose     One link sets any number of probes in one file for one process, for all its threads
//             and those to come, and takes them out again. A perf event is needed for every probe,
//             thread and processor, and closing one waits for the whole kernel
//             (docs/design/attach.md has the figures).
// Program     Assembled here, some 100 instructions: time, thread, number of the site, registers;
//             and the contents of one location of the program, where a probe asks for them
//             (ProbePlace::memory; not when its page is not there).
// Order       All hits go into one ring in the order in which room was reserved.
// Loss        When the ring is full hits are counted and dropped: lost().
// Permission  CAP_BPF and CAP_PERFMON. create() tries all of it on this process, with hits from
//             two threads: kernels before 6.12 tell only those of one.
// Errors      kEnvironment with the remedy.
// Thread-safety: none. The kernel takes everything out when this process ends, however it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/attach/uprobes.h"
#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

namespace tsomon::attach {

class BpfUprobes : public Uprobes {
 public:
  static constexpr size_t kRingBytes = size_t{16} << 20;

  static Result<std::unique_ptr<BpfUprobes>> create(size_t ring_bytes = kRingBytes);
  ~BpfUprobes() override;
  BpfUprobes(const BpfUprobes&) = delete;
  BpfUprobes& operator=(const BpfUprobes&) = delete;

  const char* name() const override { return "BPF"; }
  Result<ProbeHold> attach(pid_t pid, const std::string& file,
                           const std::vector<ProbePlace>& places, int* refused) override;
  void read(std::vector<Hit>& hits) override;  // in the order of the ring
  uint64_t lost() const override;
  bool reads_memory() const override { return true; }

 private:
  BpfUprobes() = default;
  Result<bool> load(size_t ring_bytes);
  Result<bool> try_on_self();

  Descriptor ring_;
  Descriptor counter_;
  Descriptor program_;
  size_t ring_bytes_ = 0;
  uint64_t* consumer_ = nullptr;    // a page: how far we are
  const char* producer_ = nullptr;  // a page: how far the kernel is; then the data, twice
  const uint64_t* lost_ = nullptr;  // a page
};

}  // namespace tsomon::attach
