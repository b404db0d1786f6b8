#include "monitor/service/target_journal.h"

#include "monitor/service/system_time.h"

namespace tsomon::service {

const char* target_state_name(TargetState state) {
  switch (state) {
    case TargetState::kWaiting:
      return "waiting";
    case TargetState::kWatching:
      return "watching";
    case TargetState::kRefused:
      return "refused";
    case TargetState::kOver:
      break;
  }
  return "over";
}

TargetJournal::TargetJournal() { now_.since = now_in_microseconds(); }

void TargetJournal::become(TargetState state, pid_t pid, const std::string& why) {
  if (now_.state != state || now_.pid != pid) {
    now_.state = state;
    now_.pid = pid;
    now_.since = now_in_microseconds();
  }
  now_.why = why;
}

void TargetJournal::waits() {
  const std::lock_guard<std::mutex> lock(mutex_);
  become(TargetState::kWaiting, 0, {});
}

void TargetJournal::watches(pid_t pid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  become(TargetState::kWatching, pid, {});
}

void TargetJournal::is_refused(pid_t pid, const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  become(TargetState::kRefused, pid, why);
}

void TargetJournal::is_over() {
  const std::lock_guard<std::mutex> lock(mutex_);
  become(TargetState::kOver, 0, now_.message);
}

void TargetJournal::says(const std::string& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  now_.message = message;
  now_.message_time = now_in_microseconds();
}

TargetSituation TargetJournal::situation() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return now_;
}

}  // namespace tsomon::service
