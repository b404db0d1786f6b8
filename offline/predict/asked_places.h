// The pairs and tuples of places that were asked about in one window of an input after another, so
// that each is reported once and counted once.
//
// Purpose     Places are source locations; where an input has none, threads and memory. Those of
//             which something was found are not asked about again.
// Complexity  O(log n) each. Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tsomon::predict {

class AskedPlaces {
 public:
  using Places = std::vector<uint64_t>;

  bool found(const Places& places) const {
    const auto at = found_.find(places);
    return at != found_.end() && at->second;
  }
  void asked(Places places, bool found) {
    const auto [at, is_new] = found_.try_emplace(std::move(places), found);
    refused_ -= !is_new && !at->second && found ? 1 : 0;
    refused_ += is_new && !found ? 1 : 0;
    at->second = at->second || found;
  }

  uint64_t size() const { return found_.size(); }
  uint64_t refused() const { return refused_; }

 private:
  std::map<Places, bool> found_;
  uint64_t refused_ = 0;
};

}  // namespace tsomon::predict
