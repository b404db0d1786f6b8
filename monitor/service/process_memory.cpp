#include "monitor/service/process_memory.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

namespace tsomon::service {

uint64_t memory_of_process(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  uint64_t all = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  file >> all >> resident >> shared;
  return (resident - std::min(resident, shared)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace tsomon::service
