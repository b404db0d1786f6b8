// The last slices of a process, so that they can be kept when something happens.
//
// Purpose     A violation, a crash, a signal or the call of a function is explained by what came before it, and slices without a
//             finding are not kept. Here they stay for some time, in memory (their descriptors), and go into the store
//             as one incident (store.h) when keep() is called; those of the same time afterwards, too, where asked for.
// Bound       Time and bytes; beyond them the oldest go.
// Not twice   A slice that the store has, because it shows a finding or belongs to another incident, is named, not copied.
// Errors      Told as text; slices that are not stored are gone with their time.
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "monitor/process/descriptor.h"
#include "monitor/service/store.h"

namespace tsomon::service {

class FlightRing {
 public:
  FlightRing(std::chrono::microseconds time, uint64_t bytes, Store* store, SightingPlace place)
      : time_(time), bound_(bytes), store_(store), place_(std::move(place)) {}

  // Times are in microseconds since 1970. The descriptor stays the caller's.
  void add(int capture, uint64_t bytes, int64_t taken);
  // Nothing more comes of the slice that was added last. `stored`: its number in the store; 0: it is not there.
  // What could not be stored; empty: all was.
  std::string settle(int64_t stored);

  // The number of an incident with what is here. `after`: of what comes, too; until then others belong to this one. Nothing where
  // there are no slices, or the last one goes on. `problem`: what could not be stored.
  int64_t keep(const std::string& reason, int64_t happened, bool after, std::string* problem);

  size_t slices() const { return ring_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Slice {
    Descriptor capture;
    uint64_t bytes = 0;
    int64_t taken = 0;
    int64_t stored = 0;
  };
  void drop_old(int64_t now);

  const std::chrono::microseconds time_;
  const uint64_t bound_;
  Store* const store_;
  const SightingPlace place_;
  std::deque<Slice> ring_;
  uint64_t bytes_ = 0;
  bool is_settled_ = true;  // the last one
  int64_t incident_ = 0;    // that goes on
  int64_t until_ = 0;
};

}  // namespace tsomon::service
