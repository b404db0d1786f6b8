// The code of the processes of a perf.data: which file was executable where, and from when on.
//
// Mappings    A mapping is there from the beginning (of the program that exec started), since
//             nothing else can be executed at its addresses; one that overlaps an older one, from
//             its own time on. Without a file it takes away what it overlaps: code that is not
//             known is a gap, another file's code would be wrong. What a process executed before an
//             exec is a gap, too.
// Files       With the recorded build-id (module_files.h).
// Misses      Memory that was unmapped and mapped again without a record (generated code).
// Complexity  O(mappings^2 of a process). A process with absurdly many loses them all.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decoders/perf/events.h"
#include "decoders/perf/info.h"
#include "decoders/perf/record.h"
#include "monitor/process/file_search.h"

namespace tsomon {

class PtCode {
 public:
  struct Mapping {
    int process = 0;
    uint64_t from = 0;          // time of the records; 0: from the beginning
    perf::CodeMapping mapping;  // addresses as the process has them
    std::string file;           // with the code; empty: not found
  };

  // `info`: of the reader, as far as it was read. Both must stay alive.
  PtCode(const perf::FileInfo& info, const FileSearch& search) : info_(info), search_(search) {}

  // `time`: of the record, 0: none.
  void take_mmap(const perf::Mmap& map, uint64_t time);
  // `first_is_beginning`: the process is traced from its first exec on; there is nothing before it.
  void take_exec(uint32_t pid, uint64_t time, bool first_is_beginning);
  void take_fork(const perf::Task& task, uint64_t time);

  // Once: those of the `running` processes.
  std::vector<Mapping> finish(const std::set<int>& running);
  // Mappings that were left out.
  uint64_t refused() const { return refused_; }

 private:
  struct Section {
    uint64_t from = 0;
    perf::CodeMapping code;
    uint64_t end() const { return code.begin + code.size; }
  };
  struct Process {
    uint64_t begin = 0;     // of the program that it executes; 0: unknown
    bool forked = false;    // while it was recorded
    bool executed = false;  // exec
    std::vector<Section> mappings;
  };
  const std::string& file_of(perf::CodeMapping& code);

  const perf::FileInfo& info_;
  const FileSearch& search_;
  std::map<uint32_t, Process> processes_;
  std::map<std::string, std::string> build_ids_;                      // by path
  std::map<std::pair<std::string, std::string>, std::string> files_;  // by path and build-id
  size_t sections_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace tsomon
