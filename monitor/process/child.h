// A program that is run for the user: signals go to it, its exit status is asked for.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT are forwarded while the object lives; those that the terminal
// sends reach the program by themselves, ignored ones stay ignored (nohup).
// What the caller still does is to end, too (`stop`): half a second after the end of a program to
// which SIGINT or SIGTERM went; at once with one that comes a fifth of a second after its end or
// later, or with two in two seconds. A program that goes on after the first one is left alone,
// unless it waits for the caller (`behind`).
// Leaving: half a second after the second of two such signals within two seconds the caller waits no
// longer for the program, whatever that does. Those of the terminal do not count: the program got
// them itself, and may be about to ask its user something.
// Thread-safety: one at a time in a process. Threads that were there before it must have these four
// signals blocked, or they get them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tso/support/work.h"

namespace tsomon {

class Child {
 public:
  // Returns when the program has started or could not. `command` is not empty; command[0] is looked
  // up in PATH. `before_start` is called with the process that is going to be it; when it says
  // false, exec_error() is ECANCELED. `behind`: whether the program waits for the caller; asked
  // from another thread, before the object's end. `stop` outlives the object.
  explicit Child(const std::vector<std::string>& command,
                 const std::function<bool(pid_t)>& before_start = {}, StopFlag* stop = nullptr,
                 std::function<bool()> behind = {});
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // waits, if it was not left

  int exec_error() const { return exec_error_; }  // errno; 0: it has started
  // It could not be started for want of memory, processes or descriptors.
  bool short_of_resources() const;
  bool ended();
  bool left() const;  // it goes on, and is not waited for any more
  // The status of waitpid(2); of a program that is left that of one which the signal has ended.
  int wait();
  pid_t pid() const { return pid_; }

 private:
  class Forwarding;
  std::unique_ptr<Forwarding> forwarding_;
  pid_t pid_ = -1;
  int process_ = -1;  // readable when it has ended; -1: the kernel has no such descriptors
  int exec_error_ = 0;
  int wait_status_ = 0;
  bool ended_ = false;
};

// The program's own, or 128 + N when signal N ended it.
int exit_status(int wait_status);

}  // namespace tsomon
