// Judges what a program has recorded of itself, whatever that is.
//
// Purpose     A program writes its slice into a file that it still holds: it could change or shorten it while it is read. The file
//             is sealed first, so that it stays as it is; what cannot be sealed is not read.
// Refused     A file that cannot be sealed, is larger than kMostSliceBytes, or is no capture: then each report is
//             inconclusive and says why, as does a warning.
// Errors      kEnvironment: the machine has no more to give.
// Stops       As check_properties().
// Thread-safety: calls are independent.
#pragma once

#include <cstdint>
#include <vector>

#include "monitor/check/check_input.h"
#include "monitor/process/descriptor.h"
#include "monitor/process/file_search.h"
#include "tso/support/result.h"

namespace tsomon {

inline constexpr uint64_t kMostSliceBytes = uint64_t{2} << 30;

// An empty one, in memory.
Result<Descriptor> make_slice_file();

struct JudgedFile {
  CheckedProperties checked;
  bool refused = false;  // what the file holds is not to be used
};

// `file`: of make_slice_file(), once the program has said that it is whole.
Result<JudgedFile> judge_slice(int file, const std::vector<CheckOptions>& questions,
                               const FileSearch& files = {}, EventOnlooker* onlooker = nullptr);

}  // namespace tsomon
