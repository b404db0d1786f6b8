// Traces for tests in the notation of theory section 9: "T0:[W(x) T1:R(y=1) T0:F T0:]".
#pragma once

#include <string_view>

#include "tso/model/trace.h"

namespace tsomon::testing {

// W, R, U (U(x=old,new)), F, acq, rel, racq, rrel, fork(T1), join(T1); "[" opens a unit before the
// event it precedes, "]" closes it after; a thread prefix holds until the next. Aborts on bad text.
Trace mini_trace(std::string_view text);

// The events, one a line, for messages.
std::string show(const Trace& trace);

}  // namespace tsomon::testing
