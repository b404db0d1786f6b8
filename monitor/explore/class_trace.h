// The execution of a class as a text trace.
//
// Purpose     `tsomon explore -o DIR` writes one for every class, for `tsomon check` and others:
//             bad-N.std with a finding, good-N.std without. Values are exact, issue order is that
//             of the run; mutexes are acquisitions and releases, other objects locked operations.
//             A file that was not written to its end says so to whoever reads it (`ends()`).
// Errors      What cannot be written is said once; nothing is written after it.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "monitor/explore/program_process.h"
#include "offline/explore/execution_graph.h"

namespace tsomon::explore {

std::string trace_text(const Graph& graph, const Run& run,
                       const std::function<std::string(uint32_t)>& label,
                       const std::function<std::string(uint64_t)>& place);

class ClassTraces {
 public:
  // An empty folder: none are written.
  explicit ClassTraces(std::string folder) : folder_(std::move(folder)) {}
  // Why it was not written; empty: it was, or need not be.
  std::string write(const Graph& graph, const Run& run, Model model, bool bad,
                    ProgramProcess* process, const std::function<std::string(uint64_t)>& place);
  uint64_t written() const { return written_; }

 private:
  std::string folder_;
  uint64_t written_ = 0;
};

}  // namespace tsomon::explore
