// Candidates of a stream that overlap, judged together.
//
// Complexity  That of CandidateJudge, for each look with more events around.
// Thread-safety: analyse_group() may run on several threads at once, as long as nothing is added to the detector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "monitor/judge/candidate_bounds.h"
#include "monitor/judge/candidate_judge.h"
#include "online/detector/bounded_detector.h"

namespace tsomon {

// And the events that they span.
struct CandidateGroup {
  uint64_t first;
  uint64_t last;
  std::vector<DetectedCandidate> candidates;
};

struct JudgedGroup {
  CandidateShare bounds;
  Judgement judgement;
  size_t looks = 0;     // slices that were cut: with the first so many of Detector::kAround
  size_t judged = 0;    // the one that stands
  uint64_t events = 0;  // that were analysed, some of them more than once
  uint64_t work = 0;
};

// The last event of its units.
uint64_t end_of(const DetectedCandidate& candidate);

// To the last group if it overlaps with that. Candidates come by their first event. `apart`: each has its own.
void add_to_groups(DetectedCandidate&& candidate, bool apart, std::vector<CandidateGroup>* groups);

// The slice of one look.
DetectedSlice slice_of(const CandidateGroup& group, size_t look, const BoundedDetector& detector);

// `input`: events of the input so far.
JudgedGroup analyse_group(const CandidateGroup& group, const CandidateShare& bounds,
                          const CandidateJudge& judge, const BoundedDetector& detector,
                          uint64_t input, unsigned jobs);

}  // namespace tsomon
