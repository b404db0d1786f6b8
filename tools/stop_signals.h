// SIGINT and SIGTERM end a subcommand with what it has found so far.
//
// Purpose     The first signal asks for a stop, which all work of the scope sees (tso/support/work.h). The second one
//             ends the process at once, as without this; but not one that comes right behind the first: timeout(1)
//             sends each signal to the process and to its group, the latter perhaps when the answer is out. A signal
//             that was ignored when the process began stays ignored.
// Seconds     Likewise when so many have passed, on the clock on the wall; bounds on work are as much larger or
//             smaller as they are more or fewer than kUsualSeconds (WorkMeter::effort()).
// Thread-safety: one at a time in a process; the handler is async-signal-safe.
#pragma once

#include <csignal>
#include <optional>

#include "tso/support/work.h"

namespace tsomon {

class StopSignals {
 public:
  static constexpr double kUsualSeconds = 10;

  explicit StopSignals(std::optional<double> seconds = std::nullopt);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  bool asked() const;
  bool time_is_over() const;  // which is why it was asked

 private:
  struct sigaction before_[2]{};
  bool timed_;
  WorkMeter meter_;
  WorkScope scope_;
};

}  // namespace tsomon
