// The verdicts of theory sections 2 to 6 by the plainest possible means: all pairs, all
// orientations, nothing shared with the checkers under test but the events.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tso/check/analysis.h"
#include "tso/model/trace.h"

namespace tsomon::testing {

class NaiveChecker {
 public:
  NaiveChecker(const Trace& trace, const RelationOptions& options);

  // Nothing when there are more undirected edges than can be enumerated (kMaxUndirected), more than
  // 64 events or units, or the directed edges have a cycle.
  static constexpr size_t kMaxUndirected = 12;
  std::optional<Verdict> verdict(Property property) const;

  Order between(uint32_t e, uint32_t f) const;
  bool buffered(uint32_t e) const { return source(e).has_value(); }

  // From the acquisition of a lock to its release, where locks exclude
  // (tso/order/lock_exclusion.h).
  struct Section {
    uint32_t acquisition;
    uint32_t release;
  };
  std::vector<Section> sections() const;
  bool exclude(const Section& a, const Section& b) const;

  using Bytes = std::set<std::pair<uint64_t, uint64_t>>;

 private:
  bool node(uint32_t e) const { return is(trace_.events[e], kinds::kNodes); }
  bool drains(uint32_t e) const;
  bool store(uint32_t e) const;
  std::optional<uint32_t> source(uint32_t e) const { return source_[e]; }
  std::optional<uint32_t> visible(uint32_t e) const { return visible_[e]; }
  std::optional<uint32_t> release_read(uint32_t e) const { return release_read_[e]; }
  std::optional<uint32_t> find_source(uint32_t e) const;
  std::optional<uint32_t> find_visible(uint32_t e) const;
  std::optional<uint32_t> find_release_read(uint32_t e) const;
  bool program_order(uint32_t e, uint32_t f) const;
  bool before(uint32_t e, uint32_t f) const;
  bool hands_over(uint32_t e, uint32_t f) const;
  bool find_hand_over(uint32_t e, uint32_t f) const;
  bool of_lock(uint32_t e, uint32_t f) const;  // whose events are ordered by their beginnings
  bool directed(uint32_t e, uint32_t f) const;

  const Trace& trace_;
  RelationOptions options_;
  std::vector<Bytes> bytes_;  // of each event
  std::vector<std::vector<bool>> common_;
  std::vector<std::optional<uint32_t>> visible_;
  std::vector<std::optional<uint32_t>> source_;
  std::vector<std::optional<uint32_t>> release_read_;
  std::vector<std::vector<bool>> hands_over_;
};

}  // namespace tsomon::testing
