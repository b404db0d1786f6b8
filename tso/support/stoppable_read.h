// Reading a descriptor that may have nothing to read for long, while somebody may ask for a stop.
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace tsomon {

// As read(2), but goes on after signals, and throws WorkEnded within a tenth of a second when the
// meter of this thread is asked to stop (tso/support/work.h). Outside of scopes it is read(2).
// Thread-safety: as read(2).
// Until there is something to read, or the end.
void wait_unless_stopped(int fd);
ssize_t read_unless_stopped(int fd, void* to, size_t size);

}  // namespace tsomon
