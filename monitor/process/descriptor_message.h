// Messages between processes of one machine, with at most one descriptor each.
//
// Form        Over a socket that keeps messages apart (SOCK_SEQPACKET).
// Signals     None by a socket that nobody reads (MSG_NOSIGNAL); one that interrupts does nothing.
// Descriptors More than one that comes with a message is closed by the kernel: there is room for one. They are closed on execve(2).
// Thread-safety: calls are independent; of one socket one at a time.
#pragma once

#include <cstddef>

#include "monitor/process/descriptor.h"

namespace tsomon {

// False: it was not sent as a whole; errno says why. `descriptor`: -1: none.
bool send_message(int socket, const void* data, size_t size, int descriptor = -1);

struct ReceivedMessage {
  ptrdiff_t size = -1;  // 0: nobody is at the other end any more; below 0: errno says why not
  bool whole = false;   // neither it nor what came with it was cut
  Descriptor descriptor;
};

// Waits for it, where the socket does.
ReceivedMessage receive_message(int socket, void* data, size_t size);

}  // namespace tsomon
