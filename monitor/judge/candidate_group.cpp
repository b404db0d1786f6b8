#include "monitor/judge/candidate_group.h"

#include <algorithm>
#include <utility>

namespace tsomon {

uint64_t end_of(const DetectedCandidate& candidate) {
  uint64_t end = 0;
  for (const DetectedUnit& unit : candidate.units) {
    end = std::max(end, unit.last);
  }
  return end;
}

void add_to_groups(DetectedCandidate&& candidate, bool apart, std::vector<CandidateGroup>* groups) {
  const uint64_t begin = candidate.units.front().first;
  const uint64_t end = end_of(candidate);
  if (groups->empty() || begin > groups->back().last || apart) {
    groups->push_back({begin, end, {}});
  }
  groups->back().last = std::max(groups->back().last, end);
  groups->back().candidates.push_back(std::move(candidate));
}

DetectedSlice slice_of(const CandidateGroup& group, size_t look, const BoundedDetector& detector) {
  const uint64_t around = Detector::kAround[look];
  return detector.slice(group.first, group.last, around, around == Detector::kAround.back());
}

JudgedGroup analyse_group(const CandidateGroup& group, const CandidateShare& bounds,
                          const CandidateJudge& judge, const BoundedDetector& detector,
                          uint64_t input, unsigned jobs) {
  JudgedGroup judged;
  judged.bounds = bounds;
  if (!bounds.affordable) {
    return judged;
  }
  for (size_t look = 0; look < Detector::kAround.size(); ++look) {
    const uint64_t around = Detector::kAround[look];
    if (!detector.affords_around(around)) {
      break;
    }
    DetectedSlice slice = slice_of(group, look, detector);
    ++judged.looks;
    if (judged.judgement.undecided() == 0 && judged.judgement.is_of(slice)) {
      break;  // there is no more
    }
    judged.events += slice.index.size();
    Judgement now =
        judge.judge(group.candidates, std::move(slice), around, bounds, input, true, jobs);
    judged.work += now.work;
    if (CandidateJudge::stands_beside(judged.judgement, now)) {
      break;
    }
    const bool more = judge.more_may_say(now, around);
    if (!now.failed() && judged.judgement.done()) {
      (*now.analysis)->work += judged.judgement.result().work;
    }
    judged.judgement = std::move(now);
    judged.judged = look;
    if (!more) {
      break;
    }
  }
  return judged;
}

}  // namespace tsomon
