// What turns events into edges of the conflict graph: one class for each DetectorPolicy.
//
// Contract    The detector feeds every event once, in order. After ConflictGraph::sweep() it calls
//             after_sweep(), in which the policy follows its nodes with moved_to(), or leaves those
//             that it recognises by ConflictGraph::generation() for later.
// Thread-safety: none.
#pragma once

#include <cstdint>

#include "online/graph/conflict_graph.h"
#include "tso/model/trace.h"

namespace tsomon {

class Policy {
 public:
  using Node = ConflictGraph::Node;

  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  virtual void add(const EventBlock& block, uint64_t first_index) = 0;
  // Events of the thread are missing here (kNoThread: of any thread).
  virtual void lost(ThreadId thread) = 0;
  // The input has ended.
  virtual void finish() {}
  // The unit is finished and will gain no edge that leads to it.
  virtual bool closed(Node node) = 0;
  virtual void before_sweep() {}
  virtual void after_sweep() = 0;
  virtual size_t locations() const = 0;  // in memory
  // There are locations that a sweep may free, and enough of them to make up for its work.
  virtual bool wants_sweep() const = 0;
};

// Field by field in its place, here and wherever accesses are remembered: a copy would have to wait
// for the stores of the original.
inline void assign(DetectedAccess& to, const Event& event, uint64_t index) {
  to.index = index;
  to.address = event.address;
  to.size = event.size;
  to.location = event.location;
  to.thread = event.thread;
  to.kind = event.kind();
}

inline DetectedAccess access_of(const Event& event, uint64_t index) {
  return {index, event.address, event.size, event.location, event.thread, event.kind()};
}

}  // namespace tsomon
