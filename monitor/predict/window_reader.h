// The events of a source in an order that agrees with their values, in windows that overlap, with
// names for memory that is given out again (offline/predict/block_names.h).
//
// Purpose     An input that is larger than memory is looked at in windows of consecutive events. A
//             window begins with what was carried to it (offline/predict/window_start.h).
// Errors      As EventSource; throws WorkEnded when a stop is asked for.
// Memory      A window: 33 bytes an event, 8 more where events are not numbered in their order; some
//             50 for each attempt of a waiting loop that failed.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "monitor/events/event_source.h"
#include "monitor/events/places.h"
#include "monitor/findings/last_waits.h"
#include "offline/predict/block_names.h"
#include "offline/predict/known_values.h"
#include "offline/predict/outside_events.h"
#include "offline/predict/value_order.h"
#include "offline/predict/window_start.h"
#include "tso/model/idle_iterations.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon {

class WindowReader {
 public:
  static constexpr uint32_t kAccesses = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite);

  // `values`: values() is asked for.
  WindowReader(EventSource& source, bool values);

  // Reads on until the window has so many events of its own, or there are no more.
  Result<void> fill(uint64_t events);
  // There are events that no window has had. Waits for the next ones.
  Result<bool> more();
  // The next window begins with the last `overlap` events of this one.
  void advance(uint64_t overlap);

  // All events have been in a window.
  bool at_end() const { return ended_ && at_ == block_.events.size() && order_.empty(); }

  // Those that were carried to it come first.
  Trace& window() { return window_; }
  const Trace& window() const { return window_; }
  uint32_t carried() const { return static_cast<uint32_t>(carried_.size()); }
  uint64_t own() const { return window_.events.size() - carried_.size(); }
  // The event line of an event of the window, and its number in the order of the run.
  uint64_t line(uint32_t event) const;
  uint64_t number(uint32_t event) const;
  uint64_t read() const { return start_.passed() + own(); }
  // Of a first window: the lines of all its events; empty: their numbers.
  std::vector<uint64_t> take_lines() { return std::move(lines_); }

  // In the window.
  const predict::KnownValues& values();

  const predict::WindowStart& start() const { return start_; }
  const predict::OutsideEvents& all() const { return all_; }
  // Of what was read.
  const LastWaits& waits() const { return waits_; }
  // Likewise: locations that have an access.
  const std::unordered_set<uint32_t>& accessing() const { return accessing_; }
  // Time stamps order nothing from that line on: it was not read.
  const std::optional<uint64_t>& unplaced() const { return unplaced_; }

 private:
  Result<void> next_block();
  bool unplaced(const predict::ValueOrder::Item& item);
  void take(size_t at);
  void put(const predict::ValueOrder::Item& item);

  EventSource& source_;
  predict::ValueOrder order_;
  EventBlock block_;
  size_t at_ = 0;  // in block_
  bool ended_ = false;
  uint64_t events_ = 0;           // of the source
  std::vector<bool> unfinished_;  // threads
  std::optional<uint64_t> unplaced_;

  Trace window_;
  std::vector<predict::WindowStart::Carried> carried_;
  std::vector<uint64_t> lines_;  // of its own events; empty: their numbers
  predict::WindowStart start_;
  predict::OutsideEvents all_;
  LastWaits waits_;
  std::unordered_set<uint32_t> accessing_;
  const bool asked_values_;
  IdleIterations idle_;
  std::unordered_set<uint64_t> failed_;  // attempts, by line, and those that are not decided
  Places places_;
  predict::KnownValues values_;  // of words up to date, of attempts when they are asked for
  predict::BlockNames names_;
};

}  // namespace tsomon
