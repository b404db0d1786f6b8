// Opening what is read, without waiting for somebody who may never come.
//
// Purpose     An input may be a pipe with a name, whose writer comes later: that is waited for, until
//             somebody asks for a stop. What an input names (modules, debugging information) is a regular file
//             or is not opened: a pipe, a terminal or a device there was put for us by somebody else.
// Errors      -1, with errno; EINVAL: it is no regular file.
// Thread-safety: as open(2).
#pragma once

#include <string>

namespace tsomon {

// Read-only. Throws WorkEnded within a tenth of a second when the meter of this thread is asked to stop
// (tso/support/work.h) before a pipe has a writer.
int open_input_file(const std::string& path);

// Read-only. "/proc/self/fd/N" of a file that somebody else has opened for this process, and that it may not open itself, is
// opened, too: the place in it is then that of N.
int open_regular_file(const std::string& path);
bool is_regular_file(const std::string& path);

}  // namespace tsomon
