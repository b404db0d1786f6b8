// What the service asks of its helper, and is answered.
//
// Form        A pair of sockets that keep messages apart (SOCK_SEQPACKET). A request is a HelperRequest, no more and no less, with
//             no descriptor; its answer a HelperAnswer, of `processes` the first `count`, with at most one descriptor. One
//             after the other.
// Trust       The helper believes nothing that a request says: it names a target by the hash of its name, a process, and a mapping, each of
//             which is looked up. There are no paths.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "monitor/service/sent_error.h"

namespace tsomon::service {

enum class HelperQuestion : uint32_t {
  kProcesses = 1,      // of the target
  kExecutable = 2,     // a descriptor, read-only
  kMappings = 3,       // ... of /proc/PID/maps
  kCode = 4,           // ... of the file that is mapped from `begin` to `end`, executable
  kConnect = 5,        // a connection to the control socket
  kStart = 6,          // the target's command: its number, and a descriptor as pidfd_open(2) has
  kConfiguration = 7,  // read again: a sealed file with its text
  kHowItEnded =
      8,        // the command that was started last: as waitpid(2) says it, instead of a process
  kListen = 9,  // a socket that listens at the port for metrics
};

struct HelperRequest {
  HelperQuestion question{};
  int32_t pid = 0;
  uint64_t target = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};
static_assert(sizeof(HelperRequest) == 32);

struct HelperAnswer {
  static constexpr size_t kMostProcesses = 1000;

  SentError error;
  uint32_t count = 0;  // of processes
  std::array<int32_t, kMostProcesses> processes{};
};
static_assert(sizeof(HelperAnswer) == 8 + 2 * 480 + 4000);

inline uint64_t target_number(std::string_view name) { return std::hash<std::string_view>()(name); }

}  // namespace tsomon::service
