// The units that a user names, in the code that an Intel PT recording shows.
//
// Names       PATTERN                      calls of the functions that the shell pattern matches,
//                                          in every process and module
//             usdt:PROVIDER:BEGIN..END     from one USDT marker to the other, as in attach/plan.h
//             ptwrite:BEGIN..END[:LABEL]   from the PTWRITE of one value to that of the other
//                                          (numbers, 0x for hexadecimal)
//             Functions that leave others without a return (longjmp, the unwinder's) are found by
//             their names, besides.
// Errors      kUsage: what is none of these, or matches nothing in the files that were found.
// Thread-safety: pure function of the file system.
#pragma once

#include <string>
#include <vector>

#include "decoders/pt/code/units.h"
#include "monitor/pt/pt_recording.h"
#include "tso/support/result.h"

namespace tsomon {

Result<pt::UnitOptions> find_pt_units(const std::vector<std::string>& names,
                                      const std::vector<PtCode::Mapping>& code,
                                      const FileSearch& search = {});

}  // namespace tsomon
