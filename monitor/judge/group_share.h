// Which groups of candidates of an input are searched here, and which elsewhere, when they are handed out to several processes.
//
// Parts       CheckOptions::part: of the groups in their order this process searches its own, and keeps what it found (`found`). It goes
//             through the whole input, and so through all that does not come from a search.
// Whole       CheckOptions::searched: what parts have found. Who has it goes through the input once more as if it were alone, and leaves out
//             the searches whose answer is there. So its report is the one of a process that has searched everything, witness for witness: a
//             group in which something was found is searched again.
// Key         A search is known again by all that it rests on: every event of the input until then, the group, what it may use, and what is
//             asked. What is not the same is searched.
// Left out    Groups with a cycle of certain orders: they have a finding.
// Complexity  O(1) for each event; for a group its slices, which are cut all the same.
// Thread-safety: own() and known() may be called from several threads, the others from one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "monitor/judge/candidate_group.h"
#include "monitor/judge/check.h"
#include "monitor/judge/searched_groups.h"
#include "online/detector/bounded_detector.h"

namespace tsomon {

class GroupShare {
 public:
  explicit GroupShare(const CheckOptions& options);

  // The next events of the input.
  void add(const EventBlock& block);
  // So many groups come: the number of the first.
  uint64_t number(uint64_t groups) {
    const uint64_t first = groups_;
    groups_ += groups;
    return first;
  }
  // Otherwise another part searches it, or nobody has to.
  bool own(const CandidateGroup& group, uint64_t number) const;
  // Without a finding, and without any cost.
  static JudgedGroup left_to_others(const CandidateShare& bounds);
  // What a part has found. none: it is to be searched.
  std::optional<JudgedGroup> known(const CandidateGroup& group, const CandidateShare& bounds,
                                   const BoundedDetector& detector) const;
  // Where it was searched here, what was found.
  void keep(const CandidateGroup& group, const JudgedGroup& judged,
            const BoundedDetector& detector);

 private:
  uint64_t key_of(const CandidateGroup& group, const CandidateShare& bounds,
                  const BoundedDetector& detector) const;

  std::optional<PartChoice> part_;
  std::shared_ptr<SearchedGroups> found_;
  std::shared_ptr<const SearchedGroups> searched_;
  uint64_t digest_ = 0;  // of what is asked and of all events
  uint64_t groups_ = 0;
};

}  // namespace tsomon
