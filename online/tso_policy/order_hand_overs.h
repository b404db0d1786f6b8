// What posts, takes, sends and receives order, of the order policy.
//
// Source      tso/model/hand_over.h, one event at a time.
// Purpose     From each post and send that a take or receive certainly comes after an edge to it; and
//             what the thread did until then is passed on, as by the release of a lock.
// Bounds      Of a thread's sends the latest is kept, of its posts to a semaphore kMostPosts at most:
//             a take that needs an older one counts it in `evicted`. Those of units that are gone go
//             when a sweep comes, once all before them is visible.
// Complexity  O(threads that post or send there) for a take or receive.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "online/tso_policy/order_threads.h"
#include "tso/model/hand_over.h"

namespace tsomon {

class OrderHandOvers {
 public:
  OrderHandOvers(ConflictGraph& graph, OrderThreads& threads, bool ordered)
      : graph_(graph), threads_(threads), ordered_(ordered), open_(ordered) {}

  // A semaphore begins or ends.
  void begin(const EventBlock& block, const Event& event);
  // Its order in its thread is known, and the thread's stores count it.
  void add(const EventBlock& block, const OrderEvent& now);
  void lost() { counts_.forget(); }
  // After a sweep of the graph.
  void follow_units();

 private:
  static constexpr size_t kMostPosts = 1024;
  static constexpr size_t kMostClocks = 16;  // of a thread's posts, the latest
  static constexpr Policy::Node kNone = ConflictGraph::kNone;

  struct Given {
    LastEvent event;
    uint64_t store = 0;  // the thread's stores up to it
    int64_t hi = 0;
    StoreClock clock;                // what comes before it
    std::vector<ThreadId> taken_by;  // threads that it was handed over to
  };
  struct OfThread {
    ThreadId thread = 0;
    bool evicted = false;
    std::deque<Given> given;
  };
  using Channel = std::vector<OfThread>;
  using Channels = std::unordered_map<uint64_t, Channel>;

  void give(const OrderEvent& now, size_t most, Channel& channel);
  void take(const OrderEvent& now, uint64_t left, Channel& channel);
  void follow_units(Channels& channels);

  ConflictGraph& graph_;
  OrderThreads& threads_;
  Channels channels_;    // by address
  Channels semaphores_;  // likewise
  SemaphoreCounts counts_;
  bool ordered_;  // RelationOptions::lock_order
  OpenHandOvers open_;
};

}  // namespace tsomon
