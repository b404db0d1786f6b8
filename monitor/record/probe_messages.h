// What the probe in a program says to who runs the program (monitor/probe/messages.h).
//
// While the object lives, TSOMON_MESSAGES names a pipe for programs that are started. It holds some
// hundred messages; later ones are only on the program's standard error.
// Thread-safety: none; it changes the environment.
#pragma once

#include <string>
#include <vector>

#include "monitor/process/openable_pipe.h"

namespace tsomon {

class ProbeMessages {
 public:
  ProbeMessages();
  ProbeMessages(const ProbeMessages&) = delete;
  ProbeMessages& operator=(const ProbeMessages&) = delete;
  ~ProbeMessages();

  struct Said {
    bool refused = false;             // the probe ended its program before main
    std::vector<std::string> unsaid;  // messages that no one has seen
  };
  // All that came so far, once.
  Said take();

 private:
  OpenablePipe pipe_;
};

}  // namespace tsomon
