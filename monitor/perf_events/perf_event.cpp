#include "monitor/perf_events/perf_event.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace tsomon {

int open_event(perf_event_attr attributes, pid_t thread, int processor) {
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, thread, processor, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace tsomon
