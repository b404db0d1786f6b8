// What a trace with intervals may have been: the events in other orders, and verdicts on atomic
// sets over all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tso/check/atomic_sets.h"
#include "tso/model/trace.h"

namespace tsomon::testing {

// The events in this order; `points`: one after the other, without doubt.
inline Trace rebuilt(const Trace& trace, const std::vector<uint32_t>& order, bool points) {
  Trace result;
  result.symbols = trace.symbols;
  for (uint32_t place = 0; place < order.size(); ++place) {
    const uint32_t e = order[place];
    const Event& from = trace.events[e];
    Event event;
    event.set_kind(from.kind());
    event.address = from.address;
    event.size = from.size;
    event.thread = from.thread;
    result.add(event, points ? place : trace.lo(from), points ? place : trace.hi(from),
               trace.read_value(from), trace.write_value(from));
  }
  return result;
}

// As the events were issued, without doubt about their order.
inline Trace truth(const Trace& trace) {
  std::vector<uint32_t> order(trace.events.size());
  for (uint32_t e = 0; e < order.size(); ++e) {
    order[e] = e;
  }
  return rebuilt(trace, order, true);
}

// As a reader delivers it: by the start of the intervals, each thread in program order.
inline Trace seen(const Trace& trace) {
  std::vector<int64_t> lo(trace.events.size());
  std::vector<int64_t> latest(16, kTimeMin);
  std::vector<uint32_t> order(trace.events.size());
  for (uint32_t e = 0; e < order.size(); ++e) {
    order[e] = e;
    int64_t& mine = latest[trace.events[e].thread];
    mine = std::max(mine, trace.events[e].lo);
    lo[e] = mine;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return lo[a] < lo[b]; });
  return rebuilt(trace, order, false);
}

// As streams deliver it: sorted by the start of the intervals, which inside a thread cannot go
// backwards because events are issued in program order. `places`: where the trace has each event.
inline Trace in_stream_order(const Trace& trace, std::vector<uint32_t>* places = nullptr) {
  Trace sorted;
  sorted.symbols = trace.symbols;
  std::vector<int64_t> lo(trace.events.size());
  std::map<ThreadId, int64_t> latest;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const auto follow = [&](ThreadId thread, int64_t time) {
      const auto at = latest.try_emplace(thread, time).first;
      at->second = std::max(at->second, time);
      return at->second;
    };
    const auto other = static_cast<ThreadId>(event.address);
    lo[i] = follow(event.thread, event.lo);
    if (event.kind() == EventKind::kFork) {
      follow(other, lo[i]);
    } else if (event.kind() == EventKind::kJoin) {
      lo[i] = follow(event.thread, follow(other, kTimeMin));
    }
  }
  std::vector<uint32_t> order(trace.events.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return lo[a] < lo[b]; });
  for (const uint32_t i : order) {
    Event event;
    event.set_kind(trace.events[i].kind());
    event.address = trace.events[i].address;
    event.size = trace.events[i].size;
    event.thread = trace.events[i].thread;
    event.location = trace.events[i].location;
    sorted.add(event, lo[i], std::max(lo[i], trace.hi(trace.events[i])),
               trace.read_value(trace.events[i]), trace.write_value(trace.events[i]));
  }
  if (places != nullptr) {
    *places = std::move(order);
  }
  return sorted;
}

// Nothing is known of the time of any event.
inline Trace without_order(const Trace& trace) {
  Trace result;
  result.symbols = trace.symbols;
  for (const Event& from : trace.events) {
    Event event;
    event.set_kind(from.kind());
    event.address = from.address;
    event.size = from.size;
    event.thread = from.thread;
    result.add(event, kTimeMin, kTimeMax, trace.read_value(from), trace.write_value(from));
  }
  return result;
}

// Verdicts of all sequences of the events that keep the order of each thread and of every two
// conflicting accesses that the intervals order.
class AllSequences {
 public:
  explicit AllSequences(const Trace& trace)
      : trace_(trace), before_(trace.events.size()), taken_(trace.events.size(), false) {
    const auto count = static_cast<uint32_t>(trace.events.size());
    for (uint32_t e = 0; e < count; ++e) {
      for (uint32_t f = 0; f < count; ++f) {
        const Event& from = trace.events[e];
        const Event& to = trace.events[f];
        const bool conflict = from.address == to.address && is(from, kinds::kAccesses) &&
                              is(to, kinds::kAccesses) &&
                              (from.kind() != EventKind::kRead || to.kind() != EventKind::kRead);
        if (from.thread == to.thread ? e < f : conflict && trace.hi(from) < to.lo) {
          before_[f].push_back(e);
        }
      }
    }
    extend();
  }
  bool all() const { return left_ > 0; }  // within the bound
  bool some_clean() const { return clean_; }
  bool some_violated() const { return violated_; }

 private:
  void extend() {
    if (order_.size() == trace_.events.size()) {
      --left_;
      const bool clean =
          analyse_atomic_sets(rebuilt(trace_, order_, true)).verdict() == Verdict::kClean;
      clean_ = clean_ || clean;
      violated_ = violated_ || !clean;
    }
    for (uint32_t e = 0; e < taken_.size() && left_ > 0; ++e) {
      if (!taken_[e] && std::all_of(before_[e].begin(), before_[e].end(),
                                    [&](uint32_t other) { return taken_[other]; })) {
        taken_[e] = true;
        order_.push_back(e);
        extend();
        order_.pop_back();
        taken_[e] = false;
      }
    }
  }

  const Trace& trace_;
  std::vector<std::vector<uint32_t>> before_;
  std::vector<bool> taken_;
  std::vector<uint32_t> order_;
  int left_ = 2000;
  bool clean_ = false;
  bool violated_ = false;
};

}  // namespace tsomon::testing
