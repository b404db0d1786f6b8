// Which thread of which process ran on which CPU, as the records of a perf.data tell.
//
// Source      SWITCH and SWITCH_CPU_WIDE, without them sched:sched_switch; ITRACE_START for who ran
//             first. A first record that switches a thread out says who ran until then. Where
//             records of a CPU were lost, nobody is known to run until the next switch.
// Input       The records in the order of their time.
// Complexity  O(log threads) for each record; finish() sorts.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "decoders/perf/info.h"
#include "decoders/perf/record.h"
#include "decoders/pt/packets/input.h"

namespace tsomon {

// Of a record; 0: it has none.
uint64_t time_of(const perf::Record& record);
// A number of a thread, or of a process, that is not the kernel's own.
bool is_thread(uint32_t tid);

class PtThreads {
 public:
  // TSC cycles at a time of the records; empty: the clocks cannot be converted.
  using ToTsc = std::function<int64_t(uint64_t)>;

  void see_time(const perf::Record& record);
  void belongs(uint32_t tid, uint32_t pid) { process_of_[tid] = pid; }
  void take_start(const perf::Record& record);   // ITRACE_START
  void take_switch(const perf::Record& record);  // SWITCH, SWITCH_CPU_WIDE
  // A sample of sched:sched_switch, which kernels before 4.3 have instead of SWITCH records. False:
  // it is one of something else.
  bool take_scheduling(const perf::FileInfo& info, const perf::Attribute& attribute,
                       const perf::Record& record);
  void take_exit(const perf::Record& record);
  void take_loss(const perf::Record& record);

  // The thread itself, where nothing tells.
  uint32_t process_of(uint32_t tid) const;

  // Once: what happened on the CPUs of the streams. Appends to `problems`.
  std::vector<pt::Switch> finish(const std::vector<pt::TraceStream>& streams, const ToTsc& tsc,
                                 std::vector<std::string>& problems);
  // Afterwards: the processes that the streams may show.
  const std::set<int>& running() const { return running_; }

 private:
  struct Scheduled {
    uint64_t time = 0;
    bool out = false;
    uint32_t pid = 0;
    uint32_t tid = 0;
  };
  using ByCpu = std::map<uint32_t, std::vector<Scheduled>>;

  void schedule(const perf::Record& record, bool out, uint32_t pid, uint32_t tid);
  void forget(const perf::Record& record, ByCpu& scheduled);
  void take_switches_of_tracepoints();
  void assume_one_thread(int cpu, std::vector<std::string>& problems);
  void add_switch(int64_t time, int cpu, uint32_t pid, uint32_t tid);
  void add_switches(int cpu, const ToTsc& tsc);

  std::map<uint32_t, uint32_t> process_of_;  // by thread
  ByCpu scheduled_;
  ByCpu of_tracepoints_;                 // as sched_switch tells it
  bool lost_anywhere_ = false;           // records, of a CPU that is not known
  std::map<uint32_t, uint64_t> latest_;  // time of the last record, by CPU
  std::set<uint32_t> started_;           // threads of ITRACE_START
  bool has_switches_ = false;
  std::vector<pt::Switch> switches_;
  std::set<int> running_;
};

}  // namespace tsomon
