// What searches of groups of candidates have found, where they found no violation: enough to leave them out elsewhere, when the candidates
// of one input are handed out (group_share.h).
//
// Form        A list in JSON; it may change with the version.
// Trust       Of the form none: kinds and sizes are checked. What it says of a search is believed.
// Errors      kMalformed, with what was expected.
// Complexity  O(1) for each. Memory: a few hundred bytes each.
// Thread-safety: find() may be called from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "tso/check/analysis.h"
#include "tso/support/result.h"

namespace tsomon {

struct SearchedGroup {
  size_t looks = 0;  // these four: as in JudgedGroup
  size_t judged = 0;
  uint64_t events = 0;
  uint64_t work = 0;
  Analysis analysis;  // without findings
};

class SearchedGroups {
 public:
  void add(uint64_t key, SearchedGroup group) { groups_.emplace(key, std::move(group)); }
  const SearchedGroup* find(uint64_t key) const {
    const auto found = groups_.find(key);
    return found == groups_.end() ? nullptr : &found->second;
  }
  size_t size() const { return groups_.size(); }

  nlohmann::ordered_json json() const;
  // Adds those of such a list; none if one of them is malformed.
  Result<void> add(const nlohmann::ordered_json& list);

 private:
  std::unordered_map<uint64_t, SearchedGroup> groups_;
};

}  // namespace tsomon
