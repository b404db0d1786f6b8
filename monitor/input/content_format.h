// What an input is, by its first bytes, which stay to be read.
//
// Formats     A capture, a pack, perf.data and raw Intel PT dumps begin with what is theirs; an axe trace
//             is told by its first line that is neither empty nor a comment
//             (decoders/axe/reader.h). All else is a text trace, whose reader says what is wrong.
// Pipes       Waits for the first bytes, and for more as long as these do not tell, up to a second
//             without any. What cannot be looked at (a terminal) is a text trace.
// Memory      64 KiB: an axe trace whose comments at the top are longer is not recognised.
// Thread-safety: none.
#pragma once

#include "monitor/events/event_source.h"

namespace tsomon {

InputFormat content_format(int fd);  // never kAuto

}  // namespace tsomon
