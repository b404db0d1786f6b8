#include "monitor/perf_events/remedy.h"

#include <cerrno>

namespace tsomon {
namespace {

constexpr const char* kPerfPermission =
    "run as root or with CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=1";

bool is_permission(int error) { return error == EACCES || error == EPERM; }

}  // namespace

std::string perf_remedy(int error, const std::string& otherwise) {
  return is_permission(error) ? kPerfPermission : otherwise;
}

std::string uprobe_remedy(int error) {
  return is_permission(error) ? "run as root or with CAP_PERFMON"
                              : "use a kernel with CONFIG_UPROBE_EVENTS";
}

}  // namespace tsomon
