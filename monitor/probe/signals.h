// What orders a signal's handler after those who sent it (signals.cpp).
//
// Thread-safety: as for all hooks; async-signal-safe.
#pragma once

#include <cstdint>

namespace tsomon::probe {

void sends_signal(int number, uint64_t pc);       // before it can be sent, or handled
void receives_signal(int number, uint64_t pc);    // when it is handled
void receives_signal_by_descriptor(uint64_t pc);  // by a read from a signalfd

}  // namespace tsomon::probe
