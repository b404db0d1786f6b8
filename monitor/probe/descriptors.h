// Orders that the kernel makes through descriptors, recorded as sends and receives.
#pragma once

#include <cstdint>

#include <sys/socket.h>

namespace tsomon::probe {

// The number of its channel (tso/model/channels.h), and whether an epoll set may watch that.
uint64_t known_by(int descriptor);
bool is_watched_by_set(uint64_t channel);
// Before a call that is given it, and waits for what it may receive.
void uses_descriptor(int descriptor, uint64_t pc);
// Before and after a call by which what this thread has done may be known to another one. What it
// is known by is the number of the descriptor or, at a pipe or a pair of sockets, one of the two
// numbers. The store buffer is drained, as the kernel's locks do. errno is kept.
void sends_through(int descriptor, uint64_t pc);
void receives_through(int descriptor, uint64_t pc);
// After it was opened; ends where the program closes it, of which nothing need be said.
void descriptor_begins(int descriptor, uint64_t pc);
// After it was opened by a name; before it is closed, but for one that is negative.
void descriptor_opens(int descriptor, uint64_t pc);
void descriptor_ends(int descriptor, uint64_t pc);
// It tells of signals (signals.h).
void gets_signals(int descriptor);
// The other end of what begins, an accepted connection, may be in this process, too.
void connection_begins(int descriptor, uint64_t pc);
// A message, or a connection, to whoever is bound to this address, of `size` bytes.
void sends_to(const sockaddr* address, socklen_t size, uint64_t pc);

}  // namespace tsomon::probe
