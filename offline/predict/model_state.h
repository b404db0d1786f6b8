// What the model keeps of a thread while it is made (model.cpp, model_buffers.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "offline/predict/model.h"

namespace tsomon::predict {

struct Model::ThreadState {
  uint32_t thread = 0;
  uint32_t clock = 0;
  NodeId owned_by = kNone;  // the node for which the clock was made, which may change it
  struct Lock {
    uint32_t lock = 0;
    uint32_t depth = 0;
    uint32_t section = 0;
  };
  std::vector<Lock> locks;            // in the order of acquisition
  uint32_t held = 0;                  // in helds_
  std::vector<NodeId> unbound_reads;  // since the last branch
  uint32_t section = kNone;           // that the present event begins or ends
  uint32_t ignored = 0;               // loads (1), stores (2)
  uint32_t tried = kNone;             // the last try of the thread, until what it was about
  NodeId released = kNone;            // the last release of a lock
  uint32_t waiting = kNone;           // in waits_, until the mutex is held again
  // With buffers, of the thread that issues: how many stores were issued before the buffer was
  // empty for the last time, and for each one after that the last commit up to there; kNone: none.
  uint32_t drained = 0;
  std::vector<NodeId> pending;
};

}  // namespace tsomon::predict
