// Which accesses of an execution come after others for certain: by program order and conflicts.
//
// Purpose     What a root cause adds to an execution are ways back; all else is this.
// Kept        For every access and thread the first place of the thread from which on all accesses
//             come after it, and the first one that does at all. Where store buffers keep accesses
//             of a thread apart, also every pair, if there are at most kMostPairs accesses: past
//             that only what the flags of the accesses say is known (`exact` is false).
// Complexity  O((accesses + conflicts) * threads), with pairs accesses * (accesses + conflicts) /
//             64.
// Thread-safety: const access is safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "offline/explain/root_causes.h"

namespace tsomon::explain {

class Reachable {
 public:
  static constexpr uint32_t kNever = 0xFFFFFFFFU;
  static constexpr size_t kMostPairs = 8'192;

  explicit Reachable(const RootCauseProblem& problem);

  // The order contradicts itself: nothing may be asked.
  bool is_cyclic() const { return cyclic_; }
  bool exact() const { return exact_; }
  uint32_t threads() const { return threads_; }
  // The accesses of a thread in program order, and the place of an access among them.
  const std::vector<uint32_t>& line(uint32_t thread) const { return lines_[thread]; }
  uint32_t place(uint32_t access) const { return place_[access]; }

  // `to` is `from`, or comes after it.
  bool has(uint32_t from, uint32_t to) const { return has(reached_, from, to); }
  // `to` comes after `from` through a conflict.
  bool has_through_conflict(uint32_t from, uint32_t to) const { return has(through_, from, to); }
  // The first place of the thread that comes after `from`; kNever: none.
  uint32_t first(uint32_t from, uint32_t thread) const {
    return reached_.first[size_t{from} * threads_ + thread];
  }
  // The first one from which on all do; kNever: none.
  uint32_t all_from(uint32_t from, uint32_t thread) const {
    return reached_.all[size_t{from} * threads_ + thread];
  }

 private:
  // By node: accesses, then for every access what follows it in its thread (itself included): all
  // of it, and what comes after all that precedes it.
  struct Table {
    std::vector<uint32_t> first;   // by node and thread
    std::vector<uint32_t> stores;  // from here on all that come after what precedes them
    std::vector<uint32_t> all;
    std::vector<uint64_t> pairs;  // by node, a bit for each access; empty: not kept
  };
  bool has(const Table& table, uint32_t from, uint32_t to) const;
  void order_lines();
  void add_edges();
  void fill();
  void start(Table* table) const;
  void join(Table* to, uint32_t node, const Table& from, uint32_t other) const;
  void set(Table* table, uint32_t node, uint32_t access) const;
  uint32_t all_after(uint32_t access) const { return count_ + access; }
  uint32_t stores_after(uint32_t access) const { return 2 * count_ + access; }

  const RootCauseProblem& problem_;
  uint32_t count_ = 0;
  uint32_t threads_ = 0;
  size_t words_ = 0;
  bool buffered_ = false;  // some accesses of a thread are kept apart
  bool exact_ = true;
  bool cyclic_ = false;
  std::vector<std::vector<uint32_t>> lines_;
  std::vector<uint32_t> place_;
  std::vector<std::vector<uint32_t>> next_;       // by node: in the thread
  std::vector<std::vector<uint32_t>> conflicts_;  // by access
  Table reached_;
  Table through_;
};

}  // namespace tsomon::explain
