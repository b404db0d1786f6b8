// A file on its way into a fleet.
//
// What        Captures and perf.data with what `tsomon pack` collects, as far as it is found; packs; all else as it is (text traces).
// Again       The same file with the same question is the same work: what is there is not sent again, what was judged is not
//             judged again. Whatever ended an earlier submission, this one goes on.
// Errors      Those of the fleet and of make_pack.h.
// Thread-safety: none; distinct objects are independent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/fleet/fleet.h"
#include "monitor/process/file_search.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

struct SubmissionOptions {
  std::string tenant = "default";
  std::string host;
  std::string version;  // of tsomon
  FileSearch search;
  bool sources = true;
  std::vector<Question> questions;
};

struct Submitted {
  std::vector<std::pair<std::string, State>>
      work;                        // of each question: its id, and what it was before
  uint64_t bytes = 0;              // of the content
  uint64_t sent = 0;               // of them, compressed, now
  std::vector<std::string> notes;  // what reports may miss
};

// `again`: work that was parked is tried again.
Result<Submitted> submit(Fleet& fleet, const std::string& path, const SubmissionOptions& options,
                         bool again);

}  // namespace tsomon::fleet
