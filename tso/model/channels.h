// What a send or receive is about: the number of its channel, Event::address.
//
// Numbers  A descriptor, or a number that stands for both ends of something (below 2^32); the address
//          of an object that is made, once, by one thread, at which threads meet, or of which
//          the program says that it orders; with the highest bit, what has no address:
//            1000 a round of a barrier;  0100 a signal, or that a thread is cancelled;
//            0101 a fiber: only one of those of a thread can run. For schedules alone: a unit that is
//                 left and entered again has handed over nothing;
//            1100 nothing is sent. Accesses of the thread are not to be reported from here on:
//                 the lowest bit says of loads, the next one of stores;
//            1101 nothing is sent. Races on bytes [low 48 bits, + the 12 bits before them) are
//                 not to be reported;
//            1111 nothing is sent. At the address in the other bits begins a lock or a condition
//                 variable.
// Descriptors  Using one is also a load of one byte, ending it a store there: a descriptor that is
//          closed while it is used is a race. Of these bytes nothing but the number is real.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "tso/model/event.h"

namespace tsomon {

inline constexpr uint64_t kFirstRound = uint64_t{8} << 60;
inline constexpr uint64_t kFirstSignal = uint64_t{4} << 60;
inline constexpr uint64_t kCancellation = kFirstSignal | 32;  // the number that the C library uses
inline constexpr uint64_t kFirstFiber = uint64_t{5} << 60;
inline constexpr uint64_t kIgnored = uint64_t{12} << 60;
inline constexpr uint64_t kIgnoredLoads = kIgnored | 1;
inline constexpr uint64_t kIgnoredStores = kIgnored | 2;
inline constexpr uint64_t kBenign = uint64_t{13} << 60;

inline constexpr uint64_t kDescriptors = uint64_t{14} << 60;
inline constexpr uint64_t kBegins = uint64_t{15} << 60;

inline constexpr uint64_t kMostBenignBytes = 4095;

inline bool hands_over(uint64_t channel) { return channel >> 60 != kFirstFiber >> 60; }
inline bool says_ignored(uint64_t channel) { return channel >> 60 == kIgnored >> 60; }
inline bool says_benign(uint64_t channel) { return channel >> 60 == kBenign >> 60; }
inline bool says_begins(uint64_t channel) { return channel >> 60 == kBegins >> 60; }
// An event of the recording says so: nothing is sent.
inline bool lock_begins(const Event& event) {
  return event.kind() == EventKind::kSend && says_begins(event.address);
}
inline uint64_t benign_bytes(uint64_t address, uint64_t size) {
  return kBenign | size << 48 | address;
}
inline uint64_t benign_address(uint64_t channel) { return channel & 0xFFFFFFFFFFFFU; }
inline uint64_t benign_size(uint64_t channel) { return (channel >> 48) & kMostBenignBytes; }

}  // namespace tsomon
