// What a target is doing, for whoever looks at the service.
//
// Thread-safety: all calls.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <sys/types.h>

namespace tsomon::service {

enum class TargetState : uint8_t {
  kWaiting,   // for a process that can be watched
  kWatching,  // slices of it
  kRefused,   // it cannot be asked, or not be judged; it is asked again
  kOver,      // it cannot come again, or was taken out of the configuration
};
const char* target_state_name(TargetState state);

struct TargetSituation {
  TargetState state = TargetState::kWaiting;
  std::string why;      // of kRefused and kOver
  pid_t pid = 0;        // of kWatching and kRefused
  int64_t since = 0;    // that it is so; microseconds since 1970
  std::string message;  // the last one; empty: none
  int64_t message_time = 0;
};

class TargetJournal {
 public:
  TargetJournal();
  void waits();
  void watches(pid_t pid);
  void is_refused(pid_t pid, const std::string& why);
  void is_over();  // the last message says why
  void says(const std::string& message);
  TargetSituation situation() const;

 private:
  void become(TargetState state, pid_t pid, const std::string& why);

  mutable std::mutex mutex_;
  TargetSituation now_;
};

}  // namespace tsomon::service
