// Raw Intel PT dumps with a list of what happened beside them (sideband), as a perf.data: whoever
// reads trace data out of a perf.data reads these, too.
//
// List        Text, one fact a line, fields separated by single spaces, `#` comments and blank
//             lines allowed; the last field of a line may have spaces. Numbers are decimal or 0x
//             hexadecimal. TIME is in the unit of the clock line, or the time-stamp counter without
//             one.
//
//               tsomon-pt 1                                  first line
//               clock SHIFT MULT ZERO                        TIME = ZERO + (TSC * MULT >> SHIFT)
//               processor TSC_CTC_N TSC_CTC_D MTC_PERIOD RATIO   CPUID leaf 0x15, MTCFreq,
//                                                            TSC cycles for each bus cycle
//               trace cpu CPU FILE                           a dump of one CPU's packets
//               trace thread PID TID FILE                    ... of one thread's
//               mmap PID TIME ADDRESS SIZE OFFSET FILE       code of FILE was mapped
//               comm PID TID TIME NAME
//               exec PID TID TIME NAME
//               fork PID TID PARENT_PID PARENT_TID TIME
//               exit PID TID TIME
//               switch in|out CPU TIME PID TID
//
// Memory      The dumps, once.
// Errors      kMalformed with "line N" and what was expected; what read_file gives.
// Thread-safety: pure function.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tso/support/result.h"

namespace tsomon::perf {

// The first 10 bytes are enough.
bool looks_like_trace_list(std::string_view bytes);

using FileReader = std::function<Result<std::string>(const std::string& path)>;

// The bytes of a perf.data as from a pipe, for Reader::open().
Result<std::string> perf_data_of_list(std::string_view list, const FileReader& read_file);

}  // namespace tsomon::perf
