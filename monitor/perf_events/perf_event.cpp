#include "monitor/perf_events/perf_event.h"

#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tsomon {

int open_event(perf_event_attr attributes, pid_t thread, int processor) {
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, thread, processor, -1, PERF_FLAG_FD_CLOEXEC));
}

std::optional<perf_event_attr> event_named(const char* name, bool also_kernel) {
  static const bool ready = pfm_initialize() == PFM_SUCCESS;
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  pfm_perf_encode_arg_t request{};
  request.size = sizeof request;
  request.attr = &attributes;
  const int modes = also_kernel ? PFM_PLM0 | PFM_PLM3 : PFM_PLM3;
  if (!ready ||
      pfm_get_os_event_encoding(name, modes, PFM_OS_PERF_EVENT_EXT, &request) != PFM_SUCCESS) {
    return std::nullopt;
  }
  return attributes;
}

}  // namespace tsomon
