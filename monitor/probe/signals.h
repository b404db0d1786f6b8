// What orders a signal's handler after those who sent it (signals.cpp).
//
// Thread-safety: as for all hooks; async-signal-safe.
#pragma once

#include <cstdint>

namespace tsomon::probe {

void sends_signal(int number, uint64_t pc);       // before it can be sent, or handled
void receives_signal(int number, uint64_t pc);    // when it is handled
void receives_signal_by_descriptor(uint64_t pc);  // by a read from a signalfd
void receives_cancellation(uint64_t pc);          // before its cleanup handlers run

// Around a call in which the thread may be cancelled, in code that exceptions pass through (CMakeLists.txt): `then` is done
// where the call does not return.
template <typename Then>
class Cancellation {
 public:
  explicit Cancellation(Then then) : then_(then) {}
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation() {
    if (!returned_) {
      then_();
    }
  }
  void returned() { returned_ = true; }

 private:
  Then then_;
  bool returned_ = false;
};

}  // namespace tsomon::probe
