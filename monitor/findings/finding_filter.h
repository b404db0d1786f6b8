// Which findings are not shown, and do not count for the exit status: those that are suppressed, and
// those that are in a baseline.
//
// Purpose     One implementation for all commands. It is asked about findings that are there; what
//             is analysed does not depend on it.
// Baseline    What a command wrote with --output json, one object a line: the fingerprints of all its
//             findings. An object that is no result of tsomon's is an error, and so is another line;
//             of `tsomon run` other lines are the program's own output, and passed over.
// Errors      kUnreadable; kMalformed with the line. Both before anything is analysed.
// Complexity  A question takes O(suppressions x names). Memory: the fingerprints.
// Thread-safety: none, uses are counted.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "monitor/findings/finding_places.h"
#include "monitor/findings/suppressions.h"
#include "tso/support/result.h"

namespace tsomon {

class FindingFilter {
 public:
  FindingFilter() = default;  // hides nothing
  static Result<FindingFilter> read(const std::vector<std::string>& suppressions,
                                    const std::vector<std::string>& baselines);

  // Something was asked for.
  bool any() const { return any_; }
  // What hides it: "function:deposit known.supp:3", or "baseline old.json"; empty: it is shown.
  std::string hides(const FindingPlaces& places);
  // A line for each suppression that has hidden nothing.
  std::vector<std::string> unused() const;

  Result<void> add_suppressions(std::string_view text, const std::string& file);
  Result<void> add_baseline(std::string_view text, const std::string& file);

 private:
  bool any_ = false;
  std::vector<Suppression> suppressions_;
  std::unordered_map<std::string, std::string> known_;  // fingerprints, with the file
};

// What of one result is hidden. Without a filter nothing is, and nothing is said about it.
class HiddenFindings {
 public:
  explicit HiddenFindings(FindingFilter* filter = nullptr)
      : filter_(filter != nullptr && filter->any() ? filter : nullptr) {}

  // Counts a finding that is there `times`. True: it is hidden.
  bool hide(const FindingPlaces& places, uint64_t times = 1);
  // Likewise; adds `suppressed` (how often it is hidden, 0 or `times`) and `suppressed_by`.
  bool mark(const FindingPlaces& places, nlohmann::ordered_json* finding, uint64_t times = 1);
  // What is hidden of another result of the same command.
  void add(const HiddenFindings& more);
  // Findings that nobody can ask about.
  void show(uint64_t times) { shown_ += times; }

  bool asked() const { return filter_ != nullptr; }
  uint64_t hidden() const { return hidden_; }
  uint64_t shown() const { return shown_; }
  // Something was found, and none of it is shown.
  bool all() const { return hidden_ > 0 && shown_ == 0; }
  // "3 suppressed (function:deposit known.supp:3, baseline old.json)"; empty: none is.
  std::string text() const;
  // Adds `suppressed` to a result, where it was asked for.
  void add_to(nlohmann::ordered_json* result) const;

 private:
  FindingFilter* filter_;
  uint64_t hidden_ = 0;
  uint64_t shown_ = 0;
  std::set<std::string> by_;
};

}  // namespace tsomon
