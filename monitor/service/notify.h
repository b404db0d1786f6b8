// What systemd is told of a service, by sd_notify(3)'s protocol.
//
// How         A datagram to the socket that $NOTIFY_SOCKET names; without it nothing happens. libsystemd has the same, but would
//             be one more library to load.
// Thread-safety: one at a time; it reads the environment.
#pragma once

#include <chrono>
#include <string>

namespace tsomon::service {

// "READY=1", or several such lines. False: somebody is to be told, and cannot be.
bool notify_manager(const std::string& state);
// How often WATCHDOG=1 is expected of this process at least; 0: it is not.
std::chrono::microseconds watchdog_time();

}  // namespace tsomon::service
