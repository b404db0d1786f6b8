// Watches that are fed with streams of events: they are merged into one order, then judged.
//
// Contract    The caller pushes into merge() and calls judge(); at the end it closes its streams
//             and calls finish(). (`tsomon run` merges on a thread of its own.)
// Bound       With more than kMaxHeld blocks held back for streams that are silent, it goes on
//             without them; what they bring later is late, and the result incomplete.
// Thread-safety: none; the callbacks run inside judge() and finish().
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "monitor/judge/watches.h"
#include "online/stream/event_merge.h"

namespace tsomon {

class MergedWatch {
 public:
  // Of events held back for a thread that is silent; a block has at most some hundred thousand
  // events.
  static constexpr size_t kMaxHeld = 4096;
  // Sees every block in its final order, and the losses before it, before they are judged.
  using Tap = std::function<void(const EventBlock&, const std::vector<EventLoss>&)>;

  MergedWatch(const Symbols& symbols, const std::vector<WatchOptions>& options,
              const Watch::Callback& report, Tap tap = {})
      : watches_(symbols, options, report), merge_(kMaxHeld), tap_(std::move(tap)) {}

  EventMerge& merge() { return merge_; }
  Watches& watches() { return watches_; }

  // Everything whose order is settled.
  void judge() {
    while (merge_.next(block_, losses_, kBlockEvents) || merge_.overtake()) {
      if (tap_) {
        tap_(block_, losses_);
      }
      for (const EventLoss& loss : losses_) {
        watches_.lost(loss);
      }
      watches_.add(block_);
      block_.clear();
      losses_.clear();
    }
  }
  // All streams are closed.
  void finish() {
    judge();
    watches_.finish();
  }

 private:
  static constexpr size_t kBlockEvents = 4096;

  Watches watches_;
  EventMerge merge_;
  Tap tap_;
  EventBlock block_;
  std::vector<EventLoss> losses_;
};

}  // namespace tsomon
