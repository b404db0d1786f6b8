// The pairs and tuples of places that were asked about in one window of an input after another, so
// that each is reported once and counted once.
//
// Purpose     Places are source locations; where an input has none, threads and memory. What is
//             found again in a later window is the same; so it is where windows are looked at by
//             processes that know nothing of one another (monitor/predict/merge_parts.h).
// Complexity  O(log n) each. Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tsomon::predict {

// Of something that was found.
struct FoundPlaces {
  std::vector<uint64_t> places;
  // Those of the same cycle as its other end closes it; empty: it has no other end.
  std::vector<uint64_t> mirror;
  uint64_t window = 0;
};

class AskedPlaces {
 public:
  using Places = std::vector<uint64_t>;
  static constexpr uint64_t kNever = UINT64_MAX;

  // What is asked from now on is of this window; they come in their order.
  void begin_window(uint64_t window) { window_ = window; }

  bool found(const Places& places) const { return found_in(places) != kNever; }
  // The first window.
  uint64_t found_in(const Places& places) const {
    const auto at = first_.find(places);
    return at != first_.end() ? at->second : kNever;
  }
  // In a window before its own, there or closed by its other end.
  bool found_before(const FoundPlaces& one) const {
    return found_in(one.places) < one.window ||
           (!one.mirror.empty() && found_in(one.mirror) < one.window);
  }
  void asked(Places places, bool found) { add(std::move(places), found ? window_ : kNever); }
  // Found first in that window, or kNever.
  void add(Places places, uint64_t window) {
    const auto [at, is_new] = first_.try_emplace(std::move(places), window);
    refused_ -= !is_new && at->second == kNever && window != kNever ? 1 : 0;
    refused_ += is_new && window == kNever ? 1 : 0;
    at->second = std::min(at->second, window);
  }

  uint64_t size() const { return first_.size(); }
  uint64_t refused() const { return refused_; }
  // With the window in which it was found first, or kNever.
  const std::map<Places, uint64_t>& all() const { return first_; }

 private:
  std::map<Places, uint64_t> first_;
  uint64_t window_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace tsomon::predict
